package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"sluice/internal/batch"
	"sluice/stockgate/ledger"
)

// Deliverer takes orders that wait, of all SKUs, and sends them. Every instance has one. It is safe for concurrent use.
type Deliverer struct {
	*shared
	stop context.CancelFunc // ends ctx
	wake chan struct{}      // holds one
	halt chan struct{}      // closed when Close begins
	work sync.WaitGroup

	lines    lines
	looks    batch.Calls[string, ledger.Position]
	looking  atomic.Int64 // orders that clients look for now
	asks     atomic.Int64
	slots    slots
	sender   sender
	decider  decider
	underway underway
	stall    stall
}

// shared is what the parts of a deliverer have in common. It is safe for concurrent use.
type shared struct {
	now  atomic.Pointer[Options]
	ctx  context.Context // of what is sent and asked; ends when Close gives up
	pace *pace

	counts [numAttemptKinds]atomic.Uint64
	calls  [numCallKinds]atomic.Uint64
	expire atomic.Uint64
	alarms atomic.Uint64 // orders that became stuck

	unasked rate.Sometimes // when a line is due
}

// live are the options in force.
func (s *shared) live() *Options { return s.now.Load() }

const (
	idleWait    = 250 * time.Millisecond  // while nothing waits
	fullWait    = 20 * time.Millisecond   // while others have all places; it doubles
	longestIdle = 2500 * time.Microsecond // of places while orders wait
	longestDry  = 160 * time.Millisecond
	faultWait   = 500 * time.Millisecond // after an error of the store
	callLimit   = 2 * time.Second        // of one call of the store
	maxTake     = 128                    // orders in one turn
)

// New starts a deliverer. The caller must Close it.
func New(o Options) *Deliverer {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	common := &shared{pace: newPace(o.MaxInFlight, time.Now()), unasked: rate.Sometimes{Interval: unaskedLog}}
	common.now.Store(&o)
	d := &Deliverer{shared: common, wake: make(chan struct{}, 1), halt: make(chan struct{}), sender: sender{common}}
	common.ctx, d.stop = context.WithCancel(context.Background())
	d.slots.shared, d.slots.prefix = common, rand.Text()[:12]
	d.decider.shared, d.decider.underway = common, &d.underway
	d.lines.all, d.underway.sending = make(map[string]*line), make(map[orderName]bool)
	d.looks.Call, d.looks.Most, d.looks.Pace = d.find, ledger.MaxItems, new(gathering)
	decisions := &d.decider.batch
	decisions.Call, decisions.Most, decisions.Pace = d.decider.tellAll, ledger.MaxItems, new(gathering)
	d.work.Go(d.run)
	return d
}

// Use goes by other options from now on, on the same store. What is under way goes on.
func (d *Deliverer) Use(o Options) {
	d.now.Store(&o)
	d.pace.use(o.MaxInFlight, time.Now())
	d.rouse()
}

// Close takes no more orders, and waits for those that were sent until ctx ends. What is not answered by then is asked
// about by other instances, or by this one when it is back.
func (d *Deliverer) Close(ctx context.Context) {
	close(d.halt)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.work.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	d.stop()
	<-ended
	d.slots.giveBack()
}

// Accepted says that an order of sku waits now. It tells about how many wait before it, and how long it will wait; 0 =
// that is not known.
func (d *Deliverer) Accepted(sku string) (ahead int64, eta time.Duration) {
	ahead = d.lines.accepted(sku)
	d.rouse()
	return ahead, d.lines.eta(sku, ahead)
}

// rouse has the loop look at once.
func (d *Deliverer) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Deliverer) run() {
	var g gathering
	for {
		wait, sent, left := d.turn()
		g.Count(time.Now(), sent)
		if pause := g.Pause(time.Now(), false); pause > 0 && !d.gather(pause, left) {
			return
		}
		select {
		case <-d.halt:
			return
		case <-d.wake:
		case <-time.After(wait):
		}
	}
}

// gather waits for a while. Where orders were left without a place the upstream shall not wait: it ends after
// longestIdle, and before that when most places are free. It reports false when Close has begun.
func (d *Deliverer) gather(pause time.Duration, left bool) bool {
	if left {
		pause = min(pause, longestIdle)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-d.halt:
			return false
		case <-timer.C:
			return true
		case <-d.wake:
		}
		inFlight := int(d.slots.inFlight.Load())
		if limit := d.pace.now(time.Now()); left && (4*inFlight <= limit || limit < 8 && 2*inFlight <= limit) {
			return true
		}
	}
}

