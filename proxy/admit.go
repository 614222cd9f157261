package proxy

import "time"

// Windows limits what may be admitted in one window of 10 ms: of all SKUs together, and of one.
type Windows interface {
	// Take books one unit at now (monotonic ns). The caller waits for wait, then goes on; when it is
	// refused, nothing was booked and wait tells when to come back.
	Take(now int64, sku []byte) (wait time.Duration, ok bool)

	// Full books nothing: it tells whether Take would refuse, and when to come back.
	Full(now int64, sku []byte) (wait time.Duration, full bool)
}

// Places limits how many requests are inside the shop at the same time.
type Places interface {
	// Enter waits for a place, within a bound: Admitted, Concurrency, QueueTimeout, or ClientGone when client had
	// left before its turn came.
	Enter(client Client) Reason
	// Leave gives the place back. took is how long the shop had the request, 0 where it never got it.
	Leave(took time.Duration)
}

// Client is who waits.
type Client interface {
	// Gone reports that nobody is there any longer to hear an answer. It does not wait.
	Gone() bool
	// StepAside is told before it waits.
	StepAside()
}

// admit asks the limits and the stock whether this request may go on: what is final comes before what is temporary,
// what is cheap before what waits.
func (p *Proxy) admit(r *request) (reason Reason, wait time.Duration) {
	switch r.route.Gate {
	case Limit:
		if reason, wait := p.offSale(r, r.now); reason != Admitted {
			return reason, wait
		}
	case Check:
		if reason, wait := p.offSale(r, r.now); reason != Admitted {
			return reason, wait
		}
		if reason := p.stock.Closed(r.now, r.sku); reason != Admitted {
			return reason, 0
		}
	case Reserve:
		if reason := p.closed(r); reason != Admitted {
			return reason, r.taken.Wait
		}
		if reason, wait := p.offSale(r, r.now); reason != Admitted {
			return reason, wait
		}
	}
	if reason := p.entitled(r); reason != Admitted {
		return reason, 0
	}
	if reason, wait := p.rated(r); reason != Admitted {
		return reason, wait
	}
	if reason := p.fromPages(r); reason != Admitted || r.served {
		return reason, 0
	}
	if reason, wait := p.crowded(r); reason != Admitted {
		return reason, wait
	}
	// Up to here nothing waits. Whatever does below steps aside first.
	if reason := p.takeBody(r); reason != Admitted {
		return reason, 0
	}
	if reason, wait := p.windowed(r); reason != Admitted {
		return reason, wait
	}
	if reason := p.enter(r); reason != Admitted {
		return reason, 0
	}
	// Its body, a window and a place may have taken their time: a pause and an end are for who waits, too.
	now := p.clock()
	if reason, wait := p.offSale(r, now); reason != Admitted {
		return reason, wait
	}
	switch r.route.Gate {
	case Check:
		if !p.stock.Known(now, r.sku, r.user) {
			r.conn.StepAside()
		}
		if reason := p.stock.Enter(now, r.sku, r.user); reason != Admitted {
			if reason == Concurrency {
				r.limit = p.unit
			}
			return reason, 0
		}
		r.admitted = true
	case Reserve:
		r.conn.StepAside()
		return p.take(r), r.taken.Wait
	}
	return Admitted, 0
}

// leave gives back what admit took; each at most once.
func (p *Proxy) leave(r *request) {
	if r.admitted {
		r.admitted = false
		p.stock.Leave(r.sku)
	}
	if r.placed != nil {
		r.placed.Leave(r.took)
		r.placed = nil
	}
}
