package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
)

// Deliverer takes orders that wait, of all SKUs, and sends them. Every instance has one. It is safe for concurrent use.
type Deliverer struct {
	o    Options // but for its Settings, which are those of the start
	now  atomic.Pointer[Settings]
	ctx  context.Context // of what is sent and asked; ends when Close gives up
	stop context.CancelFunc
	wake chan struct{} // holds one
	halt chan struct{} // closed when Close begins
	work sync.WaitGroup

	pace  *pace
	lines lines
	looks looks

	prefix string       // of this instance's tokens
	tokens atomic.Int64 // that were made
	asks   atomic.Int64

	mu       sync.Mutex
	inFlight int
	free     []string // tokens to be given back
	unused   int      // of them, those by which nothing was sent

	counts [numAttemptKinds]atomic.Uint64
	expire atomic.Uint64
	alarms atomic.Uint64 // orders that became stuck
}

const (
	idleWait  = 250 * time.Millisecond // while nothing waits
	fullWait  = 20 * time.Millisecond  // while others have all places
	faultWait = 500 * time.Millisecond // after an error of the store
	callLimit = 2 * time.Second        // of one call of the store
	maxTake   = 128                    // orders in one turn
)

// New starts a deliverer. The caller must Close it.
func New(o Options) *Deliverer {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	d := &Deliverer{o: o, wake: make(chan struct{}, 1), halt: make(chan struct{}), prefix: rand.Text(),
		pace: newPace(o.MaxInFlight, time.Now())}
	d.now.Store(&o.Settings)
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.lines.all = make(map[string]*line)
	d.looks.open(d)
	d.work.Go(d.run)
	return d
}

// live are the settings in force.
func (d *Deliverer) live() *Settings { return d.now.Load() }

