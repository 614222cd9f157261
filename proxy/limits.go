package proxy

import (
	"time"

	"sluice/proxy/reject"
)

// checkConnRate asks the request rate of the connection.
func (p *Proxy) checkConnRate(r *Request) rejection {
	if r.client.rate == nil {
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
	if p.observeOnly[reject.Window] {
		return rejection{}
	}
	if wait, full := p.Windows.Peek(r.checked, r.buyer.sku); full {
		return rejection{Reason: reject.Window, Wait: wait}
	}
	return rejection{}
}

// bookWindow books the request into a window, and waits until that begins.
func (p *Proxy) bookWindow(r *Request) rejection {
	wait, ok := p.Windows.Acquire(r.checked, r.buyer.sku)
	if !ok {
		return rejection{Reason: reject.Window, Wait: wait}
	}
	return p.sleep(r, wait)
}

// sleep waits as long as a limit has said: until the window that is booked begins, or until a rate admits the request.
func (p *Proxy) sleep(r *Request, wait time.Duration) rejection {
	if wait <= 0 {
		return rejection{}
	}
	r.conn.StepAside()
	time.Sleep(wait)
	if r.checked = p.Now(); r.conn.Gone() {
		return rejection{Reason: reject.ClientGone}
	}
	return rejection{}
}

// queueFull rejects a request when every slot and every place in the queue is taken now. A limit that is only
// observed is asked once, by acquireSlot.
func (p *Proxy) queueFull(r *Request) rejection {
	if p.observeOnly[reject.Concurrency] || !r.route.Concurrency.Peek(r.route.priority.Holds(&r.source)) {
		return rejection{}
	}
	r.limit = r.route.Bound
	return rejection{Reason: reject.Concurrency}
}

// acquireSlot takes a slot of the concurrency limit, and waits for one where none is free.
func (p *Proxy) acquireSlot(r *Request) rejection {
	slots := r.route.Concurrency
	if slots.TryAcquire() {
		r.acquired.slot = slots
		return rejection{}
	}
	r.conn.StepAside()
	if reason := slots.Acquire(r.conn, r.route.priority.Holds(&r.source)); reason != reject.Admitted {
		r.limit = r.route.Bound
		return rejection{Reason: reason}
	}
	r.acquired.slot = slots
	r.checked = p.Now()
	return rejection{}
}
