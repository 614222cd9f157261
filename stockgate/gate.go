// Package stockgate rejects orders that a shop has no stock for, before they reach it.
//
// It promises that the cost to Redis depends on the number of SKUs that are asked for and not on the number of
// buyers: one goroutine reads those that a request has asked for every few milliseconds, many at once, a request costs
// a look-up and a few atomic loads, and ten thousand first requests for a SKU wait for one read. It promises that its
// memory is bounded whatever SKUs clients invent, and that stock which cannot be known is decided by configuration
// (on_error) and counted.
//
// Where the shop keeps a set of who has bought, a user in it is rejected as well; that is asked for requests that
// may go on otherwise, many in one round trip, and for no others.
//
// It does not take stock: here the shop itself deducts, and the gate only reads. What it says is as old as
// Options.Refresh while there is a crowd, so more buyers than there are units pass: of one reading at most
// Options.PerUnit for each unit that it found. After a pause a reading is as old as a quarter of
// Options.SoldOutMemory, and beyond 200 ms lets pass one. The shop must still check.
package stockgate

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"sluice/internal/octets"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// Gate decides by the stock that its poller read last. It implements proxy.Stock and is safe for concurrent use.
type Gate struct {
	table  *octets.Table[entry]
	poller *poller
	buyers *buyers // nil = buyers may come again
	rules  atomic.Pointer[rules]

	waiting   atomic.Int64 // requests that wait for a first reading
	fallbacks fallbacks
	strays    untracked
	stop      context.CancelFunc
}

var _ proxy.Stock = (*Gate)(nil)

// New returns a gate that reads src until it is closed. It does not wait for src.
func New(o Options, src Source) (*Gate, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	g := newGate(o, src)
	ctx, cancel := context.WithCancel(context.Background())
	g.stop = cancel
	go g.poller.run(ctx)
	if g.buyers != nil {
		go g.buyers.run(ctx)
	}
	return g, nil
}

// newGate makes a gate whose poller does not run.
func newGate(o Options, src Source) *Gate {
	g := &Gate{table: octets.NewTable[entry](o.MaxSKUs)}
	g.rules.Store(rulesOf(&o, math.MinInt64))
	g.poller = newPoller(o, src, g.table, &g.rules)
	if o.Bought != nil {
		g.buyers = newBuyers(o.Bought, o.Wait, o.Log)
	}
	return g
}

// Close stops what New has started and waits for it. Later requests are decided as if the stock could not be known.
func (g *Gate) Close() {
	g.stop()
	<-g.poller.done
	if g.buyers != nil {
		<-g.buyers.done
	}
}

// Away is for how long the source has not been reached, 0 while it can be. The poller finds out within a
// second even without requests.
func (g *Gate) Away(now int64) time.Duration { return g.poller.health.away(now) }

// Missing is how many readings there were while none has found a key: the source may have been emptied. It is 0 once
// one has, since what is missing then may be a client's invention.
func (g *Gate) Missing() uint64 {
	if g.poller.found.Load() {
		return 0
	}
	return g.poller.readings.Load()
}

// Closed implements proxy.Stock: SoldOut, Paused when the status is not one of status_open, UnknownSKU, or
// Admitted. It neither allocates nor waits.
func (g *Gate) Closed(now int64, sku []byte) reject.Reason {
	e := g.table.Find(sku)
	if e == nil {
		return reject.Admitted
	}
	v, at := e.reading()
	e.markAsked(now, at)
	rules := g.rules.Load()
	if !rules.serves(now, at, v) {
		return reject.Admitted // Enter will look again
	}
	return rules.closed[v]
}

// AwaitReading implements proxy.Stock. It is asked before a request takes a place in the shop, so that requests for
// invented SKUs do not fill it while they wait to be read.
func (g *Gate) AwaitReading(now int64, sku []byte, on interface{ StepAside() }) (reason reject.Reason, waited bool) {
	e := g.entryOf(now, sku)
	if e == nil {
		if len(g.poller.queue) == cap(g.poller.queue) && !g.poller.health.lost() {
			return reject.Concurrency, false
		}
		return reject.Admitted, false // Enter decides
	}
	v, at := e.reading()
	if waited = v != onSale && !g.rules.Load().serves(now, at, v); waited {
		on.StepAside()
		v = g.firstRead(now, e)
	}
	return g.rules.Load().closed[v], waited
}

