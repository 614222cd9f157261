package script

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/soldout"
)

const (
	maxQueue    = 8192   // orders that wait, of all SKUs
	maxGiveBack = 65_536 // orders whose units are to be given back
)

// Options say how a Reserver works. Zero values are replaced by the defaults named here.
type Options struct {
	Script *Script
	Redis  redisconn.Options

	Hold      time.Duration // the deadline that the upstream is told; nothing ends by it but with Keep; default 15 min
	Keep      *Keep         // nil = no order is kept, and units of unknown outcome stay taken
	Memory    time.Duration // for so long a reading that a SKU is sold out is trusted; default 10 ms
	MaxMemory time.Duration // the same while more than 64 sold-out SKUs are asked for in one Memory; default 1 s
	MaxWait   time.Duration // how old an order may be when it enters a batch; default 500 ms

	Named      []string // SKUs that metrics name; others follow while there is room
	MetricSKUs int      // SKUs that metrics name at most

	Now func() int64 // ns, the clock of the caller; default one that starts at 0
	Log *slog.Logger // default slog.Default()
}

func (o Options) filled() Options {
	o.Hold, o.Memory = cmp.Or(o.Hold, 15*time.Minute), cmp.Or(o.Memory, 10*time.Millisecond)
	o.MaxMemory, o.MaxWait = cmp.Or(o.MaxMemory, time.Second), cmp.Or(o.MaxWait, 500*time.Millisecond)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Now == nil {
		start := time.Now()
		o.Now = func() int64 { return int64(time.Since(start)) }
	}
	return o
}

// Reserver takes units by a script. It is a proxy.Orders, and safe for concurrent use. One batch is in flight at a
// time; orders that come meanwhile, of all SKUs, are the next one. It knows the orders that are under way in this
// instance, and forgets each with its end.
type Reserver struct {
	o       Options
	way     servers
	script  *Script
	apart   error // what the orders of a cluster are told; nil = all keys of a call are in one slot
	fits    atomic.Bool
	soldOut *soldout.Cache
	counts  *counts
	keeper  *keeper // nil = no order is kept

	mu         sync.Mutex
	closed     bool
	queue      []*pending
	sending    bool              // a batch is in flight
	asked      int               // sold-out SKUs that were asked for, since window
	window     int64             // ns
	underWay   map[string]*order // by handle: from Reserve to Settle
	owed       []*order          // to be given back
	givingBack bool
	logged     map[string]struct{} // SKUs whose fault is in the log

	work   sync.WaitGroup
	ctx    context.Context // of calls; ends when Close gives up
	cancel context.CancelFunc
}

// pending is one order that waits.
type pending struct {
	order
	since    int64         // ns
	deadline int64         // Unix ms, of an order that was admitted
	kept     reject.Reason // why an order is not admitted though its units were, or may have been, taken
	owes     bool          // those units are given back
	out      chan reject.Reason
}

const (
	maxBatch  = 256  // orders
	maxAsked  = 64   // sold-out SKUs that are asked for in one Memory
	maxLogged = 1000 // SKUs; the faults of others are counted alone
)