// Use changes the settings. What is under way goes on.
func (d *Deliverer) Use(s Settings) {
	d.now.Store(&s)
	d.pace.use(s.MaxInFlight, time.Now())
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
	d.giveBack()
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
	for {
		timer := time.NewTimer(d.turn())
		select {
		case <-d.halt:
			timer.Stop()
			return
		case <-d.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// turn takes places and orders once, and says how long the next turn may wait.
func (d *Deliverer) turn() time.Duration {
	ctx, cancel := context.WithTimeout(d.ctx, callLimit)
	defer cancel()
	now := time.Now()
	if err := d.scan(ctx, now); err != nil {
		return d.fault(err)
	}
	active := d.lines.active()
	waiting := int64(0)
	for _, l := range active {
		waiting += l.depth.Waiting
	}
	tokens, err := d.acquire(ctx, now, waiting)
	if err != nil {
		return d.fault(err)
	}
	left := d.share(ctx, now, active, tokens)
	d.release(true, left...)
	switch {
	case len(active) == 0:
		return idleWait
	case waiting > 0 && len(tokens) > 0 && len(left) == 0:
		return 0
	}
	return fullWait
}

func (d *Deliverer) fault(err error) time.Duration {
	if !errors.Is(err, context.Canceled) {
		d.o.Log.Debug("orders wait, since the store does not answer", "err", err)
	}
	return faultWait
}

// acquire gives back the places that are free, and takes others: for as many orders as wait, within the limit.
func (d *Deliverer) acquire(ctx context.Context, now time.Time, waiting int64) ([]string, error) {
	limit := d.pace.now(now)
	d.mu.Lock()
	free, unused := d.free[:min(len(d.free), protocol.MaxTokens)], d.unused
	room := limit - d.inFlight
	d.mu.Unlock()
	pause := d.pace.takePause()
	if d.o.Pulls {
		waiting = 0
	}
	want := d.newTokens(int(min(int64(max(room, 0)), waiting, maxTake)))
	if len(free) == 0 && len(want) == 0 && pause == 0 {
		return nil, nil
	}
	granted, err := d.o.Store.Slots(ctx, protocol.SlotCall{Free: free, Unused: unused, Want: want, Limit: limit,
		Rate: d.live().Rate, For: (d.o.Timeout + d.o.Grace).Milliseconds(), Pause: pause.Milliseconds()})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free, d.unused = append([]string(nil), d.free[len(free):]...), d.unused-unused
	return want[:granted], nil
}

// newTokens are names for n places.
func (d *Deliverer) newTokens(n int) (tokens []string) {
	for range n {
		tokens = append(tokens, d.prefix+strconv.FormatInt(d.tokens.Add(1), 36))
	}
	return tokens
}

// release has places given back in the next turn. Past MaxTokens they end by themselves.
func (d *Deliverer) release(unused bool, tokens ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range tokens {
		if len(d.free) < 4*protocol.MaxTokens {
			d.free = append(d.free, t)
			if unused {
				d.unused++
			}
		}
	}
}

// giveBack gives back what is free when nothing is sent any more.
func (d *Deliverer) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	d.mu.Lock()
	free := d.free[:min(len(d.free), protocol.MaxTokens)]
	d.mu.Unlock()
	if len(free) > 0 {
		_, _ = d.o.Store.Slots(ctx, protocol.SlotCall{Free: free, For: 1}) // or they end by themselves
	}
}

// share takes orders of each SKU in turn, the same number of each while all have enough, and sends them. It returns the
// tokens that are left.
func (d *Deliverer) share(ctx context.Context, now time.Time, active []*line, tokens []string) []string {
	for i, l := range active {
		n := 0
		if l.depth.Waiting > 0 && !d.o.Pulls {
			n = min((len(tokens)+len(active)-i-1)/(len(active)-i), protocol.MaxItems)
		}
		if n == 0 && now.Sub(l.looked) < lookEvery {
			continue
		}
		taken, err := d.take(ctx, now, l, n, d.o.Timeout)
		if err != nil {
			d.fault(err)
			continue
		}
		for _, o := range taken.Orders {
			d.send(l.sku, o, tokens[0])
			tokens = tokens[1:]
		}
	}
	return tokens
}

// take takes n orders of a SKU for attempts of a timeout, and sees to those that must be asked about or are expired.
func (d *Deliverer) take(ctx context.Context, now time.Time, l *line, n int, timeout time.Duration) (
	protocol.Taken, error,
) {
	taken, err := d.o.Store.Take(ctx, l.sku, protocol.TakeCall{Now: now.UnixMilli(), Orders: n,
		Limit: d.live().MaxInFlight, Timeout: timeout.Milliseconds(), Slowest: d.o.Timeout.Milliseconds(),
		Grace: d.o.Grace.Milliseconds(), Ask: int(max(maxAsks-d.asks.Load(), 0)), AskFor: askFor.Milliseconds()})
	if err != nil {
		return taken, err
	}
	d.lines.learn(now, l, taken.Depth)
	for _, o := range taken.Ask {
		d.resolveLater(l.sku, o)
	}
	for _, o := range taken.Expired {
		d.work.Go(func() { d.expired(l.sku, o) })
	}
	return taken, nil
}

// send delivers one order. Its place is free when the upstream has answered, but for an answer of a gateway before it
// that has heard nothing itself; else at the end of its lease.
func (d *Deliverer) send(sku string, o protocol.Leased, token string) {
	d.mu.Lock()
	d.inFlight++
	d.mu.Unlock()
	d.work.Go(func() {
		r := result{kind: attemptUnsent, move: protocol.MoveUnsent}
		if d.extend(&o, token) {
			r = d.attempt(sku, &o)
		}
		d.counts[r.kind].Add(1)
		if r.kind == attemptUnknown && !d.o.Cancels && d.ask(sku, o.Serial) == ledger.OrderExists {
			r.move = protocol.MoveConfirm // its answer alone was lost
		}
		if r.move == "" && r.ended { // answered, and not by what came of it: asked about at the end of its lease
			r.move, r.time = protocol.MoveLater, o.Deadline+d.o.Grace.Milliseconds()
		}
		d.decide(sku, &o, r)
		if r.kind != attemptUnknown || r.ended {
			d.release(r.kind == attemptUnsent, token)
		}
		d.mu.Lock()
		d.inFlight--
		d.mu.Unlock()
		d.rouse()
	})
}

// extend keeps the place of an attempt that may take longer than a first one, or reports that it is lost.
func (d *Deliverer) extend(o *protocol.Leased, token string) bool {
	if o.Attempt <= 1 {
		return true
	}
	ctx, cancel := context.WithTimeout(d.ctx, callLimit)
	defer cancel()
	lasts := time.Until(time.UnixMilli(o.Deadline)) + d.o.Grace + time.Second
	if lasts <= 0 {
		return false
	}
	n, err := d.o.Store.Slots(ctx, protocol.SlotCall{Free: []string{token}, Want: []string{token},
		Limit: d.live().MaxInFlight, For: lasts.Milliseconds()})
	return err == nil && n == 1
}

// resolveLater decides about an order whose last attempt has an unknown outcome.
func (d *Deliverer) resolveLater(sku string, o protocol.Leased) {
	d.asks.Add(1)
	d.work.Go(func() {
		defer d.asks.Add(-1)
		d.decide(sku, &o, d.resolve(sku, &o))
		d.rouse()
	})
}
