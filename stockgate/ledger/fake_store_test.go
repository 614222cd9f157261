package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// fakeStore is an honest store for the tests of the reserver, small enough to be read. fault, if set, is asked before
// and after each call: an error before means that nothing was done, one after that the reply was lost.
type fakeStore struct {
	mu    sync.Mutex
	skus  map[string]*fakeSKU
	calls map[string]int
	items int // of all reserve calls
	peak  int // the most items in one
	fault func(op string, after bool) error
}

type fakeSKU struct {
	stock   Stock
	records map[string]Record
	users   map[string]int64
	leases  map[string]int64
}

func newFakeStore() *fakeStore {
	return &fakeStore{skus: make(map[string]*fakeSKU), calls: make(map[string]int)}
}

// fakeStoreOf returns a fakeStore with units of one SKU on sale, any number a person.
func fakeStoreOf(sku string, units int64) *fakeStore {
	s := newFakeStore()
	s.put(sku, units, 0)
	return s
}

func (s *fakeStore) put(sku string, units, limit int64) {
	s.skus[sku] = &fakeSKU{
		stock: Stock{
			StockVersion: StockVersion{Free: units, Epoch: 1, Ver: 1, State: On},
			Total:        units,
			Limit:        limit,
		},
		records: make(map[string]Record), users: make(map[string]int64), leases: make(map[string]int64),
	}
}

// do makes a call: the faults before and after are those of a network.
func (s *fakeStore) do(ctx context.Context, op string, f func()) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		if err := fault(op, false); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	s.calls[op]++
	f()
	s.mu.Unlock()
	if fault != nil {
		return fault(op, true)
	}
	return ctx.Err()
}

func (s *fakeStore) set(fault func(op string, after bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *fakeStore) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

func (s *fakeStore) stock(sku string) Stock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skus[sku].stock
}

func (s *fakeStore) record(sku, serial string) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skus[sku].records[serial]
}

// move changes the numbers. It panics when units would be sold that do not exist.
func (b *fakeSKU) move(held, sold int64, user string) {
	b.stock.Held += held
	b.stock.Sold += sold
	b.stock.Free = b.stock.Total - b.stock.Held - b.stock.Sold
	b.users[user] += held + sold
	b.stock.Ver++
	if b.stock.Free < 0 || b.stock.Held < 0 || b.stock.Sold < 0 {
		panic(fmt.Sprintf("oversold: %+v", b.stock))
	}
}

// nextSale forgets the orders of a SKU and begins its next sale.
func (s *fakeStore) nextSale(sku string, units int64) StockVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch := s.skus[sku].stock.Epoch + 1
	s.put(sku, units, 0)
	b := &s.skus[sku].stock
	b.Epoch, b.Sale = epoch, epoch
	return b.StockVersion
}

func (s *fakeStore) Reserve(
	ctx context.Context,
	sku string,
	epoch, now, deadline int64,
	items []Item,
	codes []Code,
) (h StockVersion, err error) {
	err = s.do(ctx, "reserve", func() {
		s.items += len(items)
		s.peak = max(s.peak, len(items))
		b := s.skus[sku]
		for i, it := range items {
			codes[i] = b.reserve(epoch, now, deadline, it)
		}
		if b != nil {
			h = b.stock.StockVersion
		}
	})
	return h, err
}

func (b *fakeSKU) reserve(epoch, now, deadline int64, it Item) Code {
	if b == nil {
		return UnknownSKU
	}
	r, ok := b.records[it.Serial]
	switch {
	case epoch != b.stock.Epoch && (epoch != 0 || b.stock.Sale != 0):
		return StaleEpoch
	case ok && (r.User != it.User || r.Quantity != it.Quantity):
		return OtherOrder
	case ok:
		return map[Status]Code{
			'H': ReplayHeld, 'C': ReplaySold, 'X': Released}[r.Status]
	case b.stock.At(now) != On:
		return NotOnSale
	case b.stock.Free < it.Quantity:
		return SoldOut
	case it.User != "" && b.stock.Limit > 0 && b.users[it.User]+it.Quantity > b.stock.Limit:
		return UserLimit
	}
	b.records[it.Serial] = Record{
		Serial:   it.Serial,
		User:     it.User,
		Quantity: it.Quantity,
		Status:   'H',
		Deadline: deadline,
	}
	b.move(it.Quantity, 0, it.User)
	return Held
}

func (s *fakeStore) Finish(
	ctx context.Context,
	sku string,
	_, keep int64,
	op Op,
	items []Item,
	done []Done,
) (h StockVersion, err error) {
	err = s.do(ctx, "finish", func() {
		b := s.skus[sku]
		for i, it := range items {
			if done[i] = NoLedger; b != nil {
				done[i] = b.finish(op, keep, it)
			}
		}
		if b != nil {
			h = b.stock.StockVersion
		}
	})
	return h, err
}

