package http1

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func always(netip.Addr) bool { return true }

func TestProxyProtocol_HeaderNamesTheClient(t *testing.T) {
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x06\x06\x06\x06\x7f\x00\x00\x01\x04\xd2\x00\x50"
	local := "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	peer := func(x *Exchange) { answerText(x, 200, x.Conn.Peer().String()) }
	for name, c := range map[string]struct{ start, want string }{
		"v1": {"PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n", "6.6.6.6"},
		"v2": {v2, "6.6.6.6"}, "health check": {local, "127.0.0.1"}, "none": {"", ""},
	} {
		s, addr := engine(hidden).start(t, &handler{handle: peer}, Options{ProxyProtocol: always,
			ReadHeaderTimeout: time.Minute})
		k := connect(t, addr)
		k.send(c.start + get("Connection: close"))
		all := ""
		if c.want != "" {
			all = k.rest()
		} else if n, _ := k.Read(make([]byte, 1)); n > 0 { // it may end with a reset
			t.Errorf("%s: answered", name)
		}
		if !strings.HasSuffix(all, c.want) || (s.Stats().MissingProxyHeaders == 1) != (c.want == "") {
			t.Errorf("%s: %q, want %q; %+v", name, all, c.want, s.Stats().MissingProxyHeaders)
		}
	}
}

func TestProxyProtocol_PeersWithoutItAreServed(t *testing.T) {
	never := func(netip.Addr) bool { return false }
	_, addr := engine(hidden).start(t, &handler{}, Options{ProxyProtocol: never})
	if all := converse(t, addr, get("Connection: close")); !strings.HasSuffix(all, "GET /a ") {
		t.Errorf("%q", all)
	}
}

func TestDrain_WaitsForPROXYHeaders(t *testing.T) {
	s, addr := engine(hidden).start(t, &handler{}, Options{ProxyProtocol: always, ReadHeaderTimeout: time.Minute})
	slow, silent := connect(t, addr), connect(t, addr)
	eventually(t, "both are accepted", func() bool { return s.Stats().Connections == 2 })
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan int, 1)
	go func() { drained <- s.Drain(ctx) }()
	eventually(t, "the drain has begun", s.closing.Load)
	slow.send("PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n" + get())
	if resp := slow.expect(200, "GET /a "); !resp.Close {
		t.Error("the connection goes on")
	}
	slow.Close()
	eventually(t, "one is left", func() bool { return s.Stats().Connections == 1 })
	select {
	case cut := <-drained:
		t.Fatalf("drained, %d cut, while a connection was open", cut)
	default:
	}
	cancel()
	if cut := <-drained; cut != 1 {
		t.Errorf("%d connections were cut, want the silent one", cut)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection is still open")
	}
}
