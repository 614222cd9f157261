//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/testkit"
)

// checkedMemory is the worst case that `sluice check` prints for the gate's configuration, in KiB.
func (g *running) checkedMemory() int {
	g.t.Helper()
	found := regexp.MustCompile(`memory +at most (\d+) MiB`).FindStringSubmatch(ok(g.t, "check", "-v", g.file))
	if found == nil {
		g.t.Fatal("check prints no memory")
	}
	mib, _ := strconv.Atoi(found[1])
	return mib << 10
}

// A thousand clients send all but the last byte of an order of 256 KB. What does not fit in the budget is rejected,
// small orders beside them are all served, and the memory stays within what check prints.
func TestBodies_UnfinishedOrdersNeitherFillMemoryNorKeepOthersOut(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	shop := open(t, nil)
	g := gate(t, shop.setting(), unlogged, "stock.source = \"memory\"", "stock.unknown_sku = \"allow\"",
		"server.body_memory = \"8MiB\"", "server.read_timeout = \"60s\"", "server.max_header_size = \"4KiB\"",
		"limits.connection.max_connections = 1200", "limits.window.max_per_sku = 0", "upstream.max_conns = 64",
		"[[route]]\nname = \"order\"\nmatch = \"POST /order\"\ngate = \"check\"\nsku = \"$json_sku\"\nuser = \"$cookie_uid\"")
	head := func(length int) string {
		return fmt.Sprintf("POST /order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n", length)
	}
	const size = 256_000
	large := head(size) + `{"sku":"1001","note":"` + strings.Repeat("x", size-25) + `"` // "}" does not come
	var overloaded atomic.Int64
	var wait sync.WaitGroup
	for _, c := range throng(t, g.front, 1000) {
		wait.Add(1)
		go func() {
			_, _ = io.WriteString(c, large) // fails where it is rejected before its end
			wait.Done()
			resp, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
			if err == nil && resp.StatusCode == 503 && resp.Header.Get("X-Sluice-Reason") == "overloaded" &&
				resp.Header.Get("Retry-After") != "" {
				overloaded.Add(1)
			}
		}()
	}
	small := `{"sku":"1001"}`
	for i := range 100 {
		c := dial(t, g.front)
		saying(t, c, head(len(small)))
		saying(t, c, small)
		if a := answered(t, bufio.NewReader(c)); a.status != 200 {
			t.Fatalf("order %d: %d %s", i, a.status, a.reason)
		}
		_ = c.Close()
	}
	wait.Wait()
	soon(t, "the orders that do not fit are rejected", func() bool { return overloaded.Load() >= 900 })
	got, most := g.pss(), min(g.checkedMemory(), 150<<10)
	t.Logf("%d KiB, %d orders overloaded", got, overloaded.Load())
	if got > most {
		t.Errorf("%d KiB, want at most %d", got, most)
	}
	if used := g.metric("sluice_body_memory_bytes"); used > 8<<20 || used < 3<<20 {
		t.Errorf("bodies hold %v bytes", used)
	}
	if n := shop.arrivals.Load(); n != 100 {
		t.Errorf("the shop saw %d orders, want those that were whole", n)
	}
}
