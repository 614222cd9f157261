package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sluice/stockgate/ledger"
)

// line is what is known of the orders of one SKU.
type line struct {
	sku       string
	depth     ledger.Depth
	looked    time.Time // when it was asked for the last time
	delivered int64     // at the time measured
	measured  time.Time
	pace      float64 // orders a second, smoothed; 0 = not known
	accepted  int64   // orders that this instance has accepted
}

// lines are the SKUs with orders that wait or were handed out. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	all  map[string]*line
	turn int // which of the active ones is first

	// Of scan alone.
	scanned time.Time
	after   string // of all SKUs: the last one that was searched; "" = none
}

const (
	lookEvery    = 200 * time.Millisecond // a SKU is asked for orders whose lease has ended
	lookEach     = 2 * time.Millisecond   // of many SKUs so long after each other
	scanEvery    = time.Second            // SKUs are searched for orders that others have accepted
	maxActive    = 4096
	measureEvery = time.Second
	smooth       = 0.3 // the weight of the newest measurement
)

// open returns the line of a SKU, or nil where there are too many. mu is held.
func (s *lines) open(sku string) *line {
	l := s.all[sku]
	if l == nil && len(s.all) < maxActive {
		l = &line{sku: sku}
		s.all[sku] = l
	}
	return l
}

// active are copies of the lines with something to do; each begins in its turn.
func (s *lines) active() (list []*line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if l.depth.Active() {
			c := *l
			list = append(list, &c)
		}
	}
	if len(list) < 2 {
		return list
	}
	slices.SortFunc(list, func(a, b *line) int { return cmp.Compare(a.sku, b.sku) })
	s.turn = (s.turn + 1) % len(list)
	return append(list[s.turn:len(list):len(list)], list[:s.turn]...)
}

// learn takes in what a store said of a line. One that was accepted since it was asked may not be counted yet.
func (s *lines) learn(now time.Time, of *line, d ledger.Depth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open(of.sku)
	if l == nil {
		return
	}
	if d.Stuck = l.depth.Stuck; l.accepted > of.accepted {
		d.Waiting = max(d.Waiting, 1)
	}
	l.depth, l.looked = d, now
	switch since := now.Sub(l.measured); {
	case l.measured.IsZero(), d.Delivered < l.delivered:
		l.delivered, l.measured = d.Delivered, now
	case since >= measureEvery:
		rate := float64(d.Delivered-l.delivered) / since.Seconds()
		if l.pace > 0 {
			rate = smooth*rate + (1-smooth)*l.pace
		}
		l.pace, l.delivered, l.measured = rate, d.Delivered, now
	}
}

// eta is how long an order waits with so many before it; 0 = it is not known.
func (s *lines) eta(sku string, ahead int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.all[sku]; l != nil {
		return l.eta(ahead)
	}
	return 0
}

// eta is how long an order of l waits with so many before it; 0 = it is not known.
func (l *line) eta(ahead int64) time.Duration {
	if l.pace <= 0 {
		return 0
	}
	return time.Duration(float64(ahead+1) / l.pace * float64(time.Second))
}

// total is what all lines have.
func (s *lines) total() (sum ledger.Depth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		sum.Waiting += l.depth.Waiting
		sum.Leased += l.depth.Leased
		sum.Asking += l.depth.Asking
		sum.Stuck += l.depth.Stuck
		sum.Delivered += l.depth.Delivered
	}
	return sum
}

// scan searches for orders of SKUs that this instance knows nothing of: others have accepted them. One goroutine calls
// it.
func (s *lines) scan(ctx context.Context, store Store, now time.Time) error {
	if now.Sub(s.scanned) < scanEvery {
		return nil
	}
	skus, err := store.Names(ctx, s.after)
	if err != nil {
		return err
	}
	s.after = ""
	if len(skus) > 0 {
		s.after = skus[len(skus)-1]
	}
	for some := range slices.Chunk(skus, ledger.MaxTogether) {
		before := s.acceptedOf(some)
		depths, err := store.Depths(ctx, some)
		if err != nil {
			return err
		}
		s.mu.Lock()
		for i, sku := range some {
			s.found(sku, depths[i], before[i])
		}
		s.mu.Unlock()
	}
	s.scanned = now
	return nil
}

// acceptedOf is how many orders of each SKU this instance has accepted.
func (s *lines) acceptedOf(skus []string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make([]int64, len(skus))
	for i, sku := range skus {
		if l := s.all[sku]; l != nil {
			n[i] = l.accepted
		}
	}
	return n
}

// found takes in how many orders a SKU has, of which so many were accepted here when it was asked: an order that was
// accepted since may not be counted yet. mu is held.
func (s *lines) found(sku string, d ledger.Depth, accepted int64) {
	l := s.all[sku]
	switch {
	case l != nil && l.accepted > accepted:
		return
	case l != nil && !d.Active():
		delete(s.all, sku)
		return
	case l == nil && !d.Active():
		return
	case l == nil:
		if l = s.open(sku); l == nil {
			return
		}
	}
	d.Delivered, d.Oldest = l.depth.Delivered, l.depth.Oldest
	l.depth = d
}

// accepted counts one more order of a SKU, and tells how many were before it, as far as this instance knows.
func (s *lines) accepted(sku string) (ahead int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open(sku)
	if l == nil {
		return 0
	}
	l.accepted++
	l.depth.Waiting++
	return l.depth.Waiting - 1
}
