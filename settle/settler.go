package settle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sluice/internal/periodic"
)

const (
	minPoll     = 100 * time.Millisecond // between two turns of a SKU: a transaction for each change would cost too much
	maxPoll     = 5 * time.Second        // of a SKU that has not changed for long, or whose last turn failed
	listEvery   = time.Second            // how often new SKUs are looked for
	maxMessages = 1024                   // notifications that wait

	// compareEvery is how often all cursors are compared with those in the database.
	compareEvery = 10 * time.Second
)

// ChangeableLedger is what a settler changes in Redis.
type ChangeableLedger interface {
	// Acknowledge lets the stream of a SKU forget its entries up to an id.
	Acknowledge(ctx context.Context, sku, id string) error
	// JoinRecovery closes the SKU, whose ledger stands as l, until Told, and until every instance has told what it knows.
	JoinRecovery(ctx context.Context, sku string, l Ledger) error
	// Outrun closes the SKU for an operator if its ledger is older than a position that was settled.
	Outrun(ctx context.Context, sku string, settled Position) error
	// Told says that the ledger has all orders that are settled, as it was compared in an epoch. It is called until the
	// SKU is open.
	Told(ctx context.Context, sku string, epoch int64) (opened bool, err error)
	// PutBack tells the ledger orders as sold, held or refunded. What it has as final stays so. The resolver decides
	// the held ones.
	PutBack(ctx context.Context, sku string, orders []Record) error
	// Refund returns the units of an order. It is idempotent. ok is false if the ledger does not know the order.
	Refund(ctx context.Context, sku, serial string) (ok bool, err error)
	// End ends the sale of a SKU, since every unit is paid.
	End(ctx context.Context, sku string) error
	// Reopen puts a SKU on sale again that has ended by End. ok is false where an operator has ended it since.
	Reopen(ctx context.Context, sku string) (ok bool, err error)
}

// Options configure a Settler. The zero value of each field but Batch has a meaning. Givebacks, Paid and Verify need a
// Ledger.
type Options struct {
	Target  string           // OrdersTarget or WebhookTarget; "" = OrdersTarget
	Batch   int              // entries a transaction; 1 to 10,000
	Workers int              // SKUs that are settled at the same time; 0 = 4
	Ledger  ChangeableLedger // nil = nothing is trimmed, frozen or adopted
	Log     *slog.Logger     // nil = slog.Default()

	Givebacks Givebacks // nil = the shop gives no orders back by the database
	Paid      Paid      // Count nil = SKUs do not end by what is paid
	Home      Home      // the zero value = all SKUs are settled here

	Verify  time.Duration // between two looks at SKUs that move; 0 = SKUs are not verified
	Auditor Auditor       // needed by Verify

	// Shop, if not nil, compares the orders of a ledger with those of the shop, whenever the SKU is verified.
	Shop func(ctx context.Context, sku string, born int64) ([]ShopOrder, error)

	// Listen, if not nil, calls wake with each SKU whose ledger may have changed, until ctx ends.
	Listen func(ctx context.Context, wake func(sku string))
}

// Settler brings the changes of all ledgers of one Redis into a database. Any number of settlers may run.
type Settler struct {
	stream Stream
	db     Database
	o      Options
	log    *slog.Logger
	now    func() time.Time
	counts counts
	turns  chan func() // of SKUs, for the workers; of Run's goroutine

	looks         map[string]*look   // of the SKUs that are verified
	givenBack     map[int64]Position // where ledgers were when give-backs were tried first
	unlistedSince time.Time          // since when there have been SKUs that are not settled; of Run's goroutine
	listTrouble   string             // why the SKUs could not be listed; of Run's goroutine
}

// New returns a Settler that does nothing until Run or Drain.
func New(stream Stream, db Database, o Options) (*Settler, error) {
	if o.Batch < 1 || o.Batch > 10_000 {
		return nil, errors.New("batch: it must be 1 to 10000")
	}
	if o.Workers < 1 {
		o.Workers = 4
	}
	if o.Target == "" {
		o.Target = OrdersTarget
	}
	s := &Settler{stream: stream, db: db, o: o, log: o.Log, now: time.Now, looks: make(map[string]*look),
		givenBack: make(map[int64]Position)}
	s.counts.lag = newLag(o.Target)
	if s.log == nil {
		s.log = slog.Default()
	}
	return s, nil
}

// Run settles until ctx ends. Faults are logged, and tried again for ever.
func (s *Settler) Run(ctx context.Context) {
	woken := make(chan string, maxMessages)
	var beside sync.WaitGroup
	defer beside.Wait()
	s.turns = make(chan func())
	defer close(s.turns)
	for range s.o.Workers { // a goroutine a turn would grow its stack anew each time
		beside.Go(func() {
			for turn := range s.turns {
				turn()
			}
		})
	}
	if s.o.Listen != nil {
		beside.Go(func() {
			s.o.Listen(ctx, func(sku string) {
				select {
				case woken <- sku:
				default: // the SKU is polled anyway
				}
			})
		})
	}
	if s.o.Givebacks != nil {
		beside.Go(func() {
			s.repeat(ctx, givebackEvery, "settle: orders are not given back; they are tried again", func() (bool, error) {
				n, err := s.GiveBack(ctx)
				return n == givebacksAtOnce, err
			})
		})
	}
	if s.o.Paid.Count != nil {
		beside.Go(func() {
			s.repeat(ctx, s.o.Paid.Every, "settle: SKUs do not end by what is paid", func() (bool, error) {
				return false, s.EndPaid(ctx)
			})
		})
	}
	if s.o.Verify > 0 {
		beside.Go(func() { s.verifyAll(ctx) })
	}
	cursors := make(chan map[string]Cursor)
	beside.Go(func() { s.readCursors(ctx, cursors) })
	places := make(map[string]*skuCursor)
	var listed time.Time
	for ctx.Err() == nil {
		if now := s.now(); now.Sub(listed) >= listEvery {
			s.list(ctx, places)
			listed = now
		}
		next := s.round(ctx, places)
		s.sumUp(places)
		timer := time.NewTimer(min(next, listEvery))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case there := <-cursors:
			s.compareCursors(places, there)
		case sku := <-woken:
			wake(places, sku)
			s.gather(ctx, places, woken, min(next, minPoll))
		}
		timer.Stop()
	}
}

// gather wakes SKUs for a while, so that one transaction settles what changes in it.
func (s *Settler) gather(ctx context.Context, places map[string]*skuCursor, woken <-chan string, d time.Duration) {
	over := time.After(d)
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case sku := <-woken:
			wake(places, sku)
		}
	}
}

// wake makes a SKU due that has changed, unless it rests, or its target wants no further try yet.
func wake(places map[string]*skuCursor, sku string) {
	if p := places[sku]; p != nil {
		p.due = p.rests
		if p.postponed.After(p.due) {
			p.due = p.postponed
		}
	}
}

