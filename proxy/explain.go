package proxy

import (
	"errors"
	"net/netip"

	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// Explanation says what the proxy makes of a request, without any limit, stock or upstream being asked.
type Explanation struct {
	Route       string // "" = none takes it
	Internal    bool   // Sluice answers it itself, with 404 where it has no such address
	Client      string // who would be limited
	SKU         string
	User        string
	Quantity    int64 // units that would be reserved; 0 = none
	Bypass      bool  // no limit applies to the client
	Rates       []RateKey
	InFlight    []RateKey     // of limits in flight
	GuardsStock bool          // the gate would look at the SKU's stock
	Reason      reject.Reason // why it would be rejected before any limit is asked; Admitted otherwise
	Detail      string        // what about the request that reason is for
	Checks      []CheckRow    // that it would have to pass, in their order
}

// RateKey is what a keyed rate, or a limit in flight, would count the request by.
type RateKey struct {
	Name  string
	Key   string // "" = the request lacks it, and is not counted
	Bound string // what holds for the key
}

// Explain takes raw, a whole request as it would arrive from peer, through the checks that need nothing but the
// request. It never asks a limit: nothing is counted.
func (p *Proxy) Explain(raw string, peer netip.Addr, maxHeader int, lenientTarget bool) Explanation {
	c, err := server.Read(raw, peer, p.limits(maxHeader, lenientTarget))
	if err != nil {
		found := Explanation{Client: peer.String(), Reason: reject.Malformed, Detail: err.Error()}
		var broken server.ProtocolError
		if errors.As(err, &broken) {
			found.Detail = broken.Rule.Text()
		}
		return found
	}
	c.State = &connState{shard: p.counters.Shard()}
	r := p.newRequest(c.Ctx(), c)
	p.match(r)
	if r.isInternal() {
		r.checks, r.unmatched = p.internalChecks, rejection{}
		found := p.explain(r, p.checkDenyList(r))
		found.Internal = true
		return found
	}
	no := p.checkDenyList(r)
	if no.Reason == reject.Admitted {
		no = r.unmatched
	}
	if no.Reason == reject.Admitted && r.route.limited() {
		if no = p.checkIdentity(r); no.Reason == reject.Admitted {
			no = p.checkRequirement(r)
		}
	}
	if no.Reason == reject.Admitted {
		no = rejected(r.findRateKeys())
	}
	return p.explain(r, no)
}

func (p *Proxy) explain(r *Request, no rejection) Explanation {
	found := Explanation{
		Client: r.clientAddr().String(), SKU: string(r.buyer.sku), User: string(r.buyer.user), Quantity: r.buyer.quantity,
		Reason: no.Reason, Detail: no.Detail.String(), GuardsStock: r.route.Gate.GuardsStock(), Bypass: r.bypass,
	}
	for i, grade := range r.rateKeys.grades {
		m := &r.route.rates[i]
		shown := RateKey{Name: m.Name, Bound: grade.Bound}
		if len(r.rateKeys.keys[i]) > 0 || grade.RateLimiter == nil {
			shown.Key = string(r.keyText(nil, &m.keyedLimit, true))
		}
		found.Rates = append(found.Rates, shown)
	}
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		shown := RateKey{Name: m.Name, Bound: m.Bound}
		if key, _ := r.inFlightKey(m); len(key) > 0 {
			shown.Key = string(r.keyText(nil, &m.keyedLimit, true))
		}
		found.InFlight = append(found.InFlight, shown)
	}
	if r.route != &p.unmatched {
		found.Route = r.route.Name
	}
	found.Checks = p.describeAll(r.checks, r.route)
	return found
}
