package sale

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// State is where a sale stands.
type State uint8

// The states. An operator says On, Paused or Ended; the time says Waiting, and Ended too.
const (
	On State = iota
	Waiting
	Paused
	Ended
)

// String is the state as operators read it.
func (s State) String() string { return [...]string{"on", "waiting", "paused", "ended"}[s] }

// Phase is where a SKU stands.
type Phase struct {
	Sale   string
	State  State
	Opens  int64         // Unix ms: when it opens, or has opened
	Closes int64         // Unix ms
	Wait   time.Duration // until it opens, of Waiting
	Begun  bool          // on this instance, while the clocks agreed
	Doubt  bool          // Paused, since the clocks do not agree
	pass   bool
}

// plan is all sales, ready to be looked up. It is not changed once it is published.
type plan struct {
	all   []*saleState
	clock bool                    // the shared clock is read without a sale, too
	bySKU map[string][]*saleState // each list in the order of time
}

// saleState is one sale and how it stands.
type saleState struct {
	Sale
	starts, ends int64 // Unix ns

	said   atomic.Uint32 // State: by an operator
	saidAt atomic.Int64  // Unix ms
	begun  atomic.Bool   // it began here, while the clocks agreed
	over   atomic.Bool   // the log has said so
}

// Use takes other sales from now on. Of those that are there already it keeps what operators said (word.of), and of
// those that begin when they did that they have begun. Redis is asked before: no request is decided by a clock or a word
// that it was not read at. clock says that others read the shared clock, so that Redis is asked without a sale, too. It
// waits for Redis no longer than for three round trips.
func (b *Schedule) Use(sales []Sale, clock bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := map[string]*saleState{}
	if p := b.plan.Load(); p != nil {
		for _, s := range p.all {
			before[s.Name] = s
		}
	}
	next := &plan{clock: clock, bySKU: map[string][]*saleState{}}
	for _, one := range sales {
		s := &saleState{Sale: one, starts: one.Starts.UnixNano(), ends: one.Ends.UnixNano()}
		if old := before[one.Name]; old != nil {
			s.begun.Store(old.begun.Load() && old.starts == s.starts)
			if w := old.known(); w.of(s) {
				s.said.Store(uint32(w.to))
				s.saidAt.Store(w.at)
			}
		}
		next.all = append(next.all, s)
		for _, sku := range one.SKUs {
			next.bySKU[sku] = append(next.bySKU[sku], s)
		}
	}
	for _, list := range next.bySKU {
		slices.SortFunc(list, func(a, b *saleState) int { return cmp.Compare(a.starts, b.starts) })
	}
	asks := 1
	if b.clock.Error == 0 {
		asks = firstBeats
	}
	for range asks {
		if b.update(context.Background(), next); b.beats.Away() {
			break
		}
	}
	b.plan.Store(next)
}

// At tells where sku stands at now (monotonic ns); ok is false for a SKU that is in no sale. Of several sales it is the
// one that is on or comes next, else the last. One that an operator has ended is over.
func (b *Schedule) At(now int64, sku []byte) (p Phase, ok bool) {
	list := b.plan.Load().bySKU[string(sku)]
	if len(list) == 0 {
		return Phase{}, false
	}
	at := b.Time(now)
	s := list[len(list)-1]
	for _, one := range list {
		if at < one.ends && State(one.said.Load()) != Ended {
			s = one
			break
		}
	}
	return s.at(at, b.wrong.Load()), true
}

// Sells reports whether of the sales of sku the one that is on or comes next is that of a name.
func (b *Schedule) Sells(name, sku string) bool {
	p, ok := b.At(b.o.Now(), []byte(sku))
	return ok && p.Sale == name
}

// Phase is At for the present.
func (b *Schedule) Phase(sku []byte) (Phase, bool) { return b.At(b.o.Now(), sku) }

// at is where the sale stands at a time of the shared clock.
func (s *saleState) at(at int64, wrong bool) Phase {
	p := Phase{Sale: s.Name, Opens: s.starts / 1e6, Closes: s.ends / 1e6, pass: s.Pass, State: State(s.said.Load()),
		Begun: s.begun.Load()}
	switch {
	case p.State == Ended:
		p.Closes = min(p.Closes, s.saidAt.Load())
		p.Opens = min(p.Opens, p.Closes-1) // hours that are over, also where it never began
	case at >= s.ends:
		p.State = Ended
	case at < s.starts:
		if p.State != Paused || !s.Pass { // early requests that would go on do not while it is paused
			p.State = Waiting
		}
		p.Wait = time.Duration(s.starts - at)
	case p.State == On && wrong && !p.Begun:
		p.State, p.Doubt = Paused, true
	}
	return p
}

// logTransitions notes which sales of p begin and end.
func (b *Schedule) logTransitions(p *plan) {
	at := b.Time(b.o.Now())
	for _, s := range p.all {
		if State(s.said.Load()) != Ended && at >= s.starts && at < s.ends && !b.wrong.Load() && !s.begun.Swap(true) {
			b.o.Log.Info("sale begins", "sale", s.Name, "skus", len(s.SKUs), "ends", s.Ends)
		}
		if at >= s.ends && !s.over.Swap(true) && s.begun.Load() {
			b.o.Log.Info("sale is over", "sale", s.Name)
		}
	}
}
