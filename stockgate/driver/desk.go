package driver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/link"
)

// Options say how a desk works. Durations and counts that are not positive are replaced by the defaults named here.
type Options struct {
	Layout  Layout
	Link    link.Options
	Cluster bool // Redis is one: keys of a SKU that lie apart are refused

	Hold          time.Duration // the deadline that shops are told; nothing ends by it; default 15 min
	SoldOutMemory time.Duration // at the latest after this a closed SKU is looked at again; default 1 s
	MaxWait       time.Duration // how old an order may be when it enters a batch; default 500 ms
	MaxQueue      int           // orders that wait, of all SKUs; default 8192
	MaxGivingBack int           // orders whose units are to be given back; default 65,536

	Now func() int64 // ns, the clock of those who call the desk; default one that starts at 0
	Log *slog.Logger // default slog.Default()
}

func (o Options) filled() Options {
	fill(&o.Hold, 15*time.Minute)
	fill(&o.SoldOutMemory, time.Second)
	fill(&o.MaxWait, 500*time.Millisecond)
	fill(&o.MaxQueue, 8192)
	fill(&o.MaxGivingBack, 65_536)
	if o.Now == nil {
		start := time.Now()
		o.Now = func() int64 { return int64(time.Since(start)) }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// fill puts a default in the place of a number that is not positive.
func fill[T int | time.Duration](v *T, by T) {
	if *v <= 0 {
		*v = by
	}
}

// Desk takes units by a driver for many buyers at once. It is a proxy.Orders, and safe for concurrent use. Orders share
// round trips: those of all SKUs that wait leave together when no batch is under way; there is no timer. What is closed
// it says from memory. It knows the orders that are under way in this instance, and forgets each with its end.
type Desk struct {
	o        Options
	way      way
	decision decision
	keys     *keys
	promise  Promise
	latches  *latches
	counts   counts
	faults   faults

	mu     sync.Mutex
	closed bool
	queue  []*ticket
	busy   bool                // a batch is under way
	held   map[string]*order   // by serial: taken, and not settled
	keyed  map[string]struct{} // clients' keys of orders under way, each with its SKU
	owed   []*order            // to be given back
	wake   chan struct{}       // has an element when owed may have one

	work sync.WaitGroup
	ctx  context.Context // of calls; ends when Close gives up
	cut  context.CancelFunc
	rest chan struct{} // closed when no order will come any more
}

// ticket is one order that waits.
type ticket struct {
	order
	key   string // of the client, with the SKU; "" = none
	since int64  // ns
	probe bool   // it looks whether the latch is still right
	out   chan why
}

const mostOrders = 256 // in one batch

// New returns a desk. It does not wait for Redis: whether it is there shows at the first order. The caller must Close it.
func New(o Options) (*Desk, error) {
	o = o.filled()
	promise, ok := promiseOf(o.Layout.Driver)
	if !ok {
		return nil, errors.New("driver " + o.Layout.Driver + " is not known")
	}
	l, err := link.New(o.Link)
	if err != nil {
		return nil, err
	}
	d := &Desk{
		o: o, way: way{l}, promise: promise, latches: newLatches(int64(o.SoldOutMemory)),
		held: make(map[string]*order), keyed: make(map[string]struct{}),
		wake: make(chan struct{}, 1), rest: make(chan struct{}),
	}
	if d.decision, d.keys, err = open(o.Layout, d.way, o.Cluster); err != nil {
		_ = l.Close()
		return nil, err
	}
	d.ctx, d.cut = context.WithCancel(context.Background())
	d.work.Go(d.giveBack)
	return d, nil
}

// Decided implements proxy.Orders. It writes nothing.
func (d *Desk) Decided(now int64, o proxy.Order) (proxy.Reservation, bool) {
	found, closed := d.latches.closed(now, o.SKU, o.Quantity)
	return proxy.Reservation{Reason: reasons[found]}, closed
}

// Reserve implements proxy.Orders. It waits for at most MaxWait, and then for the batch under way and its own.
func (d *Desk) Reserve(now int64, in proxy.Order) proxy.Reservation {
	t := &ticket{since: now, out: make(chan why, 1)}
	t.sku, t.user, t.quantity, t.at = string(in.SKU), string(in.User), in.Quantity, time.Now().Unix()
	if len(in.Key) > 0 {
		t.serial, t.key = string(in.Key), t.sku+" "+string(in.Key) // no SKU has a space
	} else {
		t.serial = unique()
	}
	if refused := d.unfit(&t.order); refused != reject.Admitted {
		return proxy.Reservation{Reason: refused}
	}
	if refused := d.join(t); refused != reject.Admitted {
		return proxy.Reservation{Reason: refused}
	}
	found := <-t.out
	if found != taken {
		return proxy.Reservation{Reason: reasons[found]}
	}
	return proxy.Reservation{Reason: reject.Admitted, Serial: t.serial, Deadline: time.Now().Add(d.o.Hold).UnixMilli()}
}

// join lets t wait for a batch, or tells why not.
func (d *Desk) join(t *ticket) reject.Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, underWay := d.keyed[t.key]
	switch {
	case d.closed:
		return reject.ShuttingDown
	case underWay:
		return reject.InProgress
	case len(d.queue) >= d.o.MaxQueue:
		return reject.Concurrency
	}
	if found, closed := d.latches.probe(t.since, t.sku, t.quantity); closed {
		return reasons[found]
	} else if found != taken {
		t.probe = true
	}
	if t.key != "" {
		d.keyed[t.key] = struct{}{}
	}
	d.queue = append(d.queue, t)
	if !d.busy {
		d.busy = true
		d.work.Go(d.carry)
	}
	return reject.Admitted
}

// carry brings batches to Redis, one after the other, until nobody waits.
func (d *Desk) carry() {
	for {
		batch := d.next()
		if batch == nil {
			return
		}
		orders := make([]*order, len(batch))
		for i, t := range batch {
			orders[i] = &t.order
		}
		began := d.o.Now()
		d.decision.take(d.ctx, orders)
		for _, t := range batch {
			d.latches.learn(began, &t.order)
		}
		for _, t := range batch {
			d.answer(t)
		}
	}
}

// next takes the next batch out of the queue, and answers those who need none any more.
func (d *Desk) next() (batch []*ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	for len(d.queue) > 0 && len(batch) < mostOrders {
		t := d.queue[0]
		d.queue[0] = nil
		d.queue = d.queue[1:]
		found, closed := d.latches.closed(now, []byte(t.sku), t.quantity)
		switch {
		case now-t.since > int64(d.o.MaxWait):
			d.turnAway(t, tooLate)
		case closed && !t.probe:
			d.turnAway(t, found)
		default:
			batch = append(batch, t)
		}
	}
	d.busy = len(batch) > 0
	return batch
}

// turnAway answers t without having asked. mu is held.
func (d *Desk) turnAway(t *ticket, w why) {
	if t.probe {
		d.latches.probed(t.sku)
	}
	delete(d.keyed, t.key)
	t.out <- w
}

// answer tells t what became of it, and keeps it in mind while it is under way.
func (d *Desk) answer(t *ticket) {
	d.counts.note(t.why, t.quantity)
	if t.err != nil {
		d.faults.say(d.o.Log, d.o.Layout.Driver, t.sku, t.why, t.err)
	}
	d.mu.Lock()
	if t.probe {
		d.latches.probed(t.sku)
	}
	if t.why == taken {
		d.held[t.handle()] = &t.order
	} else {
		delete(d.keyed, t.key)
	}
	d.mu.Unlock()
	t.out <- t.why
}

// handle is the name of an order among those under way: the SKU too, since clients choose serials.
func (o *order) handle() string { return o.sku + " " + o.serial }

// Settle implements proxy.Orders. What was dropped is given back; what is unsure stays taken.
func (d *Desk) Settle(sku []byte, serial string, f metrics.OrderOutcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	handle := string(sku) + " " + serial
	o := d.held[handle]
	delete(d.held, handle)
	delete(d.keyed, handle)
	switch {
	case o == nil:
	case f == metrics.OrderUnknown:
		d.counts.kept.Add(uint64(o.quantity))
	case f == metrics.OrderRejected && (d.closed || len(d.owed) >= d.o.MaxGivingBack):
		d.lose(o)
	case f == metrics.OrderRejected:
		d.owed = append(d.owed, o)
		select {
		case d.wake <- struct{}{}:
		default: // whoever is awake looks again
		}
	}
}

// State implements proxy.Orders: no driver keeps a record of an order.
func (d *Desk) State(int64, []byte, []byte) (proxy.OrderState, reject.Reason) {
	return proxy.OrderState{State: "none"}, reject.Admitted
}

// Close refuses new orders, answers those that wait and gives back what is owed until ctx ends; what Redis has not
// heard by then is counted, and written to the log.
func (d *Desk) Close(ctx context.Context) {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	d.mu.Unlock()
	if !first {
		return
	}
	close(d.rest)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.work.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	d.cut()
	<-done
	_ = d.way.Close()
}
