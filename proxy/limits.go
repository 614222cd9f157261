package proxy

import "time"

// A client on the bypass list meets none of the limits below; a limit that is only observed counts what it would have
// refused, and the request goes on to the next.

// spares counts a refusal by a limit that is only observed.
func (p *Proxy) spares(r *request, reason Reason) bool {
	if !p.spared[reason] {
		return false
	}
	r.tally().observed[reason].Add(1)
	r.observed = reason
	return true
}

// observes reports whether connections that one of their limits refuses are let in.
func (p *Proxy) observes(reason Reason) bool { return p.observe || p.spared[reason] }

// paced asks the connection's own rate.
func (p *Proxy) paced(r *request) (reason Reason, wait time.Duration) {
	if r.bypass {
		return Admitted, 0
	}
	wait, ok := r.conn.allow(p.start.Add(time.Duration(r.now)))
	if ok {
		return Admitted, 0
	}
	r.shard.loud.noteClient(r, ConnRate)
	if p.spares(r, ConnRate) {
		return Admitted, 0
	}
	return ConnRate, wait
}

// crowded refuses a request whose body is still to come when the windows are full now. It books nothing: a body that
// dawdles would keep a place in windows that pass, and come in beside those who were booked into a later one.
func (p *Proxy) crowded(r *request) (reason Reason, wait time.Duration) {
	if r.bypass || r.bodyRead || !r.hasBody() || p.spared[Window] {
		return Admitted, 0
	}
	if wait, full := p.windows.Full(r.now, r.sku); full {
		return Window, wait
	}
	return Admitted, 0
}

// windowed books the request into a window, and waits for it. Nothing is waited for between the two but a place inside
// the shop: a window is of the instant at which the request goes on.
func (p *Proxy) windowed(r *request) (reason Reason, wait time.Duration) {
	if r.bypass {
		return Admitted, 0
	}
	now := r.now
	if r.hasBody() || r.fetches { // the body, or the answer that another was to fetch, may have taken its time
		now = p.clock()
	}
	wait, ok := p.windows.Take(now, r.sku)
	switch {
	case ok && wait > 0:
		r.conn.StepAside()
		time.Sleep(wait)
		if r.conn.Gone() {
			return ClientGone, 0
		}
	case !ok && !p.spares(r, Window):
		return Window, wait
	}
	return Admitted, 0
}

// enter takes a place inside the shop.
func (p *Proxy) enter(r *request) Reason {
	if r.bypass {
		return Admitted
	}
	places := r.route.Places
	if places == nil {
		places = p.places
	}
	reason := places.Enter(r.conn)
	if reason == Admitted {
		r.placed = places
		return Admitted
	}
	r.limit = r.route.Bound
	if p.spares(r, reason) {
		return Admitted
	}
	return reason
}

// exhausted reports that a connection has carried as many requests as one may. Its answer says that it is the last.
func (p *Proxy) exhausted(c *Conn) bool {
	return p.maxRequests > 0 && c.requests >= p.maxRequests && !c.shared
}
