package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
)

// A client that is in the shop, or connected, when the file is read again still counts afterwards.
func TestReload_KeepsRequestsInFlightAndConnectionsCounted(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/slow" {
			close(inside)
			<-leave
		}
		fmt.Fprintln(w, "served")
	})
	g := gate(t, shop.setting(), unhurried, `stock.source = "off"`, "limits.concurrency.max_in_flight = 1",
		"limits.concurrency.max_queue = 0",
		"limits.connection.max_connections_per_ip = 2", `[[route]]
name = "api"
match = "/api/"
gate = "limit"
[[route]]
name = "rest"
match = "/"
gate = "pass"`)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	slow := make(chan answer)
	go func() { slow <- g.ask("GET", "/api/slow") }() // one connection, and the only place in the shop
	<-inside
	other := dial(t, g.front)
	full := func() {
		t.Helper()
		if !stays(t, other) {
			t.Error("a connection within the limit was closed")
		}
		if stays(t, dial(t, g.front)) {
			t.Error("a connection over the limit was taken")
		}
		if reason := rejectedFor(t, other, "/api/quick"); reason != "concurrency" {
			t.Errorf("beside one in flight a request was rejected for %q, want concurrency", reason)
		}
	}
	full()
	for _, change := range []string{`max_body_size = "1KiB"`, `request_id_header = "X-Id"`} {
		g.rewrite("server."+change+"\n"+string(text), true)
		full()
	}
	close(leave)
	(<-slow).must(t, 200, "")
	soon(t, "the place in the shop is free", func() bool { return rejectedFor(t, other, "/api/quick") == "" })
}

// rejectedFor sends a request on a connection, and returns why it was rejected; "" if it was not.
func rejectedFor(t *testing.T, c net.Conn, path string) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.Header.Get("X-Sluice-Reason")
}
