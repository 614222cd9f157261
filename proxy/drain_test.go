package proxy

import (
	"net"
	"testing"
)

// A signal to end may come before the listeners are served; then none of them may outlive it.
func TestServeAfterADrainEndsAtOnce(t *testing.T) {
	s := NewServer(newProxy(t, options(&seen{})), ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if cut := s.Drain(t.Context()); cut != 0 {
		t.Errorf("%d connections were cut, and there were none", cut)
	}
	if err := s.Serve(ln); err != nil { // hangs where the drain is not heard of
		t.Error(err)
	}
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		c.Close()
		t.Error("the listener is still open")
	}
}
