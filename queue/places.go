package queue

import (
	"context"
	"strconv"
	"time"

	"sluice/stockgate/ledger/protocol"
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

// acquire gives back places that are free, and takes others: for as many orders as wait, within the limit.
func (d *Deliverer) acquire(ctx context.Context, now time.Time, waiting int64) (granted []place, err error) {
	limit, pause, rate := d.pace.now(now), d.pace.takePause(), d.live().Rate
	if d.o.Pulls {
		waiting = 0
	}
	if pause > 0 {
		d.paused = now.Add(pause)
	}
	d.mu.Lock()
	want := int(min(int64(max(limit-d.inFlight, 0)), waiting, maxTake))
	if rate == 0 && now.After(d.paused) {
		granted = d.reuse(now, want)
	}
	back := d.old(now)
	d.mu.Unlock()
	call := protocol.SlotCall{Limit: limit, Rate: rate, For: (d.o.Timeout + d.o.Grace + reuseFor).Milliseconds(),
		Pause: pause.Milliseconds()}
	if now.After(d.dry) || len(back) > 0 {
		call.Want = d.newTokens(want - len(granted))
	}
	for _, p := range back {
		if call.Free = append(call.Free, p.token); p.unused {
			call.Unused++
		}
	}
	if len(call.Free) == 0 && len(call.Want) == 0 && pause == 0 {
		return granted, nil
	}
	d.calls[callSlots].Add(1)
	n, err := d.o.Store.Slots(ctx, call)
	if err != nil {
		d.release(append(granted, back...)...)
		return nil, err
	}
	if len(call.Want) > 0 && n == 0 {
		d.dryWait = min(max(2*d.dryWait, fullWait), longestDry)
		d.dry = now.Add(d.dryWait)
	} else if n > 0 {
		d.dryWait = 0
	}
	for _, token := range call.Want[:n] {
		granted = append(granted, place{token: token, granted: now})
	}
	return granted, nil
}

// reuse takes out free places that were granted lately. mu is held.
func (d *Deliverer) reuse(now time.Time, n int) (taken []place) {
	kept := d.free[:0]
	for _, p := range d.free {
		if len(taken) < n && now.Sub(p.granted) < reuseFor {
			taken = append(taken, p)
		} else {
			kept = append(kept, p)
		}
	}
	d.free = kept
	return taken
}

// old takes out free places that are given back now. mu is held.
func (d *Deliverer) old(now time.Time) (back []place) {
	kept := d.free[:0]
	for _, p := range d.free {
		if len(back) < protocol.MaxTokens && now.Sub(p.granted) >= reuseFor {
			back = append(back, p)
		} else {
			kept = append(kept, p)
		}
	}
	d.free = kept
	return back
}

// newTokens are names for n places.
func (d *Deliverer) newTokens(n int) (tokens []string) {
	for range n {
		tokens = append(tokens, d.prefix+strconv.FormatInt(d.tokens.Add(1), 36))
	}
	return tokens
}

// release frees places. Past 4 x MaxTokens they end by themselves.
func (d *Deliverer) release(free ...place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, free[:min(len(free), max(4*protocol.MaxTokens-len(d.free), 0))]...)
}

// giveBack gives back what is free when nothing is sent any more.
func (d *Deliverer) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	var tokens []string
	for _, p := range d.free[:min(len(d.free), protocol.MaxTokens)] {
		tokens = append(tokens, p.token)
	}
	if len(tokens) > 0 {
		_, _ = d.o.Store.Slots(ctx, protocol.SlotCall{Free: tokens, For: 1}) // or they end by themselves
	}
}

// extend keeps the place of an attempt that may take longer than a first one, or reports that it is lost.
func (d *Deliverer) extend(o *protocol.Leased, p place) bool {
	if o.Attempt <= 1 {
		return true
	}
	ctx, cancel := context.WithTimeout(d.ctx, callLimit)
	defer cancel()
	lasts := time.Until(time.UnixMilli(o.Deadline)) + d.o.Grace + time.Second
	if lasts <= 0 {
		return false
	}
	d.calls[callSlots].Add(1)
	n, err := d.o.Store.Slots(ctx, protocol.SlotCall{Free: []string{p.token}, Want: []string{p.token},
		Limit: d.live().MaxInFlight, For: lasts.Milliseconds()})
	return err == nil && n == 1
}
