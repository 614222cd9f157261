package proxy

import (
	"time"

	"sluice/proxy/reject"
)

// A client on the bypass list meets none of these limits.

// checkConnRate asks the request rate of the connection.
func (p *Proxy) checkConnRate(r *Request) rejection {
	if r.bypass || r.client.rate == nil {
		return rejection{}
	}
	wait, ok := r.client.rate.Allow(p.start.Add(time.Duration(r.now)))
	if ok {
		return rejection{}
	}
	p.countClient(r, reject.ConnRate)
	return rejection{Reason: reject.ConnRate, Wait: wait}
}

// windowFull rejects a request when the windows are full now. It books nothing, so that a rejection costs no more
// than a look, and a slow body never holds a place in a window that passes meanwhile. A window that is only observed is
// asked once, where it is booked: else it would count the request twice.
func (p *Proxy) windowFull(r *Request) rejection {
	if r.bypass || p.observeOnly[reject.Window] {
		return rejection{}
	}
	if wait, full := p.Windows.Peek(r.checked, r.buyer.sku); full {
		return rejection{Reason: reject.Window, Wait: wait}
	}
	return rejection{}
}

// bookWindow books the request into a window, and admits it where that has begun.
func (p *Proxy) bookWindow(r *Request) (no rejection, decided bool) {
	if r.bypass {
		return no, true
	}
	wait, ok := p.Windows.Acquire(r.checked, r.buyer.sku)
	if !ok {
		return rejection{Reason: reject.Window, Wait: wait}, true
	}
	r.wait = wait
	return rejection{}, wait <= 0
}

// sleep waits as long as a limit has said: until the window that is booked begins, or until a rate admits the request.
func (p *Proxy) sleep(r *Request) rejection {
	time.Sleep(r.wait)
	if r.conn.Gone() {
		return rejection{Reason: reject.ClientGone}
	}
	return rejection{}
}

// queueFull rejects a request when every slot and every place in the queue is taken now. A limit that is only
// observed is asked once, by acquireSlot.
func (p *Proxy) queueFull(r *Request) rejection {
	if r.bypass || p.observeOnly[reject.Concurrency] || !p.concurrencyOf(r).Peek(r.route.priority.Holds(&r.source)) {
		return rejection{}
	}
	r.limit = r.route.Bound
	return rejection{Reason: reject.Concurrency}
}

// takeFreeSlot takes a slot of the concurrency limit, where one is free.
func (p *Proxy) takeFreeSlot(r *Request) (no rejection, decided bool) {
	if slots := p.concurrencyOf(r); !r.bypass && slots.TryAcquire() {
		r.acquired.slot = slots
	}
	return rejection{}, r.bypass || r.acquired.slot != nil
}

// acquireSlot waits for a slot of the concurrency limit.
func (p *Proxy) acquireSlot(r *Request) (no rejection) {
	slots := p.concurrencyOf(r)
	if no.Reason = slots.Acquire(r.conn, r.route.priority.Holds(&r.source)); no.Reason == reject.Admitted {
		r.acquired.slot = slots
	} else {
		r.limit = r.route.Bound
	}
	return no
}

func (p *Proxy) concurrencyOf(r *Request) ConcurrencyLimiter {
	if r.route.Concurrency != nil {
		return r.route.Concurrency
	}
	return p.Concurrency
}