// turn takes places and orders once, and says how long the next turn may wait, how many orders were sent, and whether
// some were left without a place.
func (d *Deliverer) turn() (wait time.Duration, sent int, left bool) {
	ctx, cancel := context.WithTimeout(d.ctx, callLimit)
	defer cancel()
	now := time.Now()
	if err := d.lines.scan(ctx, d.live().Store, now); err != nil {
		return d.fault(err), 0, false
	}
	active := d.lines.active()
	waiting := int64(0)
	for _, l := range active {
		waiting += l.depth.Waiting
	}
	places, err := d.slots.acquire(ctx, now, waiting)
	if err != nil {
		return d.fault(err), 0, false
	}
	if !d.live().Pulls {
		d.noteGrant(now, d.slots.inVain)
	}
	unused := d.share(ctx, now, active, places)
	d.slots.release(unused...)
	sent, left = len(places)-len(unused), waiting > int64(len(places))
	switch {
	case len(active) == 0:
		return idleWait, sent, left
	case waiting > 0 && len(places) > 0 && len(unused) == 0:
		return 0, sent, left
	}
	return fullWait, sent, left
}

func (d *Deliverer) fault(err error) time.Duration {
	if !errors.Is(err, context.Canceled) {
		d.live().Log.Debug("orders wait, since the store does not answer", "err", err)
	}
	return faultWait
}

// share takes orders of each SKU in turn, the same number of each while all have enough, and sends them. It returns the
// places that are left.
func (d *Deliverer) share(ctx context.Context, now time.Time, active []*line, places []place) []place {
	for i := range places {
		places[i].unused = true
	}
	for i, l := range active {
		n := 0
		if l.depth.Waiting > 0 && !d.live().Pulls {
			n = min((len(places)+len(active)-i-1)/(len(active)-i), d.live().atOnce())
		}
		if n == 0 && now.Sub(l.looked) < max(lookEvery, time.Duration(len(active))*lookEach) {
			continue
		}
		taken, err := d.take(ctx, now, l, n, d.live().Timeout)
		if err != nil {
			if errors.Is(err, ledger.ErrUnknownSKU) || errors.Is(err, ledger.ErrLost) {
				d.lines.learn(now, l, ledger.Depth{}) // its orders are gone with its ledger
			}
			d.fault(err)
			continue
		}
		for _, o := range taken.Orders {
			d.send(l.sku, o, places[0])
			places = places[1:]
		}
	}
	return places
}

// take takes n orders of a SKU for attempts of a timeout, and sees to those that must be asked about or are expired.
func (d *Deliverer) take(ctx context.Context, now time.Time, l *line, n int, timeout time.Duration) (
	ledger.HandedOut, error,
) {
	limit := d.live().MaxInFlight + int(d.underway.answered.Load()) // those are not in the upstream any more
	d.calls[callTake].Add(1)
	taken, err := d.live().Store.HandOut(ctx, l.sku, ledger.HandOutCall{Now: now.UnixMilli(), Orders: n, Limit: limit,
		Timeout: timeout.Milliseconds(), Slowest: d.live().Timeout.Milliseconds(), Grace: d.live().Grace.Milliseconds(),
		Ask: int(max(maxAsks-d.asks.Load(), 0)), AskFor: askFor.Milliseconds()})
	if err != nil {
		return taken, err
	}
	d.lines.learn(now, l, taken.Depth)
	for _, o := range taken.Ask {
		d.resolveLater(l.sku, o)
	}
	for _, o := range taken.Expired {
		d.work.Go(func() { d.decider.expired(l.sku, o) })
	}
	return taken, nil
}

// send delivers one order. Its place is free when the upstream has answered, but for an answer of a gateway before it
// that has heard nothing itself; else at the end of its lease.
func (d *Deliverer) send(sku string, o ledger.Leased, p place) {
	name := orderName{sku, o.Serial}
	d.slots.inFlight.Add(1)
	d.underway.begin(name)
	d.work.Go(func() {
		d.decider.news(sku, &o, ledger.StatusHeld, "")
		r := result{kind: attemptUnsent, move: ledger.MoveUnsent}
		if d.slots.extend(&o, p) {
			r = d.sender.attempt(sku, &o)
		} else {
			p.granted = time.Time{} // the store may have given it to another instance
		}
		d.counts[r.kind].Add(1)
		free := r.kind != attemptUnknown || r.ended
		if free {
			p.unused = r.kind == attemptUnsent
			d.slots.release(p)
			d.underway.answered.Add(1)
		}
		d.slots.inFlight.Add(-1)
		d.rouse()
		if r.kind == attemptUnknown && !d.live().Cancels && d.sender.ask(sku, o.Serial) == ledger.OrderExists {
			r.move = ledger.MoveConfirm // its answer alone was lost
		}
		if r.move == "" && r.ended { // answered, and not by what came of it: asked about at the end of its lease
			r.move, r.time = ledger.MoveLater, o.Deadline+d.live().Grace.Milliseconds()
		}
		d.decider.decide(sku, &o, r)
		d.underway.end(name)
		if free {
			d.underway.answered.Add(-1)
		}
		if r.kind == attemptUnsent || r.kind == attemptAgain { // it waits again
			d.rouse()
		}
	})
}

// resolveLater decides about an order whose last attempt has an unknown outcome.
func (d *Deliverer) resolveLater(sku string, o ledger.Leased) {
	d.asks.Add(1)
	d.work.Go(func() {
		defer d.asks.Add(-1)
		d.decider.decide(sku, &o, d.sender.resolve(sku, &o))
		d.rouse()
	})
}
