package ledger

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Desk stands in front of a Store: many buyers ask it at once, and it asks the store in batches, never for more
// units than the newest reply left. What is sold out it says from memory. It settles what was forwarded, and finds
// out what became of holds that nobody settles. It is safe for concurrent use.
//
// Orders of one SKU share their calls: one leaves when none is under way, as soon as whatever can run has run, what
// arrives meanwhile joins the next, and a second one is under way only when it is full. There is no timer. A Redis lets calls for
// several SKUs share round trips; see pipelines. Looks whether a SKU
// is still closed share calls with those at other SKUs; see glances. Every goroutine that works for a SKU
// ends with its work; Close waits for all of them.
type Desk struct {
	*deriver
	o      DeskOptions
	store  Store
	oracle Oracle // nil = nobody can be asked
	memory int64  // ns of SoldOutMemory
	fresh  int64  // ns: as old may the latch be for an order with a key

	lines     *lines
	doubtful  doubtful
	newcomers pace // SKUs seen for the first time, invented ones too
	probers   pace // looks whether a SKU is still closed
	askers    pace // looks for the state of an order
	names     pace // SKUs that the log names as they get into trouble
	glances   glances
	lookers   chan struct{}        // one element for each of those under way
	aside     chan struct{}        // one element for each call that no order waits for
	more      chan struct{}        // one element for each that settles beside those, while much is owed
	audits    *auditor             // nil where the store cannot be inspected
	closing   map[string]reopening // by SKU; the watch's alone
	serials   *memory              // of orders
	users     *memory              // of orders with a derived serial

	deadline atomic.Int64         // Unix ms: of the holds that are made now
	deaf     atomic.Int64         // ns: until when news may have been missed
	terms    atomic.Pointer[term] // the newest one

	closed     atomic.Bool
	ctx        context.Context // of calls; ends when Close gives up
	cut        context.CancelFunc
	rest       context.CancelFunc // ends the watch
	watch      sync.WaitGroup     // sweeps, resolves, audits, hears news
	work       sync.WaitGroup     // calls for orders, and those that settle
	mirrors    sync.WaitGroup     // writes of the mirror
	still      atomic.Bool        // no more of them begin
	shown      mirrorCounts
	summary    summary
	reopenings reopenings
	room       chan struct{} // one element a settlement

	books    map[string]*events // by named SKU; "" = all others
	calls    callMetrics
	lost     atomic.Uint64
	thin     atomic.Uint64 // batches that too few replicas had
	thinned  atomic.Bool   // the last one was such
	retries  atomic.Uint64
	spilled  atomic.Uint64
	unknown  atomic.Int64
	winners  atomic.Int64 // in all rosters
	behind   atomic.Int64 // SKUs whose changes are not acknowledged
	verdicts [numResolutions]atomic.Uint64
}

const (
	newSKUsAtOnce = 1000
	newSKUEvery   = int64(500 * time.Microsecond)

	// Settling, and reading who has won, of however many SKUs: more at once of the latter would take all connections from
	// orders, and calls that find no connection pass for a store in trouble. So many more settle while much is owed.
	asideAtOnce = 8
	moreAtOnce  = mostItems - asideAtOnce

	probesAtOnce = 100
	probeEvery   = int64(2 * time.Millisecond)
)

// NewDesk returns a desk over store that asks oracle, which may be nil, about orders whose outcome is unknown.
func NewDesk(o DeskOptions, store Store, oracle Oracle) (*Desk, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	size := max(ways, 1<<bits.Len(uint(o.MaxKnown-1)))
	d := &Desk{
		deriver: newDeriver(o.Secret),
		o:       o, store: store, oracle: oracle,
		memory:    int64(o.SoldOutMemory),
		fresh:     min(int64(o.SoldOutMemory), int64(time.Second)/int64(o.Looks)),
		lines:     newLines(o.MaxSKUs),
		newcomers: pace{every: newSKUEvery, depth: newSKUsAtOnce},
		probers:   pace{every: probeEvery, depth: probesAtOnce},
		askers:    pace{every: lookEvery, depth: looksAtOnce},
		names:     pace{every: namedEvery, depth: namedAtOnce},
		glances:   glances{room: make(chan struct{}, glancesAtOnce)},
		lookers:   make(chan struct{}, lookers),
		aside:     make(chan struct{}, asideAtOnce),
		more:      make(chan struct{}, moreAtOnce),
		serials:   newMemory(size, func(k *known) string { return k.serial }),
		users:     newMemory(size, func(k *known) string { return k.user }),
		closing:   make(map[string]reopening),
		room:      make(chan struct{}, o.MaxSettling),
		books:     map[string]*events{"": {}},
	}
	for _, sku := range o.Named {
		d.books[sku] = &events{}
	}
	d.ctx, d.cut = context.WithCancel(context.Background())
	watching, rest := context.WithCancel(d.ctx)
	d.rest = rest
	if s, ok := store.(inspected); ok {
		d.audits = newAuditor(d, s)
		d.watch.Go(func() { d.audits.run(watching) })
	}
	d.watch.Go(func() { d.run(watching) })
	if t, ok := store.(teller); ok {
		d.watch.Go(func() { t.Listen(watching, d.Note, d.missed) })
	}
	return d, nil
}

