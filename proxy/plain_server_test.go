package proxy

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// plainServer serves o with a fasthttp.Server.
func plainServer(t *testing.T, o Options) (addr string) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	handler := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: unlimited{}})
	plain := &fasthttp.Server{Handler: handler.Handle, NoDefaultServerHeader: true, StreamRequestBody: true,
		Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- plain.Serve(ln) }()
	t.Cleanup(func() {
		ln.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// Sluice is a fasthttp handler: any fasthttp.Server serves it.
func TestServer_HandlesUnderAPlainFasthttpServer(t *testing.T) {
	to := &recorder{}
	o := options(to)
	soldOutSKU(&o)
	addr := plainServer(t, o)
	admitted := strings.Replace(order, "1001", "1002", 1)
	for _, c := range []struct {
		raw          string
		status       int
		reason, body string
	}{
		{search, 200, "", "from the upstream"},
		{strings.Replace(admitted, whole, "Content-Length: 5\r\n\r\nhello", 1), 200, "", "from the upstream"},
		{strings.Replace(admitted, whole, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 1), 200, "",
			"from the upstream"},
		{order, 409, "sold_out", ""},
		{strings.Replace(order, "Cookie: uid=7", "Cookie: theme=dark", 1), 401, "unidentified", ""},
		{"GET /%00 HTTP/1.1\r\nHost: shop\r\n\r\n", 400, "malformed", ""},
		{"HEAD /page HTTP/1.1\r\nHost: shop\r\n\r\n", 200, "", ""},
		{"GET /.sluice/client.js HTTP/1.1\r\nHost: shop\r\n\r\n", 200, "", ""},
	} {
		resp, body := talk(t, addr, c.raw)
		if resp.StatusCode != c.status || resp.Header.Get("X-Sluice-Reason") != c.reason || resp.Header.Get("Date") == "" ||
			c.body != "" && body != c.body {
			t.Errorf("%q: %d %v %q", c.raw, resp.StatusCode, resp.Header, body)
		}
	}
	sent := to.all()
	if len(sent) != 4 || !strings.HasSuffix(sent[1], "\r\n\r\nhello") || !strings.HasSuffix(sent[2], "\r\n\r\nhello") ||
		!strings.Contains(sent[0], "\r\nX-Forwarded-For: 127.0.0.1\r\n") {
		t.Errorf("the upstream was sent %q", sent)
	}
	c := connect(t, addr)
	for range 3 { // the connection stays
		c.send(order)
		if resp, body := c.receive("POST"); resp.StatusCode != 409 || resp.Close {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
	}
}