func (b *fakeSKU) finish(op Op, keep int64, it Item) Done {
	r, ok := b.records[it.Serial]
	switch op + Op(r.Status) {
	case Confirm + "H":
		b.move(-r.Quantity, r.Quantity, r.User)
		r.Status = 'C'
	case Release + "H":
		b.move(-r.Quantity, 0, r.User)
		r.Status, r.Deadline = 'X', keep
	case Refund + "C":
		b.move(0, -r.Quantity, r.User)
		r.Status, r.Deadline = 'X', keep
	case Release + "C":
		return WasSold
	case Confirm + "X":
		return WasReleased
	case Confirm + "C", Release + "X", Refund + "X":
		return Already
	default:
		if op != Release || ok {
			return NotFound
		}
		r = Record{Serial: it.Serial, Status: 'X', Deadline: keep}
	}
	b.records[it.Serial] = r
	return Changed
}

func (s *fakeStore) Sweep(
	ctx context.Context,
	sku string,
	now, lease int64,
	limit int,
) (due []Record, err error) {
	err = s.do(ctx, "sweep", func() {
		b := s.skus[sku]
		if b == nil {
			return
		}
		for serial, r := range b.records {
			if r.Status == 'H' && max(r.Deadline, b.leases[serial]) <= now && len(due) < limit {
				b.leases[serial] = lease
				due = append(due, r)
			}
		}
	})
	return due, err
}

func (s *fakeStore) SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept {
	return sweepEach(ctx, s, skus, now, lease)
}

// sweepEach is a SweepAll of a store where nothing is gained by asking about several at once.
func sweepEach(ctx context.Context, s Calls, skus []string, now, lease int64) []Swept {
	swept := make([]Swept, len(skus))
	for i, sku := range skus {
		swept[i].Holds, swept[i].Err = s.Sweep(ctx, sku, now, lease, sharedLeases)
		swept[i].More = len(swept[i].Holds) == sharedLeases
	}
	return swept
}

func (s *fakeStore) Find(ctx context.Context, sku, serial string) (r Record, ok bool, err error) {
	err = s.do(ctx, "find", func() {
		if b := s.skus[sku]; b != nil {
			r, ok = b.records[serial]
		}
	})
	return r, ok, err
}

func (s *fakeStore) ReadStock(ctx context.Context, sku string) (st Stock, ok bool, err error) {
	err = s.do(ctx, "look", func() {
		if b := s.skus[sku]; b != nil {
			st, ok = b.stock, true
		}
	})
	return st, ok, err
}

func (s *fakeStore) SetTotal(ctx context.Context, sku string, total, _ int64) (st Stock, err error) {
	err = s.do(ctx, "total", func() {
		b := s.skus[sku]
		b.stock.Total = total
		b.move(0, 0, "")
		st = b.stock
	})
	return st, err
}

func (s *fakeStore) SetState(ctx context.Context, sku string, state State) (st Stock, err error) {
	err = s.do(ctx, "state", func() {
		b := s.skus[sku]
		b.stock.State = state
		b.stock.Ver++
		if state == Frozen {
			b.stock.Epoch++
		}
		st = b.stock
	})
	return st, err
}

func (s *fakeStore) CloseLost(ctx context.Context, sku string, _ StockVersion) (StockVersion, error) {
	st, err := s.SetState(ctx, sku, Frozen)
	return st.StockVersion, err
}

func (s *fakeStore) Add(ctx context.Context, sku string, delta int64, _ string) (st Stock, err error) {
	err = s.do(ctx, "add", func() {
		b := s.skus[sku]
		b.stock.Total += delta
		b.move(0, 0, "")
		st = b.stock
	})
	return st, err
}

func (s *fakeStore) SetSchedule(ctx context.Context, sku string, opens, closes int64) (st Stock, err error) {
	err = s.do(ctx, "hours", func() {
		b := s.skus[sku]
		b.stock.Opens, b.stock.Closes = opens, closes
		b.move(0, 0, "")
		st = b.stock
	})
	return st, err
}

// asked is how many calls were made for orders.
func (s *fakeStore) asked() int { return s.count("reserve") + s.count("lookup") }

// FindAll makes one call for all.
func (s *fakeStore) FindAll(ctx context.Context, orders []OrderName) []Found {
	found := make([]Found, len(orders))
	err := s.do(ctx, "lookup", func() {
		for i, o := range orders {
			if b := s.skus[o.SKU]; b != nil {
				found[i].Record, found[i].OK = b.records[o.Serial]
				found[i].Sale = b.stock.Sale
			}
		}
	})
	for i := range found {
		found[i].Err = err
	}
	return found
}

// Decide answers as for orders of no queue.
func (s *fakeStore) Decide(_ context.Context, _ string, c DecideCall) ([]Done, StockVersion, error) {
	return slices.Repeat([]Done{NotQueued}, len(c.Decisions)), StockVersion{}, nil
}

// Nothing below happens to a fakeStore: no news, no consumers, no audit that finds anything, no loss.

func (s *fakeStore) Listen(ctx context.Context, _ func(string, StockVersion), _ func()) {
	<-ctx.Done()
}

func (s *fakeStore) Backlog(context.Context, []string) []error { return nil }

func (s *fakeStore) InspectAll(_ context.Context, skus []string) []Inspection {
	return make([]Inspection, len(skus))
}

func (s *fakeStore) Pending() []string { return nil }

func (s *fakeStore) NoteUnknown(string, string) {}

func (s *fakeStore) Look(context.Context, string, int64) (Result, error) {
	return Result{}, nil
}

func (s *fakeStore) Recover(context.Context, string, int64, int64) (Result, error) {
	return Result{}, nil
}
