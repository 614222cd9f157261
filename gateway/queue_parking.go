package gateway

import (
	"sync"
	"time"

	"sluice/proxy"
	"sluice/proxy/server"
	"sluice/stockgate/ledger/protocol"
)

// parking holds the requests of clients that wait for another state of an order. None of them has a goroutine where
// event loops serve connections. It is safe for concurrent use.
type parking struct {
	mu      sync.Mutex
	orders  map[orderName]*parked
	clients int
	answers map[server.Client]parkedAnswer // of those that were resumed, until they are handled again
	filled  chan struct{}                  // holds one: there are clients again
}

type orderName struct{ sku, serial string }

// parked is one order whose clients wait.
type parked struct {
	order   proxy.WaitingOrder // as it was seen last; all of them have seen this state
	look    time.Time          // when it is looked at next
	waiters []waiter
}

// waiter is one parked request.
type waiter struct {
	client server.Client
	resume func()
	until  time.Time // then it is answered without news
}

type parkedAnswer struct {
	order proxy.WaitingOrder
	since time.Time
}

const (
	maxWaiters = 10_000           // clients that wait for another state
	answerLost = 10 * time.Second // a resumed request is handled long before
)

// park has a client wait for another state than that of o; false = there are too many, or it cannot wait.
func (p *parking) park(o *proxy.WaitingOrder, client server.Client, look, until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := orderName{o.SKU, o.Serial}
	one := p.orders[name]
	if p.clients >= maxWaiters || one != nil && one.order.State != o.State { // which of them is newer is not known
		return false
	}
	resume := client.Suspend()
	if resume == nil {
		return false
	}
	if one == nil {
		one = &parked{look: look}
		p.orders[name] = one
	}
	if one.order = *o; look.Before(one.look) {
		one.look = look
	}
	one.waiters = append(one.waiters, waiter{client, resume, until})
	p.clients++
	select {
	case p.filled <- struct{}{}:
	default:
	}
	return true
}

// found takes in what is known of an order now, and answers its clients if its state is another; else it is looked at
// again at a time.
func (p *parking) found(o *proxy.WaitingOrder, look time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.orders[orderName{o.SKU, o.Serial}]
	if one == nil {
		return
	}
	before := one.order.State
	if one.order, one.look = *o, look; before != o.State {
		p.resume(one, func(*waiter) bool { return true })
	}
}

// resume answers those clients of an order for whom it is time. mu is held.
func (p *parking) resume(one *parked, due func(*waiter) bool) {
	kept := one.waiters[:0]
	for i := range one.waiters {
		if w := &one.waiters[i]; due(w) {
			p.clients--
			p.answers[w.client] = parkedAnswer{one.order, time.Now()}
			w.resume()
		} else {
			kept = append(kept, *w)
		}
	}
	clear(one.waiters[len(kept):])
	if one.waiters = kept; len(kept) == 0 {
		delete(p.orders, orderName{one.order.SKU, one.order.Serial})
	}
}

// answer is what a client hears whose request was resumed.
func (p *parking) answer(client server.Client) (o proxy.WaitingOrder, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.answers[client]
	delete(p.answers, client)
	return a.order, ok
}

// due are the orders that are to be looked at, by SKU.
func (p *parking) due(now time.Time) map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string][]string)
	for name, one := range p.orders {
		if !now.Before(one.look) {
			all[name.sku] = append(all[name.sku], name.serial)
		}
	}
	return all
}

// sweep answers those who have waited long enough, with gone those who have left, and with all everyone.
func (p *parking) sweep(now time.Time, gone, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.orders {
		p.resume(one, func(w *waiter) bool { return all || !now.Before(w.until) || gone && w.client.Gone() })
	}
	for client, a := range p.answers {
		if now.Sub(a.since) > answerLost {
			delete(p.answers, client)
		}
	}
}

func (p *parking) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients
}

const (
	parkTick  = 40 * time.Millisecond // so often it is seen which orders are to be looked at
	goneTicks = 100                   // so many of them are between two looks whether clients are still there
)

// attend looks at orders whose clients wait, and answers those who have waited long enough, until Close.
func (q *orderQueue) attend() {
	defer q.parking.sweep(time.Now(), false, true)
	for {
		select {
		case <-q.closed:
			return
		case <-q.parking.filled:
		}
		tick := time.NewTicker(parkTick)
		for n := 1; q.parking.count() > 0; n++ {
			select {
			case <-q.closed:
				tick.Stop()
				return
			case <-tick.C:
			}
			now := time.Now()
			q.parking.sweep(now, n%goneTicks == 0, q.Draining())
			for sku, serials := range q.parking.due(now) {
				q.lookAtParked(sku, serials)
			}
		}
		tick.Stop()
	}
}

// lookAtParked looks at orders of a SKU. What cannot be seen now is looked at later.
func (q *orderQueue) lookAtParked(sku string, serials []string) {
	states, err := q.deliverer.FindAll(sku, serials)
	for i, serial := range serials {
		if err != nil || states[i].Err != nil {
			q.parking.later(orderName{sku, serial}, time.Now().Add(lookLate))
			continue
		}
		o := waitingOrder(sku, serial, &states[i])
		q.parking.found(&o, time.Now().Add(q.lookAgain(&o)))
	}
}

// later has an order looked at at a time.
func (p *parking) later(name orderName, look time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.orders[name]; one != nil {
		one.look = look
	}
}

// news takes in what this instance has done with an order.
func (q *orderQueue) news(sku string, place protocol.Position) {
	if q.parking.count() == 0 {
		return
	}
	s := q.deliverer.StateOf(sku, place)
	o := waitingOrder(sku, place.Serial, &s)
	q.parking.found(&o, time.Now().Add(lookLate))
}

// lookAgain is when the state of an order is worth another look: soon while the upstream has it, and later the longer
// it is going to wait, or the more clients wait. What this instance does with it is news by itself.
func (q *orderQueue) lookAgain(o *proxy.WaitingOrder) time.Duration {
	switch {
	case o.State == string(protocol.Delivering) && q.deliverer.Delivers(o.SKU, o.Serial):
		return lookLate
	case o.State == string(protocol.Delivering):
		return lookSoon
	case o.State != string(protocol.Queued) || o.ETA == 0:
		return max(lookUsual, q.parking.turn())
	}
	return max(min(max(o.ETA/4, lookSoon), lookLate), q.parking.turn())
}

// turn is how long it takes until all clients had their turn, at 2,000 looks a second.
func (p *parking) turn() time.Duration { return time.Duration(p.count()) * time.Second / 2000 }

const (
	lookSoon  = 40 * time.Millisecond
	lookUsual = 250 * time.Millisecond
	lookLate  = time.Second
)
