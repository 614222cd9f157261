package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// Slow clients fill body_memory. The slowest of them make room for a body that comes at once.
func TestBodyMemory_SlowBodiesKeepNoOthersOut(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := gate(t, shop.setting(), `stock.source = "off"`, boundless, "server.max_body_size = \"64KiB\"",
		"server.body_memory = \"1MiB\"\nserver.read_timeout = \"5m\"",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"")
	const size = 15_900
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n", size)
	for i := range 200 {
		c := dial(t, g.front)
		defer c.Close()
		sent := size - 1 - i%100
		if _, err := io.WriteString(c, head+strings.Repeat("x", sent)); err != nil {
			t.Fatal(err)
		}
	}
	order := func() int {
		c := dial(t, g.front)
		defer c.Close()
		if _, err := io.WriteString(c, head+strings.Repeat("x", size/2)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, strings.Repeat("x", size-size/2)) // it may be rejected before
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	testkit.Eventually(t, "an order is served", func() bool { return order() == 200 })
	for i := range 200 {
		if status := order(); status != 200 {
			t.Fatalf("order %d: %d", i, status)
		}
	}
	g.measures(t, `cause="body_memory"`)
	if n := g.metric("sluice_rejected_requests_total", `reason="too_slow"`, `route="all"`); n < 1 {
		t.Errorf("%v slow bodies were cut", n)
	}
}
