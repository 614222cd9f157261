package listener

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// One address has a quarter of the share, hears 503 beyond it, and leaves the rest to others.
func TestOperatorConnections_SurplusHears503(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	const share, ofOne = 64, 16
	go s.Serve(Bounded(ln, share))
	t.Cleanup(func() { s.Close() })
	dial := func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	answered := func(c net.Conn) bool {
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) // a rejected one tells when it is read
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("no whole answer: %v", err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == 503 && (resp.Header.Get("Retry-After") == "" || len(body) == 0) {
			t.Errorf("%d %v %q %v", resp.StatusCode, resp.Header, body, err)
		}
		return resp.StatusCode == 404
	}
	var open []net.Conn
	for range ofOne {
		open = append(open, dial("127.0.0.1"))
	}
	if !answered(open[ofOne-1]) {
		t.Fatal("the last of those that one may have is closed")
	}
	if answered(dial("127.0.0.1")) {
		t.Error("one more is answered")
	}
	if !answered(dial("127.0.0.2")) {
		t.Error("another address is shut out")
	}
	open[0].Close()
	testkit.Eventually(t, "what was closed counts no more", func() bool { return answered(dial("127.0.0.1")) })
}
