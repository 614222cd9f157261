package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
)

// A connection that is turned away is told to the journal like a refused request, and is in the totals: once.
func TestAConnectionThatIsTurnedAwayIsToldOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		secure *tls.Config
		status int
	}{"plain": {nil, 429}, "behind TLS": {&tls.Config{}, 0}} {
		o, d := options(&seen{}), &diary{wants: true}
		o.Journal, o.Version, o.Bounds = d, "v1", map[Reason]string{IPConns: "so many"}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s, addr := serveWith(t, p, ServerOptions{Connections: tooMany{}, TLS: tt.secure})
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
		e := d.last(t)
		if e.Reason != IPConns || e.Status != tt.status || e.Limit != "so many" || e.Version != "v1" || e.Client.String() != "127.0.0.1" || len(e.Method) > 0 {
			t.Errorf("%s: told %+v", name, e)
		}
		if got := s.Totals().Refused; got[IPConns] != 1 || got[ConnOpen] != 0 || p.Totals().Refused[IPConns] != 0 {
			t.Errorf("%s: the totals are %v", name, got)
		}
	}
}
