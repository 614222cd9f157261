package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// shelf is an honest store for the tests of the desk, small enough to be read. fault, if set, is asked before and
// after each call: an error before means that nothing was done, one after that the reply was lost.
type shelf struct {
	mu      sync.Mutex
	skus    map[string]*shelved
	calls   map[string]int
	items   int // of all reserve calls
	peak    int // the most items in one
	glances int // SKUs in all calls that only look
	fault   func(op string, after bool) error
}

type shelved struct {
	stock   Stock
	records map[string]Record
	users   map[string]int64
	leases  map[string]int64
}

var errLost = errors.New("lost")

func newShelf() *shelf {
	return &shelf{skus: make(map[string]*shelved), calls: make(map[string]int)}
}

// shelfOf returns a shelf with units of one SKU on sale, any number a person.
func shelfOf(sku string, units int64) *shelf {
	s := newShelf()
	s.put(sku, units, 0)
	return s
}

func (s *shelf) put(sku string, units, limit int64) {
	s.skus[sku] = &shelved{
		stock:   Stock{Hint: Hint{Free: units, Epoch: 1, Ver: 1, State: On, Taken: 1}, Total: units, Limit: limit},
		records: make(map[string]Record), users: make(map[string]int64), leases: make(map[string]int64),
	}
}

// do makes a call: the faults before and after are those of a network.
func (s *shelf) do(ctx context.Context, op string, f func()) error {
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

func (s *shelf) set(fault func(op string, after bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *shelf) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

func (s *shelf) stock(sku string) Stock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skus[sku].stock
}

func (s *shelf) record(sku, serial string) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skus[sku].records[serial]
}

// move changes the numbers. It panics when units would be sold that do not exist.
func (b *shelved) move(held, sold int64, user string) {
	b.stock.Held += held
	b.stock.Sold += sold
	b.stock.Free = b.stock.Total - b.stock.Held - b.stock.Sold
	b.users[user] += held + sold
	b.stock.Ver++
	if b.stock.Free < 0 || b.stock.Held < 0 || b.stock.Sold < 0 {
		panic(fmt.Sprintf("oversold: %+v", b.stock))
	}
}

func (s *shelf) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item, codes []Code) (h Hint, err error) {
	err = s.do(ctx, "reserve", func() {
		s.items += len(items)
		s.peak = max(s.peak, len(items))
		b := s.skus[sku]
		for i, it := range items {
			codes[i] = b.reserve(epoch, now, deadline, it)
		}
		if b != nil {
			h = b.stock.Hint
		}
	})
	return h, err
}

func (b *shelved) reserve(epoch, now, deadline int64, it Item) Code {
	if b == nil {
		return UnknownSKU
	}
	r, ok := b.records[it.Serial]
	switch {
	case epoch != 0 && epoch != b.stock.Epoch:
		return StaleEpoch
	case ok && (r.User != it.User || r.Quantity != it.Quantity):
		return OtherOrder
	case ok:
		return map[byte]Code{'H': ReplayHeld, 'C': ReplaySold, 'X': Released}[r.Status]
	case b.stock.At(now) != On:
		return NotOnSale
	case b.stock.Free < it.Quantity:
		return SoldOut
	case it.User != "" && b.stock.Limit > 0 && b.users[it.User]+it.Quantity > b.stock.Limit:
		return UserLimit
	}
	b.records[it.Serial] = Record{Serial: it.Serial, User: it.User, Quantity: it.Quantity, Status: 'H', Deadline: deadline}
	b.move(it.Quantity, 0, it.User)
	b.stock.Taken = b.stock.Ver
	return Held
}

func (s *shelf) Finish(ctx context.Context, sku string, _, keep int64, op Op, items []Item, done []Done) (h Hint, err error) {
	err = s.do(ctx, "finish", func() {
		b := s.skus[sku]
		for i, it := range items {
			if done[i] = NoLedger; b != nil {
				done[i] = b.finish(op, keep, it)
			}
		}
		if b != nil {
			h = b.stock.Hint
		}
	})
	return h, err
}

func (b *shelved) finish(op Op, keep int64, it Item) Done {
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

func (s *shelf) Sweep(ctx context.Context, sku string, now, lease int64, limit int) (due []Record, err error) {
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

func (s *shelf) SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept {
	return sweepEach(ctx, s, skus, now, lease)
}

func (s *shelf) Find(ctx context.Context, sku, serial string) (r Record, ok bool, err error) {
	err = s.do(ctx, "find", func() {
		if b := s.skus[sku]; b != nil {
			r, ok = b.records[serial]
		}
	})
	return r, ok, err
}

func (s *shelf) Look(ctx context.Context, sku string) (st Stock, ok bool, err error) {
	err = s.do(ctx, "look", func() {
		if b := s.skus[sku]; b != nil {
			st, ok = b.stock, true
		}
	})
	return st, ok, err
}

func (s *shelf) SetTotal(ctx context.Context, sku string, total, _ int64) (st Stock, err error) {
	err = s.do(ctx, "total", func() {
		b := s.skus[sku]
		b.stock.Total = total
		b.move(0, 0, "")
		st = b.stock
	})
	return st, err
}

func (s *shelf) SetState(ctx context.Context, sku string, state State) (st Stock, err error) {
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