// New returns a Reserver. It does not wait for Redis: whether it is there shows at the first order. The caller must
// Close it.
func New(o Options) (*Reserver, error) {
	o = o.filled()
	l, err := redisconn.New(o.Redis)
	if err != nil {
		return nil, err
	}
	r := &Reserver{
		o: o, way: servers{l}, script: o.Script, apart: o.Script.OneSlot(), soldOut: soldout.New(),
		underWay: make(map[string]*order), logged: make(map[string]struct{}),
		counts: newCounts(o.Script.name, o.Named, o.MetricSKUs),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if o.Keep != nil {
		if err := r.keepOrders(); err != nil {
			_ = l.Close()
			return nil, err
		}
	}
	return r, nil
}

// Decided implements proxy.Orders. It writes nothing. An order whose key may have a record is looked up.
func (r *Reserver) Decided(now int64, o proxy.Order) (proxy.Reservation, bool) {
	reason, at, closed := r.soldOut.Lookup(o.SKU, o.Quantity)
	if closed = closed && now-at <= int64(r.o.Memory); closed && r.recalls(o.Key) {
		return proxy.Reservation{LookUp: true}, false
	}
	return proxy.Reservation{Reason: reason}, closed
}

// LookUp implements proxy.Orders. It runs no script.
func (r *Reserver) LookUp(now int64, in proxy.Order) (proxy.Reservation, bool) {
	reason, at, closed := r.soldOut.Lookup(in.SKU, in.Quantity)
	if !closed || now-at > int64(r.o.Memory) || !r.recalls(in.Key) {
		return proxy.Reservation{}, false
	}
	o := &order{sku: string(in.SKU), user: string(in.User), serial: string(in.Key), quantity: in.Quantity}
	r.mu.Lock()
	underWay := r.underWay[o.handle()] != nil
	r.mu.Unlock()
	if underWay {
		return proxy.Reservation{Reason: reject.InProgress}, true
	}
	return r.keeper.recall(o, reason), true
}

// recalls reports whether an order with such a key may have a record.
func (r *Reserver) recalls(key []byte) bool { return r.keeper != nil && len(key) > 0 }

// Reserve implements proxy.Orders. It waits for at most MaxWait, and then for the batch in flight and its own.
func (r *Reserver) Reserve(now int64, in proxy.Order) proxy.Reservation {
	p := &pending{since: now, out: make(chan reject.Reason, 1)}
	p.sku, p.user, p.quantity, p.at = string(in.SKU), string(in.User), in.Quantity, time.Now().Unix()
	if p.serial = string(in.Key); p.serial == "" {
		p.serial = rand.Text()
	}
	if r.script.named[tokenName] {
		p.token = rand.Text()
	}
	reason := r.unfit(&p.order)
	if reason == reject.Admitted {
		reason = r.join(p)
	}
	if reason != reject.Admitted {
		return proxy.Reservation{Reason: reason}
	}
	switch reason = <-p.out; {
	case reason == reject.Admitted:
		return proxy.Reservation{Serial: p.serial, Deadline: p.deadline}
	case noUnits(reason) && r.recalls(in.Key):
		return r.keeper.recall(&p.order, reason)
	}
	return proxy.Reservation{Reason: reason}
}

// unfit rejects orders that the script could never take.
func (r *Reserver) unfit(o *order) reject.Reason {
	switch s := r.script; {
	case o.quantity < 1, o.quantity > 1 && !s.named[quantityName], o.user == "" && s.named[userName]:
		return reject.BadRequest
	case !s.fits(o.sku):
		return reject.UnknownSKU
	}
	return reject.Admitted
}

// join puts p into the queue, or tells why not.
func (r *Reserver) join(p *pending) reject.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return reject.ShuttingDown
	case r.underWay[p.handle()] != nil:
		return reject.InProgress
	case len(r.queue) >= maxQueue:
		return reject.Concurrency
	}
	r.underWay[p.handle()] = &p.order
	r.queue = append(r.queue, p)
	if !r.sending {
		r.sending = true
		r.work.Go(r.send)
	}
	return reject.Admitted
}

// send brings batches to Redis, one after the other, until the queue is empty.
func (r *Reserver) send() {
	for batch := r.next(); batch != nil; batch = r.next() {
		if r.keeper != nil && r.script.repeatable && !r.script.preset {
			r.keeper.answerKnown(batch)
		}
		var orders []*order
		for _, p := range batch {
			if p.kept == reject.Admitted {
				orders = append(orders, &p.order)
			}
		}
		began := r.o.Now()
		r.takeUnits(orders)
		for _, o := range orders {
			r.recordOutcome(began, o)
		}
		r.keepTaken(batch)
		for _, p := range batch {
			r.answer(p, cmp.Or(p.kept, p.outcome.reason()))
		}
		r.oweTaken(batch)
	}
}

