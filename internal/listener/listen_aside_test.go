package listener

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Clients that never send a request keep none out, nor end the connection of one that was answered since.
func TestOperatorConnections_NewOneTakesThePlaceOfTheIdlest(t *testing.T) {
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
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err == nil && resp.StatusCode == 404
	}
	other := dial("127.0.0.2")
	if !answered(other) {
		t.Fatal("another address is not answered")
	}
	var slow []net.Conn
	for range ofOne {
		slow = append(slow, dial("127.0.0.1"))
	}
	first := dial("127.0.0.1")
	if !answered(first) { // and all before it are accepted
		t.Error("one more is not answered")
	}
	_ = slow[0].SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := slow[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the idlest one: %v, want its end", err)
	}
	for range ofOne - 2 {
		dial("127.0.0.1")
	}
	if last := dial("127.0.0.1"); !answered(last) || !answered(first) {
		t.Error("one that was answered has lost its place to slow ones")
	}
	for _, from := range []string{"127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"} {
		for range ofOne {
			dial(from)
		}
	}
	if !answered(dial("127.0.0.7")) {
		t.Error("a full listener answers no new address")
	}
}
