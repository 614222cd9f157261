package link

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// errands runs one thing in the background, now and then while there are calls, one at a time.
type errands struct {
	run            func(context.Context)
	every, soonest int64 // ns from one to the next: without cause, and with one

	last    atomic.Int64 // Unix ns when the last one began
	wanted  atomic.Bool  // somebody has a cause
	running atomic.Bool

	ctx  context.Context
	stop context.CancelFunc
	mu   sync.Mutex // guards the beginning of one
	all  sync.WaitGroup
}

func newErrands(run func(context.Context), every, soonest time.Duration) *errands {
	e := &errands{run: run, every: int64(every), soonest: int64(soonest)}
	e.last.Store(time.Now().UnixNano())
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// due begins one when the last is long ago, or when there is a cause.
func (e *errands) due() {
	if e.wanted.Load() {
		e.begin(e.soonest)
		return
	}
	e.begin(e.every)
}

// soon is due with a cause. Where the last one was just now, it lets a later call begin.
func (e *errands) soon() {
	e.wanted.Store(true)
	e.begin(e.soonest)
}

func (e *errands) begin(after int64) {
	now := time.Now().UnixNano()
	if now-e.last.Load() < after || !e.running.CompareAndSwap(false, true) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return
	}
	e.last.Store(now)
	e.wanted.Store(false)
	e.all.Go(func() {
		defer e.running.Store(false)
		e.run(e.ctx)
	})
}

// close stops and awaits what runs; nothing begins afterwards.
func (e *errands) close() {
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	e.all.Wait()
}