// Enter implements proxy.Stock: the reasons of Closed, Concurrency when the last reading has admitted
// max_in_flight_per_unit requests for each unit left or too many requests wait for a first reading, Duplicate when user
// has bought before, StockError when the stock or the buyers cannot be known and on_error is "reject". For a SKU that
// no request asked for lately all requests wait for one reading, and where buyers are known for one answer more, each
// at most for Options.Wait; for a second reading, where the first is not believed, as long again and Options.Refresh
// more. At most maxWaiting requests wait.
func (g *Gate) Enter(now int64, sku, user []byte) reject.Reason {
	e := g.entryOf(now, sku)
	switch {
	case e != nil:
	case len(sku) > longestSKU:
		return g.rules.Load().closed[unknown]
	default:
		if g.rules.Load().allow {
			g.strays.add(sku)
		}
		return g.fallback(nil)
	}
	v := g.verdict(now, e)
	reason := g.decide(e, v)
	if reason == reject.Admitted && g.asksBuyers(user) && v != unread && v != faulty {
		return g.checkBuyer(e, user)
	}
	return reason
}

// EnterAtOnce implements proxy.Stock.
func (g *Gate) EnterAtOnce(now int64, sku, user []byte) (reason reject.Reason, known bool) {
	e := g.table.Find(sku)
	if e == nil || g.asksBuyers(user) {
		return reject.Admitted, false
	}
	v, at := e.reading()
	if !g.rules.Load().serves(now, at, v) {
		return reject.Admitted, false
	}
	e.markAsked(now, at)
	return g.decide(e, v), true
}

// asksBuyers reports whether user may have bought before.
func (g *Gate) asksBuyers(user []byte) bool {
	return g.buyers != nil && len(user) > 0 && !g.rules.Load().again
}

// checkBuyer decides for a request that decide has admitted: only who has not bought goes on. It is the last question
// because it is the dearest, and all that was rejected before has not asked it.
func (g *Gate) checkBuyer(e *entry, user []byte) reject.Reason {
	found := undetermined
	if !g.poller.health.lost() {
		found = g.buyers.membershipOf(e.sku, user)
	}
	if found == newBuyer {
		return reject.Admitted
	}
	e.cancel()
	if found == hasBought {
		return reject.Duplicate
	}
	return g.fallback(e)
}

// decide turns a verdict into an answer, and counts the request in where max_in_flight_per_unit needs that.
func (g *Gate) decide(e *entry, v verdict) reject.Reason {
	closed := g.rules.Load().closed[v]
	switch {
	case v == unread || v == faulty:
		return g.fallback(e)
	case closed != reject.Admitted:
		return closed
	case v != onSale:
		e.admit() // unknown_sku allows it
	case !e.admitWithinQuota():
		return reject.Concurrency
	}
	return reject.Admitted
}

// Leave implements proxy.Stock.
func (g *Gate) Leave(sku []byte) {
	stray := g.strays.remove(sku)
	switch e := g.table.Find(sku); {
	case e == nil:
	case stray:
		e.ended.Add(1) // it may have taken a unit all the same
	default:
		e.release()
	}
}

// times is a × b for positive a, held at 64 bits.
func times(a, b int64) int64 {
	if b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// StockStatus tells what every client may know of sku at now: its phase, and the units that are free, below 0 where
// that is unknown. A request keeps the SKU among those that are read, like a buyer; one that no request asked for
// lately is looked at once for all who do, as Enter does. What is not known is not waited for while the source is away.
func (g *Gate) StockStatus(now int64, sku []byte) (phase proxy.StockPhase, free int64) {
	e := g.entryOf(now, sku)
	if e == nil {
		return proxy.PhaseUnknown, -1
	}
	switch g.verdict(now, e) {
	case onSale:
		return proxy.PhaseInStock, e.free.Load()
	case soldOut:
		return proxy.PhaseSoldOut, 0
	case notOnSale:
		return proxy.PhasePaused, -1
	}
	return proxy.PhaseUnknown, -1
}

// fallbacks counts what on_error decided. It is written by Enter alone, which stands behind the limits: the
// crowd does not reach it.
type fallbacks struct{ allowed, rejected atomic.Uint64 }

// fallback decides for a request whose stock cannot be known. e may be nil.
func (g *Gate) fallback(e *entry) reject.Reason {
	if !g.rules.Load().allow {
		g.fallbacks.rejected.Add(1)
		return reject.StockError
	}
	g.fallbacks.allowed.Add(1)
	if e != nil {
		e.admit()
	}
	return reject.Admitted
}