// next takes the next batch out of the queue, and answers the orders that need none any more. Of a SKU that was sold
// out at the last reading one order goes, and the others wait for what it finds: they come after a restock as it does.
func (r *Reserver) next() (batch []*pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, kept := r.o.Now(), r.queue[:0]
	asking := map[string]bool{} // SKUs that were sold out
	for i, p := range r.queue {
		if len(batch) == maxBatch {
			kept = append(kept, r.queue[i:]...)
			break
		}
		reason, at, closed := r.soldOut.Lookup([]byte(p.sku), p.quantity)
		switch {
		case now-p.since > int64(r.o.MaxWait):
			r.complete(p, reject.Concurrency)
		case closed && (at >= p.since || now-at <= int64(r.o.Memory)):
			r.complete(p, reason)
		case closed && asking[p.sku]:
			kept = append(kept, p)
		case closed && !r.mayAsk(now) && now-at <= int64(r.o.MaxMemory):
			r.complete(p, reason)
		default:
			asking[p.sku] = closed
			batch = append(batch, p)
		}
	}
	clear(r.queue[len(kept):])
	r.queue, r.sending = kept, len(batch) > 0
	return batch
}

// mayAsk counts one more sold-out SKU that is asked for. It bounds what many of them cost Redis. mu is held.
func (r *Reserver) mayAsk(now int64) bool {
	if now-r.window > int64(r.o.Memory) {
		r.window, r.asked = now, 0
	}
	r.asked++
	return r.asked <= maxAsked
}

// takeUnits runs the script for orders, if their keys lie together and they can be kept.
func (r *Reserver) takeUnits(orders []*order) {
	if len(orders) == 0 {
		return
	}
	err, why := r.Fit(r.ctx), notSent
	if err == nil && r.keeper != nil {
		if err = r.keeper.writable(r.ctx); answered(err) {
			why = failed
		}
	}
	if err != nil {
		for _, o := range orders {
			o.outcome, o.err = why, err
		}
		return
	}
	r.script.runTake(r.ctx, r.way, orders)
}

// Fit finds out what Redis is, where the keys of one call may lie in several slots, and returns ErrApart for a cluster.
// A Redis that cannot be reached is another error. Until Fit has succeeded no script is sent.
func (r *Reserver) Fit(ctx context.Context) error {
	if r.apart == nil || r.fits.Load() {
		return nil
	}
	switch topology, err := r.way.Topology(ctx); {
	case err != nil:
		return err
	case topology == redisconn.Cluster:
		return r.apart
	}
	r.fits.Store(true)
	return nil
}

// recordOutcome notes what the outcome of o, whose call began at a time, says of its SKU.
func (r *Reserver) recordOutcome(at int64, o *order) {
	r.counts.countOrder(o)
	switch o.outcome {
	case taken:
		r.soldOut.InStock(at, o.sku, o.quantity)
	case soldOut:
		r.soldOut.Close(at, o.sku, o.quantity, o.outcome.reason())
	case unknownSKU, paused:
		r.soldOut.Close(at, o.sku, 1, o.outcome.reason())
	case unknown:
		r.counts.countUnits(o, unitsUnanswered)
	}
}

// answer gives p its reason, and logs a fault of its SKU once. That Redis cannot be reached is logged elsewhere.
func (r *Reserver) answer(p *pending, reason reject.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete(p, reason)
	_, before := r.logged[p.sku]
	if p.err == nil || !answered(p.err) || p.outcome == notSent || before || len(r.logged) >= maxLogged {
		return
	}
	r.logged[p.sku] = struct{}{}
	r.o.Log.Error("orders of this SKU are rejected with stock_error", "script", r.script.name, "sku", p.sku, "err", p.err)
}

// complete gives p its reason. An order that is not admitted is not under way any more. mu is held.
func (r *Reserver) complete(p *pending, reason reject.Reason) {
	if reason != reject.Admitted {
		delete(r.underWay, p.handle())
	}
	p.out <- reason
}

// State implements proxy.Orders: without Keep there is no record of an order.
func (r *Reserver) State(_ int64, sku, serial []byte) (proxy.OrderState, reject.Reason) {
	if r.keeper == nil {
		return proxy.OrderState{State: "none"}, reject.Admitted
	}
	return r.keeper.state(string(sku), string(serial))
}

// Close rejects new orders, answers those that wait and gives back what is owed until ctx ends; what Redis has not got
// by then is counted, and written to the log.
func (r *Reserver) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	stop := context.AfterFunc(ctx, r.cancel)
	if r.keeper != nil {
		r.keeper.close(ctx)
	}
	r.work.Wait()
	stop()
	r.cancel()
	_ = r.way.Close()
}
