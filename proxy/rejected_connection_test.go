package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

// connSlots admits so many connections at a time.
type connSlots struct {
	mu   sync.Mutex
	left int
}

func (s *connSlots) Open(netip.Addr, bool) reject.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return reject.IPConns
	}
	s.left--
	return reject.Admitted
}

func (s *connSlots) Close(netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left++
}

func (s *connSlots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

const pageRequest = "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"

// A rejected connection is logged like a rejected request and counted once, by the server.
func TestConnectionLimit_RejectionIsRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		secure *tls.Config
		status int
	}{"plain": {nil, 429}, "behind TLS": {&tls.Config{}, 0}} {
		o, k := options(&recorder{}), &recordKeeper{samples: true}
		o.AccessLog, o.Version, o.Bounds = k, "v1", map[reject.Reason]string{reject.IPConns: "1 of a client"}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s, addr := serveWith(t, p, ServerOptions{Connections: &connSlots{}, TLS: c.secure})
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatal(err)
		}
		e := k.only(t)
		if e.Reason != reject.IPConns || e.Status != c.status || e.Limit != "1 of a client" || e.Version != "v1" ||
			e.Client.String() != "127.0.0.1" || len(e.Method) > 0 {
			t.Errorf("%s: recorded %+v", name, e)
		}
		got, requests := s.Totals().Rejected, p.Counters().Totals().Rejected
		if got[reject.IPConns] != 1 || got[reject.ConnOpen] != 0 || requests[reject.IPConns] != 0 {
			t.Errorf("%s: the totals are %v", name, got)
		}
		all := testkit.Series(t, s)
		if n := all["sluice_rejected_connections_total ip_conns"]; n != 1 {
			t.Errorf("%s: %v connections are counted, want 1", name, n)
		}
		if n, shown := all["sluice_rejected_connections_total conn_open"]; n != 0 || !shown {
			t.Errorf("%s: a reason without a rejection is shown as %v, %v; want 0", name, n, shown)
		}
	}
}

// In observe mode, or with the limit observed alone, the connection is counted and served.
func TestConnectionLimit_ObservedRejectionServesTheConnection(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"observe mode": func(o *Options) { o.Observe = true },
		"observe_only": func(o *Options) { o.ObserveOnly = []reject.Reason{reject.IPConns} },
	} {
		o := options(&recorder{})
		change(&o)
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		slots := &connSlots{}
		s, addr := serveWith(t, p, ServerOptions{Connections: slots})
		closing := strings.Replace(pageRequest, "Host", "Connection: close\r\nHost", 1)
		if resp, _ := talk(t, addr, closing); resp.StatusCode != 200 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
		if n := testkit.Series(t, s)["sluice_observed_connection_rejections_total ip_conns"]; n != 1 {
			t.Errorf("%s: %v connections are counted, want 1", name, n)
		}
		testkit.Eventually(t, "the connection is closed", func() bool { return s.Stats().Connections == 0 })
		if n := slots.free(); n != 0 { // Close would give back what Open did not admit
			t.Errorf("%s: %d slots are free, and there are none", name, n)
		}
	}
}
