package proxy

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"sluice/proxy/http1"
)

// Explanation says what the gate makes of a request, without any limit, stock or shop being asked.
type Explanation struct {
	Route    string // "" = none takes it
	Client   string // who would be limited
	SKU      string
	User     string
	Quantity int64 // units that would be taken; 0 = the gate takes none
	Bypass   bool  // no limit applies to the client
	Rates    []RateKey
	Stocked  bool   // the gate would look at the SKU's stock
	Reason   Reason // why it would be refused before any limit is asked; Admitted otherwise
	Detail   string // the rule that a malformed request breaks
}

// RateKey is what a keyed rate would count the request by.
type RateKey struct {
	Name string
	Key  string // "" = the request lacks it, and is not counted
}

// Explain takes raw, a whole request as it would arrive from peer, up the ladder as far as route, SKU and user.
func (p *Proxy) Explain(raw string, peer netip.Addr, maxHeader int) Explanation {
	c := &Conn{Conn: script{strings.NewReader(raw)}, server: &Server{}, peer: peer, trusted: p.trusts(peer), shard: p.counts.shard()}
	c.reader = http1.NewGuard(http1.Limits{Header: maxHeader, Target: maxTarget, Protected: p.protected()}).NewReader(socket{c})
	x := newExchange()
	x.conn = c
	if err := c.readHead(&x.asked); err != nil {
		found := Explanation{Client: peer.String(), Reason: Malformed, Detail: err.Error()}
		if why, broken := err.(http1.Violation); broken {
			found.Detail = why.Kind.String()
		}
		return found
	}
	r := p.begin(x)
	p.takeID(r)
	reason := p.match(r)
	if p.denied(r) {
		reason = DeniedIP
	}
	if reason == Admitted {
		reason = p.identify(r)
	}
	if reason == Admitted {
		reason = r.findKeys()
	}
	found := Explanation{
		Client: string(r.clientText()), SKU: string(r.sku), User: string(r.user), Quantity: r.quantity, Reason: reason, Stocked: r.route.stocked(), Bypass: r.bypass,
	}
	for i, key := range r.keys {
		m := &r.route.meters[i]
		shown := RateKey{Name: m.Name}
		if len(key) > 0 {
			shown.Key = string(m.appendText(nil, r, true))
		}
		found.Rates = append(found.Rates, shown)
	}
	if r.route != &p.noRoute {
		found.Route = r.route.Name
	}
	return found
}

// script is a connection on which one text arrives, and then nothing.
type script struct{ io.Reader }

func (script) Write(p []byte) (int, error)      { return len(p), nil }
func (script) Close() error                     { return nil }
func (script) LocalAddr() net.Addr              { return nil }
func (script) RemoteAddr() net.Addr             { return nil }
func (script) SetDeadline(time.Time) error      { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }
