package queue

import (
	"context"
	"sync"
	"time"

	"sluice/stockgate/ledger"
)

// batches gathers what the store is asked about the orders of each SKU: one call of a SKU is under way at a time, and
// what comes meanwhile goes with the next one. It is safe for concurrent use.
type batches[In, Out any] struct {
	call func(sku string, in []In) ([]Out, error) // by position

	mu    sync.Mutex
	paced gathering                    // by the orders of all SKUs
	bySKU map[string][]*batch[In, Out] // that wait, in order; with an entry a goroutine makes the calls of the SKU
}

// batch is what goes with one call.
type batch[In, Out any] struct {
	in   []In
	out  []Out
	err  error
	done chan struct{} // closed when out and err are there
}

// gathering tells until when a call waits, so that it is about several orders: what a call costs is divided among them.
// Few orders never wait.
type gathering struct {
	since  time.Time
	orders int // that were in calls since
}

const (
	gatherFor = 10 * time.Millisecond
	several   = 4 // orders within gatherFor
)

// count notes that a call was about n orders.
func (g *gathering) count(now time.Time, n int) {
	if now.Sub(g.since) > gatherFor {
		g.since, g.orders = now, 0
	}
	if g.orders += n; g.orders >= several {
		g.since, g.orders = now.Add(gatherFor), 0
	}
}

// pause is how long the next call waits.
func (g *gathering) pause(now time.Time) time.Duration { return g.since.Sub(now) }

// do asks about one order. Only the caller's wait ends with ctx.
func (b *batches[In, Out]) do(ctx context.Context, sku string, in In) (out Out, err error) {
	mine, at := b.join(sku, in)
	select {
	case <-mine.done:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	if mine.err != nil {
		return out, mine.err
	}
	return mine.out[at], nil
}

// join adds to the last batch that waits.
func (b *batches[In, Out]) join(sku string, in In) (mine *batch[In, Out], at int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, running := b.bySKU[sku]
	if n := len(waiting); n > 0 && len(waiting[n-1].in) < ledger.MaxItems {
		mine = waiting[n-1]
	} else {
		mine = &batch[In, Out]{done: make(chan struct{})}
		if b.bySKU == nil {
			b.bySKU = make(map[string][]*batch[In, Out])
		}
		b.bySKU[sku] = append(waiting, mine)
	}
	mine.in = append(mine.in, in)
	if !running {
		go b.run(sku) // it ends with the calls, each of which is bounded
	}
	return mine, len(mine.in) - 1
}

func (b *batches[In, Out]) run(sku string) {
	for next := b.next(sku); next != nil; next = b.next(sku) {
		next.out, next.err = b.call(sku, next.in)
		close(next.done)
	}
}

// next waits for the time of the next call and takes out its batch; nil = the caller's goroutine ends.
func (b *batches[In, Out]) next(sku string) *batch[In, Out] {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := b.bySKU[sku]
	if pause := b.paced.pause(time.Now()); pause > 0 && len(waiting) == 1 && len(waiting[0].in) < ledger.MaxItems {
		b.mu.Unlock()
		time.Sleep(pause)
		b.mu.Lock()
		waiting = b.bySKU[sku]
	}
	if len(waiting) == 0 {
		delete(b.bySKU, sku)
		return nil
	}
	b.bySKU[sku] = waiting[1:]
	b.paced.count(time.Now(), len(waiting[0].in))
	return waiting[0]
}
