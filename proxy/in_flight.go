package proxy

import "sluice/proxy/reject"

// inFlightFull rejects a request whose key has all its places, before its body is read. It takes none. A limit
// that is only observed is asked once, by acquireInFlight.
func (p *Proxy) inFlightFull(r *Request) rejection {
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
			p.countLimit(r, &m.keyedLimit, m.Bound, key)
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
		key, no := r.inFlightKey(m)
		if no.Reason != reject.Admitted {
			return no
		}
		if len(key) == 0 {
			continue
		}
		if r.acquired.places.Acquire(i, m.Limiter, key) {
			continue
		}
		p.countLimit(r, &m.keyedLimit, m.Bound, key)
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
func (r *Request) inFlightKey(m *boundInFlight) (key []byte, no rejection) {
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
