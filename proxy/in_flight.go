package proxy

import (
	"strings"

	"sluice/proxy/keyed"
	"sluice/proxy/reject"
)

// place is one of a KeyedInFlight that a request has.
type place struct {
	of     keyed.InFlightLimiter // nil = none
	ticket uint64
}

// places are those of a request; each is given back once.
type places [keyed.MaxInFlight]place

func (all *places) release() {
	for i := range all {
		if p := &all[i]; p.of != nil {
			p.of.Release(p.ticket)
			p.of = nil
		}
	}
}

func (all *places) any() bool { return *all != places{} }

// checkInFlightFull rejects a request whose key has all its places, before its body is read. It takes none. A limit
// that is only observed is asked once, by acquireInFlight.
func (p *Proxy) checkInFlightFull(r *Request) rejection {
	if r.bypass {
		return rejection{}
	}
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		key, no := r.inFlightKey(m)
		if no.Reason != reject.Admitted {
			return no
		}
		if len(key) > 0 && !m.Observe && m.Limiter.Full(key) {
			p.countInFlight(r, m, key)
			return rejection{Reason: reject.InFlight}
		}
	}
	return rejection{}
}

// acquireInFlight takes a place of each limit that counts the request.
func (p *Proxy) acquireInFlight(r *Request) rejection {
	if r.bypass {
		return rejection{}
	}
	observed := false
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		key, _ := r.inFlightKey(m) // a fault has been found by checkInFlightFull
		if len(key) == 0 {
			continue
		}
		ticket, ok := m.Limiter.Acquire(key)
		if ok {
			r.acquired.places[i] = place{m.Limiter, ticket}
			continue
		}
		p.countInFlight(r, m, key)
		if !m.Observe {
			return rejection{Reason: reject.InFlight}
		}
		observed = true
	}
	if observed { // once a request, however many limits it exceeds
		r.shard().Observed(reject.InFlight)
		r.observed = rejection{Reason: reject.InFlight}
	}
	return rejection{}
}

// inFlightKey is what m counts the request by; empty = it does not.
func (r *Request) inFlightKey(m *keyed.BoundInFlight) (key []byte, no rejection) {
	key, ok, fault := m.Key.Append(r.scratch.value[:0], &r.source, clientOf(&m.Key, r))
	r.scratch.value = key
	if fault.Reason != reject.Admitted {
		return nil, rejected(fault)
	}
	if !ok {
		return nil, rejection{}
	}
	return key, rejection{}
}

// countInFlight counts that m rejects, and by which key.
func (p *Proxy) countInFlight(r *Request, m *keyed.BoundInFlight, key []byte) {
	if count := m.Counters.At(r.client.shard); m.Observe || p.Observe {
		count.Observed()
	} else {
		count.Rejected()
	}
	if !m.Observe {
		r.limit = m.Bound
	}
	r.client.shard.RejectedKey(m.Name, key, r.now, func(dst []byte) []byte { return r.inFlightText(dst, m, false) })
}

// inFlightText appends the key of m for people.
func (r *Request) inFlightText(dst []byte, m *keyed.BoundInFlight, open bool) []byte {
	return m.Key.AppendText(dst, &r.source, clientOf(&m.Key, r), open, r.proxy.counters.AppendHash)
}

// describeInFlight completes the row of a route's limits in flight.
func (row *CheckRow) describeInFlight(limits []keyed.BoundInFlight) {
	row.Observed = true
	var bounds []string
	for i := range limits {
		row.Observed = row.Observed && limits[i].Observe
		bounds = append(bounds, strings.TrimPrefix(limits[i].Bound, "limits.in_flight "))
	}
	row.Value = strings.Join(bounds, ", ")
}
