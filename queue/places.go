package queue

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice/stockgate/ledger"
)

// place is one of those that the upstream has for orders, as this instance holds it. Its zero time is one that is given
// back at once.
type place struct {
	token   string
	granted time.Time
	unused  bool // nothing was sent by it
}

// reuseFor is how long after it was granted a place that is free takes another order of this instance: then no call is
// needed for each order. It is counted into what the store is told of how long the place lasts.
const reuseFor = 100 * time.Millisecond

// slots are the places that this instance holds and asks for. Only the loop calls acquire; all else is safe for
// concurrent use.
type slots struct {
	*shared
	prefix string       // of this instance's tokens
	tokens atomic.Int64 // that were made

	// The loop's own.
	paused  time.Time     // until then the upstream wants no orders
	dry     time.Time     // until then no place is asked for, since all were taken
	dryWait time.Duration // how long that was
	inVain  bool          // places were asked for lately, and none was granted

	inFlight atomic.Int64 // orders in the upstream

	mu   sync.Mutex
	free []place
}

// acquire gives back places that are free, and takes others: for as many orders as wait, within the limit.
func (s *slots) acquire(ctx context.Context, now time.Time, waiting int64) (granted []place, err error) {
	limit, pause, rate := s.pace.now(now), s.pace.takePause(), s.live().Rate
	if s.live().Pulls {
		waiting = 0
	}
	if pause > 0 {
		s.paused = now.Add(pause)
	}
	s.mu.Lock()
	want := int(min(max(int64(limit)-s.inFlight.Load(), 0), waiting, maxTake))
	if rate == 0 && now.After(s.paused) {
		granted = s.reuse(now, want)
	}
	s.inVain = s.inVain && want > 0 && len(granted) == 0
	back := s.old(now)
	s.mu.Unlock()
	call := ledger.SlotCall{Limit: limit, Rate: rate, For: (s.live().Timeout + s.live().Grace + reuseFor).Milliseconds(),
		Pause: pause.Milliseconds(), Longest: s.longest().Milliseconds()}
	if now.After(s.dry) || len(back) > 0 {
		call.Want = s.newTokens(want - len(granted))
	}
	for _, p := range back {
		if call.Free = append(call.Free, p.token); p.unused {
			call.Unused++
		}
	}
	if len(call.Free) == 0 && len(call.Want) == 0 && pause == 0 {
		return granted, nil
	}
	s.calls[callSlots].Add(1)
	n, err := s.live().Store.Slots(ctx, call)
	if err != nil {
		s.release(append(granted, back...)...)
		return nil, err
	}
	if len(call.Want) > 0 {
		s.inVain = n == 0 && len(granted) == 0
	}
	if len(call.Want) > 0 && n == 0 {
		s.dryWait = min(max(2*s.dryWait, fullWait), longestDry)
		s.dry = now.Add(s.dryWait)
	} else if n > 0 {
		s.dryWait = 0
	}
	for _, token := range call.Want[:n] {
		granted = append(granted, place{token: token, granted: now})
	}
	return granted, nil
}

// reuse takes out free places that were granted lately. mu is held.
func (s *slots) reuse(now time.Time, n int) (taken []place) {
	kept := s.free[:0]
	for _, p := range s.free {
		if len(taken) < n && now.Sub(p.granted) < reuseFor {
			taken = append(taken, p)
		} else {
			kept = append(kept, p)
		}
	}
	s.free = kept
	return taken
}

// old takes out free places that are given back now. mu is held.
func (s *slots) old(now time.Time) (back []place) {
	kept := s.free[:0]
	for _, p := range s.free {
		if len(back) < ledger.MaxTokens && now.Sub(p.granted) >= reuseFor {
			back = append(back, p)
		} else {
			kept = append(kept, p)
		}
	}
	s.free = kept
	return back
}

// newTokens are names for n places.
func (s *slots) newTokens(n int) (tokens []string) {
	for range n {
		tokens = append(tokens, s.prefix+strconv.FormatInt(s.tokens.Add(1), 36))
	}
	return tokens
}

// release frees places. Past 4 x MaxTokens they end by themselves.
func (s *slots) release(free ...place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, free[:min(len(free), max(4*ledger.MaxTokens-len(s.free), 0))]...)
}

// giveBack gives back what is free when nothing is sent any more.
func (s *slots) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var tokens []string
	for _, p := range s.free[:min(len(s.free), ledger.MaxTokens)] {
		tokens = append(tokens, p.token)
	}
	if len(tokens) > 0 {
		_, _ = s.live().Store.Slots(ctx, ledger.SlotCall{Free: tokens, For: 1,
			Longest: s.longest().Milliseconds()}) // or they end by themselves
	}
}

// extend keeps the place of an attempt that may take longer than a first one, or reports that it is lost.
func (s *slots) extend(o *ledger.Leased, p place) bool {
	if o.Attempt <= 1 {
		return true
	}
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	defer cancel()
	lasts := time.Until(time.UnixMilli(o.Deadline)) + s.live().Grace + time.Second
	if lasts <= 0 {
		return false
	}
	s.calls[callSlots].Add(1)
	n, err := s.live().Store.Slots(ctx, ledger.SlotCall{Free: []string{p.token}, Want: []string{p.token},
		Limit: s.live().MaxInFlight, For: lasts.Milliseconds(), Longest: s.longest().Milliseconds()})
	return err == nil && n == 1
}
