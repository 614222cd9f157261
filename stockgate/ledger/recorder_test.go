package ledger

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"sluice/stockgate/redisconn"
)

// act is what was asked of a store.
type act struct {
	call         string // "reserve", an Op, "find", "look", "total", "state"
	sku          string
	until        int64
	items        []Item
	total, limit int64
	state        State
}

// seen is what came back. What is unknown may have happened at any later time, or never.
type seen struct {
	unknown bool
	refused bool // a total that is less than what is taken
	codes   []Code
	done    []Done
	hint    StockVersion
	record  Record
	ok      bool
	stock   Stock
}

// history is what was asked and seen, and when.
type history struct {
	mu    sync.Mutex
	start time.Time
	ops   []porcupine.Operation
}

func newHistory() *history { return &history{start: time.Now()} }

// note makes a call and writes down what it was. A call that was not sent, and a reading whose answer was lost, says
// nothing and changes nothing.
func (h *history) note(a act, call func(*seen) error) error {
	var s seen
	began := time.Since(h.start)
	err := call(&s)
	ended := int64(time.Since(h.start))
	if err != nil && !s.refused {
		if redisconn.Unsent(err) || a.call == "find" || a.call == "look" {
			return err
		}
		s, ended = seen{unknown: true}, math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(
		h.ops,
		porcupine.Operation{ClientId: len(h.ops), Input: a, Call: int64(began), Output: s, Return: ended},
	)
	return err
}

// anyStore is a Store, or one whose calls are written down or wrong.
type anyStore interface {
	Calls
	SetTotal(ctx context.Context, sku string, total, limit int64) (Stock, error)
	SetState(ctx context.Context, sku string, state State) (Stock, error)
}

// recorder is a store whose calls are written down.
type recorder struct {
	anyStore

	*history
}

func (r recorder) Reserve(
	ctx context.Context,
	sku string,
	epoch, now, deadline int64,
	items []Item,
	codes []Code,
) (h StockVersion, err error) {
	copied := append([]Item(nil), items...)
	err = r.note(act{call: "reserve", sku: sku, until: deadline, items: copied}, func(s *seen) (err error) {
		h, err = r.anyStore.Reserve(ctx, sku, 0, now, deadline, items, codes) // whatever the epoch
		s.hint, s.codes = h, append([]Code(nil), codes[:len(items)]...)
		return err
	})
	return h, err
}

func (r recorder) Finish(
	ctx context.Context,
	sku string,
	now, keep int64,
	op Op,
	items []Item,
	done []Done,
) (h StockVersion, err error) {
	copied := append([]Item(nil), items...)
	err = r.note(act{call: string(op), sku: sku, until: keep, items: copied}, func(s *seen) (err error) {
		h, err = r.anyStore.Finish(ctx, sku, now, keep, op, items, done)
		s.hint, s.done = h, append([]Done(nil), done[:len(items)]...)
		return err
	})
	return h, err
}

func (r recorder) Find(ctx context.Context, sku, serial string) (rec Record, ok bool, err error) {
	err = r.note(act{call: "find", sku: sku, items: []Item{{Serial: serial}}}, func(s *seen) (err error) {
		rec, ok, err = r.anyStore.Find(ctx, sku, serial)
		s.record, s.ok = rec, ok
		return err
	})
	return rec, ok, err
}

func (r recorder) ReadStock(ctx context.Context, sku string) (stock Stock, ok bool, err error) {
	err = r.note(act{call: "look", sku: sku}, func(s *seen) (err error) {
		stock, ok, err = r.anyStore.ReadStock(ctx, sku)
		s.stock, s.ok = stock, ok
		return err
	})
	return stock, ok, err
}

func (r recorder) FindAll(ctx context.Context, orders []OrderName) []Found {
	found := make([]Found, len(orders))
	for i, o := range orders { // each as a call of its own
		f := &found[i]
		f.Record, f.OK, f.Err = r.Find(ctx, o.SKU, o.Serial)
	}
	return found
}

func (r recorder) SetTotal(ctx context.Context, sku string, total, limit int64) (stock Stock, err error) {
	err = r.note(act{call: "total", sku: sku, total: total, limit: limit}, func(s *seen) (err error) {
		stock, err = r.anyStore.SetTotal(ctx, sku, total, limit)
		s.stock, s.refused = stock, err != nil && strings.Contains(err.Error(), "is less than")
		return err
	})
	return stock, err
}

func (r recorder) SetState(ctx context.Context, sku string, state State) (stock Stock, err error) {
	err = r.note(act{call: "state", sku: sku, state: state}, func(s *seen) (err error) {
		stock, err = r.anyStore.SetState(ctx, sku, state)
		s.stock = stock
		return err
	})
	return stock, err
}
