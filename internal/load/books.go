package load

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// books are the shop's own account of its orders. Who is buying (so that no user buys twice) and what was written are
// kept apart: the second checks the first.
type books struct {
	mu     sync.Mutex
	buying map[string]bool // users who have an order, or are about to
	buyers []string        // one entry an order, in the order in which they were written
	times  []time.Time     // when each was written

	came    map[string]bool // serials
	serials map[string]int  // order number by serial; 0 = cancelled: there never will be an order
	again   int64
	remade  int64
}

func newBooks() books {
	return books{buying: map[string]bool{}, came: map[string]bool{}, serials: map[string]int{}}
}

// begin reports whether the user may buy: a user who has bought, or is buying, may not.
func (b *books) begin(user string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buying[user] {
		return false
	}
	b.buying[user] = true
	return true
}

// abandon ends what begin began, without an order.
func (b *books) abandon(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.buying, user)
}

// write writes the next order, and gives its number.
func (b *books) write(user string) (id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(user)
}

// add writes the next order. mu is held.
func (b *books) add(user string) (id string) {
	b.buyers, b.times = append(b.buyers, user), append(b.times, time.Now())
	return orderID(len(b.buyers))
}

func orderID(number int) string { return fmt.Sprintf("D%06d", number) }

// arrive notes that a request with this serial has come. An order is sent at most once: a second one counts.
func (b *books) arrive(serial string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.came[serial] {
		b.again++
	}
	b.came[serial] = true
}

// place writes the order of a serial down and gives its number; the same one when it is there already, and made is
// false then. It reports false when the serial was cancelled before.
func (b *books) place(serial, user string) (id string, made, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch n, known := b.serials[serial]; {
	case known && n == 0:
		return "", false, false
	case known:
		b.remade++
		return orderID(n), false, true
	}
	id = b.add(user)
	b.serials[serial] = len(b.buyers)
	return id, true, true
}

// orderOf gives the number of a serial's order. With cancel a serial without one is cancelled by the question: a caller
// that heard that there is no order may rely on it.
func (b *books) orderOf(serial string, cancel bool) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.serials[serial]; n > 0 {
		return orderID(n), true
	}
	if cancel {
		b.serials[serial] = 0
	}
	return "", false
}

// Orders are the buyers of the orders so far, by serial; none where the gateway does not reserve.
func (s *Shop) Orders() map[string]string {
	b := &s.books
	b.mu.Lock()
	defer b.mu.Unlock()
	buyers := make(map[string]string, len(b.serials))
	for serial, n := range b.serials {
		if n > 0 {
			buyers[serial] = b.buyers[n-1]
		}
	}
	return buyers
}

// repeated counts the users that are named more than once.
func repeated(users []string) (n int64) {
	times := make(map[string]int, len(users))
	for _, user := range users {
		times[user]++
		if times[user] == 2 {
			n++
		}
	}
	return n
}

// Totals are what the shop has seen and written down: the truth about a sale, whatever the stock, the gateway or the
// crowd say.
type Totals struct {
	Units        int64         `json:"-"` // for sale in all
	Requests     int64         `json:"requests"`
	Orders       int64         `json:"orders"` // written; each is one unit sold
	Oversold     int64         `json:"oversold"`
	Twice        int64         `json:"-"`          // users with more than one order
	Again        int64         `json:"sent_twice"` // serials that came before; with Again, that had an order
	Remade       int64         `json:"-"`          // of these, whose order was there already
	Failed       int64         `json:"failed"`
	Unwritten    int64         `json:"unwritten,omitempty"` // orders that the stock which the gateway reads does not know
	UnderWay     int64         `json:"under_way,omitempty"` // when these were read
	PeakInFlight int64         `json:"peak_in_flight"`
	PeakWorking  int64         `json:"peak_working"`
	PeakPer10ms  int64         `json:"peak_requests_per_10ms"`
	PeakPerS     int64         `json:"peak_requests_per_second"`
	Busy         float64       `json:"busy"` // of its capacity, while it sold
	Capacity     int           `json:"capacity"`
	Works        Times         `json:"works"`
	Waits        Times         `json:"waits"` // within the shop, for a place
	First        time.Duration `json:"-"`     // when the first unit was sold, from the beginning
	Last         time.Duration `json:"-"`     // likewise the last one that there was; 0 = not all are sold
}

