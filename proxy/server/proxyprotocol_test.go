package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

func always(netip.Addr) bool { return true }

func TestProxyProtocol_ConnectionWithoutItsHeaderIsClosed(t *testing.T) {
	s, addr := engine(hidden).start(t, &handler{}, Options{ProxyProtocol: always, ReadHeaderTimeout: time.Minute})
	c := connect(t, addr)
	c.send(get("Connection: close"))
	if n, _ := c.Read(make([]byte, 1)); n > 0 || s.Stats().MissingProxyHeaders != 1 { // it may end with a reset
		t.Errorf("%d bytes are answered; %d counted", n, s.Stats().MissingProxyHeaders)
	}
}

// A header that names no client leaves the proxy's own address, and what the client writes is not the proxy's word.
func TestProxyProtocol_UnnamedClientsCountAsTheProxy(t *testing.T) {
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	unix := strings.Repeat("a", 108) + strings.Repeat("b", 108)
	tcp4 := "\x06\x06\x06\x06\x7f\x00\x00\x01\x04\xd2\x00\x50"
	peer := func(x *served) { answerText(x, 200, fmt.Sprint(x.Conn.Peer(), " ", x.Conn.Unnamed())) }
	for name, c := range map[string]struct{ start, want string }{
		"v1 TCP4":              {"PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n", "6.6.6.6 false"},
		"v1 UNKNOWN":           {"PROXY UNKNOWN\r\n", "127.0.0.1 true"},
		"v1 UNKNOWN addresses": {"PROXY UNKNOWN 6.6.6.6 7.7.7.7 1 2\r\n", "127.0.0.1 true"},
		"v2 LOCAL":             {signature + "\x20\x00\x00\x00", "127.0.0.1 true"},
		"v2 LOCAL addresses":   {signature + "\x20\x11\x00\x0c" + tcp4, "127.0.0.1 true"},
		"v2 unix":              {signature + "\x21\x31\x00\xd8" + unix, "127.0.0.1 true"},
		"v2 udp":               {signature + "\x21\x12\x00\x0c" + tcp4, "127.0.0.1 true"},
		"v2 tcp":               {signature + "\x21\x11\x00\x0c" + tcp4, "6.6.6.6 false"},
	} {
		_, addr := engine(hidden).start(t, &handler{handle: peer}, Options{ProxyProtocol: always,
			ReadHeaderTimeout: time.Minute})
		if all := converse(t, addr, c.start+get("Connection: close")); !strings.HasSuffix(all, c.want) {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
}

// slowConn arrives byte by byte.
type slowConn struct{ net.Conn }

func (c slowConn) Read(p []byte) (int, error) { return c.Conn.Read(p[:min(len(p), 1)]) }

type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowConn{c}, nil
}

func (l slowListener) SetDeadline(t time.Time) error {
	return l.Listener.(*net.TCPListener).SetDeadline(t)
}

func TestProxyProtocol_HeaderArrivesInPieces(t *testing.T) {
	slow := engine(func(ln net.Listener) net.Listener { return slowListener{ln} })
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x06\x06\x06\x06\x7f\x00\x00\x01\x04\xd2\x00\x50"
	peer := func(x *served) { answerText(x, 200, x.Conn.Peer().String()) }
	for _, start := range []string{"PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n", v2} {
		_, addr := slow.start(t, &handler{handle: peer}, Options{ProxyProtocol: always, ReadHeaderTimeout: time.Minute})
		if all := converse(t, addr, start+get("Connection: close")); !strings.HasSuffix(all, "6.6.6.6") {
			t.Errorf("%q: %q", start, all)
		}
	}
	// What never ends is no header.
	s, addr := slow.start(t, &handler{}, Options{ProxyProtocol: always, ReadHeaderTimeout: time.Minute})
	k := connect(t, addr)
	k.send("PROXY TCP4 " + strings.Repeat("6", 200))
	testkit.Eventually(t, "it is closed", func() bool { return s.Stats().MissingProxyHeaders == 1 })
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
	testkit.Eventually(t, "both are accepted", func() bool { return s.Stats().Connections == 2 })
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan int, 1)
	go func() { drained <- s.Drain(ctx) }()
	testkit.Eventually(t, "the drain has begun", s.closing.Load)
	slow.send("PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n" + get())
	if resp := slow.expect(200, "GET /a "); !resp.Close {
		t.Error("the connection goes on")
	}
	slow.Close()
	testkit.Eventually(t, "one is left", func() bool { return s.Stats().Connections == 1 })
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
