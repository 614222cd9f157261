package main

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// Who opens connections without end is one of those that reach a listener for operators, and not all of them; and shoppers keep
// their file descriptors.
func TestConnectionsOfOperatorsAreBounded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go s.Serve(bounded(ln))
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
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) // one that is closed tells when it is read
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, _ := c.Read(make([]byte, 1))
		return n == 1
	}
	var open []net.Conn
	for range mostAsideOne {
		open = append(open, dial("127.0.0.1"))
	}
	if !answered(open[mostAsideOne-1]) {
		t.Fatal("the last of those that one may have is closed")
	}
	if answered(dial("127.0.0.1")) {
		t.Error("one more is answered")
	}
	if !answered(dial("127.0.0.2")) {
		t.Error("another address is shut out")
	}
	open[0].Close()
	for range 100 {
		if answered(dial("127.0.0.1")) {
			return
		}
		time.Sleep(20 * time.Millisecond) // the server has to hear of it
	}
	t.Error("what was closed is counted for ever")
}
