package proxy

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestDrainAwaitsConnectionsThatHaveYetToSayWhoseTheyAre(t *testing.T) {
	o := options(&seen{})
	o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s := NewServer(newProxy(t, o), ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}, ProxyProtocol: true,
		ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	slow, silent := dial(t, ln), dial(t, ln)
	for taken := 0; taken < 2; time.Sleep(time.Millisecond) { // else the drain may come before the listener was served
		s.mu.Lock()
		taken = len(s.open)
		s.mu.Unlock()
	}
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan int, 1)
	go func() { drained <- s.Drain(ctx) }()
	<-ended
	for !s.closing.Load() {
		time.Sleep(time.Millisecond)
	}
	select {
	case cut := <-drained:
		t.Fatalf("drained, %d cut, while two connections were open", cut)
	case <-time.After(50 * time.Millisecond):
	}
	fmt.Fprint(slow, "PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n"+order)
	if resp, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
	for open := 2; open > 1; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		open = len(s.open)
		s.mu.Unlock()
	}
	cancel()
	if cut := <-drained; cut != 1 {
		t.Errorf("%d connections were cut, want the silent one", cut)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection is still open")
	}
}
