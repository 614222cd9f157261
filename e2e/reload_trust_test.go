package e2e

import (
	"bufio"
	"io"
	"net/http"
	"testing"
)

// Whom a proxy may speak for changes with the file, on connections that it keeps too: else an address that was trusted
// by mistake goes on to choose who it is, and the shoppers of a proxy that was forgotten stay one client.
func TestReload_TrustChangesOnOpenConnections(t *testing.T) {
	t.Parallel()
	g := gate(t, open(t, nil).setting(), `stock.source = "off"`, unlimited, `server.trusted_proxies = ["127.0.0.0/8"]`,
		`limits.deny = ["192.0.2.0/24"]`,
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	c := dial(t, g.front)
	in := bufio.NewReader(c)
	ask := func(want int) {
		t.Helper()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want {
			t.Errorf("%d, %v, want %d", resp.StatusCode, err, want)
		}
		resp.Body.Close()
	}
	ask(403)
	trusting, wary := g.change("", ""), g.change(`"127.0.0.0/8"`, "")
	g.rewrite(wary, true)
	ask(200)
	g.rewrite(trusting, true)
	ask(403)
}