// repeat does something again and again until ctx ends, and at once where more is to be done. A fault is logged when it
// begins, or becomes another one.
func (s *Settler) repeat(ctx context.Context, every time.Duration, fault string, do func() (more bool, err error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for trouble := ""; ; {
		more, err := do()
		switch {
		case err == nil:
			trouble = ""
		case ctx.Err() == nil && err.Error() != trouble:
			trouble = err.Error()
			s.log.Error(fault, "err", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Drain settles one SKU until its cursor is at the end of the stream, or until a fault.
func (s *Settler) Drain(ctx context.Context, sku string) error {
	p := &skuCursor{sku: sku}
	for {
		worked, err := s.settleSKU(ctx, p)
		if err != nil && !errors.Is(err, ErrElsewhere) {
			return err
		}
		if err == nil && !worked {
			return nil
		}
	}
}

// list adds new SKUs to places.
func (s *Settler) list(ctx context.Context, places map[string]*skuCursor) {
	skus, beyond, err := s.stream.SKUs(ctx)
	if s.listTrouble = ""; err != nil {
		s.listTrouble = "the SKUs cannot be listed: " + err.Error()
		s.log.Warn("settle: the SKUs cannot be listed", "err", err)
		return
	}
	switch before := s.counts.unlisted.Swap(beyond); {
	case beyond == 0:
		s.unlistedSince = time.Time{}
	case before == 0:
		s.unlistedSince = s.now()
		s.log.Error("settle: there are too many SKUs; the last ones by name are not settled, and their changes stay in Redis",
			"target", s.o.Target, "settled", len(skus), "not_settled", beyond,
			"fix", "move SKUs to another Redis with a gateway and a settler of its own")
	}
	for _, sku := range skus {
		if places[sku] == nil {
			places[sku] = &skuCursor{sku: sku}
		}
	}
}

// readCursors reads all cursors again and again until ctx ends, in at most a twentieth of the time.
func (s *Settler) readCursors(ctx context.Context, to chan<- map[string]Cursor) {
	for wait := compareEvery; periodic.Pause(ctx, wait); {
		began := s.now()
		there, err := s.db.Cursors(ctx)
		wait = max(compareEvery, 20*s.now().Sub(began))
		if err != nil {
			continue // the SKUs that change tell
		}
		select {
		case to <- there:
		case <-ctx.Done():
		}
	}
}

// compareCursors has cursors read again that stand elsewhere in the database: another settler has moved them, or the
// database has lost its last transactions. A SKU that does not change any more would not notice. Nor would a database
// be told of a move again that it has forgotten.
func (s *Settler) compareCursors(places map[string]*skuCursor, there map[string]Cursor) {
	for sku, p := range places {
		c, ok := there[sku]
		if p.loaded && p.cursor != nil && c.Position != p.cursor.Position {
			p.loaded, p.due = false, s.now()
		}
		if ok && c.State != Moved {
			p.left = ""
		}
	}
}

// round gives every SKU that is due and has changed a turn, and returns how long nothing is due then.
func (s *Settler) round(ctx context.Context, places map[string]*skuCursor) time.Duration {
	now := s.now()
	var due []*skuCursor
	for _, p := range places {
		if !p.due.After(now) {
			due = append(due, p)
		}
	}
	for len(due) > 0 {
		n := min(len(due), skusAtOnce)
		s.some(ctx, due[:n])
		due = due[n:]
	}
	next := maxPoll
	now = s.now()
	for _, p := range places {
		next = min(next, p.due.Sub(now))
	}
	return max(next, time.Millisecond)
}

// some gives turns to those of a few SKUs that have changed.
func (s *Settler) some(ctx context.Context, due []*skuCursor) {
	skus := make([]string, len(due))
	for i, p := range due {
		skus[i] = p.sku
	}
	ledgers, errs := s.stream.EachLedger(ctx, skus)
	var working sync.WaitGroup
	for i, p := range due {
		if errs != nil && errs[i] != nil {
			s.end(ctx, p, false, errs[i])
			continue
		}
		p.ledger = ledgers[i]
		if !s.o.Home.has(p.sku, p.ledger) {
			s.end(ctx, p, false, s.leave(ctx, p))
			continue
		}
		if p.loaded && p.cursor != nil && ledgers[i].Position == p.cursor.Position {
			s.end(ctx, p, false, s.acknowledge(ctx, p))
			continue
		}
		working.Add(1)
		s.turns <- func() {
			defer working.Done()
			worked := false
			here, err := s.claim(ctx, p, &p.ledger)
			switch {
			case err == nil && !here:
				err = s.leave(ctx, p)
			case err == nil:
				worked, err = s.settleSKU(ctx, p)
			}
			s.end(ctx, p, worked, err)
		}
	}
	working.Wait()
}

// end decides when the SKU is due again, and logs a fault when it begins and ends.
func (s *Settler) end(ctx context.Context, p *skuCursor, worked bool, err error) {
	p.wait = min(max(2*p.wait, minPoll), maxPoll)
	if worked && err == nil {
		p.wait = minPoll
	}
	now := s.now()
	p.due, p.rests, p.postponed = now.Add(p.wait), now.Add(minPoll), time.Time{}
	if p.more {
		p.due, p.more = now, false
	}
	if later := (*PostponedError)(nil); errors.As(err, &later) {
		p.postponed = now.Add(later.Wait)
		p.due = p.postponed
	}
	elsewhere := errors.Is(err, ErrElsewhere)
	p.measure(now, elsewhere, err != nil && !elsewhere)
	switch {
	case err == nil && p.trouble != "":
		p.trouble = ""
		s.log.Info("settle: a SKU is settled again", "target", s.o.Target, "sku", p.sku)
	case elsewhere:
		p.trouble = "" // it is another settler's now
	case err == nil, ctx.Err() != nil:
	case err.Error() != p.trouble:
		p.trouble = err.Error()
		s.log.Error("settle: a SKU is not settled; its changes stay in Redis", "target", s.o.Target, "sku", p.sku,
			"err", err)
	}
}