// Reserve asks for the units of one order. It waits for at most MaxWait, and then for the call under way and its
// own, of at most Tries × Timeout each. Only an order that hears Held may be forwarded, and once. now is of Options.Now.
func (d *Desk) Reserve(now int64, o Order) Outcome {
	if o.Quantity < 1 || o.Quantity > mostUnits || len(o.Key) > 0 && !ValidSerial(o.Key) {
		return Outcome{Code: Invalid}
	}
	if out, closed := d.Closed(now, o); closed {
		return out
	}
	switch {
	case len(o.Key) > 0:
		return d.try(now, o, &known{serial: string(o.Key)})
	case len(o.User) > 0:
		return d.inTurn(now, o)
	}
	return d.try(now, o, &known{serial: unique()})
}

// try asks for one order under the serial of k.
func (d *Desk) try(now int64, o Order, k *known) Outcome {
	k.user, k.quantity = string(o.User), o.Quantity
	t := &ticket{known: k, order: o, at: now, out: make(chan Outcome, 1)}
	t.item = Item{Serial: t.serial, User: t.user, Quantity: t.quantity}
	for {
		l := d.line(now, o.SKU)
		if l == nil {
			return Outcome{Code: Overloaded}
		}
		t.line = l
		if d.join(now, l, t) {
			return <-t.out
		}
	}
}

// line returns the line of sku, or nil when there are too many, or too many new ones.
func (d *Desk) line(now int64, sku []byte) *line {
	if l := d.lines.find(sku); l != nil {
		return l
	}
	if !d.newcomers.take(now) {
		return nil
	}
	return d.open(sku)
}

// open makes a line for sku if there is none. It returns nil when there are too many.
func (d *Desk) open(sku []byte) *line {
	return d.lines.add(sku, func(sku string, hash uint64) *line {
		book, named := d.books[sku]
		if !named {
			book = d.books[""]
		}
		return &line{
			sku: sku, hash: hash, events: book,
			looks:  pace{every: int64(time.Second) / int64(d.o.Looks), depth: int64(d.o.Looks)},
			asked:  make(map[string]*ticket),
			doubts: make(map[string]*doubt),
		}
	})
}

// Watch lets the desk look after the holds of sku, even if nobody asks it for that SKU: after a restart, say. It
// reports false when there are too many SKUs.
func (d *Desk) Watch(sku string) bool {
	l := d.open([]byte(sku))
	if l != nil {
		l.watched.Store(true)
	}
	return l != nil
}

// Expect says that sku has a ledger, as far as somebody else knows: who asks for it first is not kept waiting for the pace
// of invented SKUs. Its holds are looked after once somebody has asked. It reports false when there are too many SKUs.
func (d *Desk) Expect(sku string) bool {
	l := d.open([]byte(sku))
	if l != nil {
		l.expected.Store(true)
	}
	return l != nil
}

// Note takes in a hint that came by another way than a reply, so that units that came back are buyable at once.
func (d *Desk) Note(sku string, h Hint) {
	if l := d.lines.find([]byte(sku)); l != nil {
		d.note(l, h)
	}
}

func (d *Desk) note(l *line, h Hint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := d.o.Now()
	d.learn(now, l, &view{Hint: h, at: now})
	d.dispatch(l)
}

// Close refuses new orders, answers those that wait, and settles what is owed until ctx ends; what the store does
// not have by then is written to the log. It returns when every goroutine of the desk has ended.
func (d *Desk) Close(ctx context.Context) {
	d.rest()
	d.watch.Wait()
	d.closed.Store(true)
	for _, l := range d.lines.each() {
		l.barrier()
	}
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		d.work.Wait()
		d.still.Store(true)
		for _, l := range d.lines.each() {
			l.barrier()
		}
		d.mirrors.Wait()
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	d.cut()
	<-settled
}

// barrier returns when whoever did not see that the desk is closed has started what it starts.
func (l *line) barrier() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// pause waits, unless ctx ends before.
func (d *Desk) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