// Totals are those so far.
func (s *Shop) Totals() Totals {
	b := &s.books
	b.mu.Lock()
	defer b.mu.Unlock()
	orders := int64(len(b.buyers))
	t := Totals{
		Units: s.o.Units, Requests: s.requests.Load(), Orders: orders, Oversold: max(0, orders-s.o.Units),
		Again: b.again, Remade: b.remade, Failed: s.failed.Load(), Unwritten: s.broke.Load(),
		UnderWay: s.inFlight.now.Load(), PeakInFlight: s.inFlight.most.Load(), PeakWorking: s.working.most.Load(),
		PeakPer10ms: s.came.Peak(1), PeakPerS: s.came.Peak(100),
		Capacity: s.o.Capacity, Works: s.worked.Times(), Waits: s.waited.Times(),
	}
	if s.o.Again { // until there is an order it may come as often as it likes
		t.Again = t.Remade
	}
	if s.o.User != nil {
		t.Twice = repeated(b.buyers)
	}
	if orders == 0 {
		return t
	}
	start, first := time.Unix(0, s.start.Load()), b.times[0]
	t.First = first.Sub(start)
	if whole := (b.times[orders-1].Sub(first) + s.o.Latency).Seconds() * float64(s.o.Capacity); whole > 0 {
		t.Busy = min(1, float64(orders)*s.worked.Mean().Seconds()/whole)
	}
	if s.o.Units > 0 && orders >= s.o.Units {
		t.Last = b.times[s.o.Units-1].Sub(start)
	}
	return t
}

// Series are the requests and the units sold over time, from Begin.
func (s *Shop) Series() (came, sold Series) { return s.came, s.sold }

// Ledger is what the gateway's own books, or the stock that it reads, say of a sale.
type Ledger struct {
	Total int64 `json:"total"` // for sale in all
	Free  int64 `json:"free"`  // not taken
	Held  int64 `json:"held"`  // taken, and not decided yet
	Sold  int64 `json:"sold"`
	Own   bool  `json:"own"` // the gateway's, which takes the units itself

	Released int64 `json:"-"` // orders whose units were given back
	Resolved int64 `json:"-"` // orders that counted as sold only after the gateway had asked the shop about them
}

// Complaints are the promises that were broken.
type Complaints []error

// Add adds one, if it is wrong.
func (c *Complaints) Add(wrong bool, format string, args ...any) {
	if wrong {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// Err is all of them; nil = none.
func (c Complaints) Err() error { return errors.Join(c...) }

// Balance adds what a gateway's ledger and the shop's books disagree on. While a sale goes on they may: what is held is
// in one of them alone. Of an interrupted one only what is sold can be told.
func (c *Complaints) Balance(l Ledger, t Totals, interrupted bool) {
	c.Add(l.Total != t.Units, "balance: the ledger has %d units in all, the shop %d", l.Total, t.Units)
	c.Add(l.Free != l.Total-l.Held-l.Sold, "balance: %d free, but total %d - held %d - sold %d", l.Free, l.Total,
		l.Held, l.Sold)
	c.Add(l.Sold > t.Orders, "balance: %d sold in the ledger, but the shop knows %d orders: some are lost", l.Sold,
		t.Orders)
	c.Add(!interrupted && t.Orders > l.Sold+l.Held,
		"balance: the shop knows %d orders, but the ledger %d sold and %d held", t.Orders, l.Sold, l.Held)
}
