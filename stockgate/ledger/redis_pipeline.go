package ledger

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/histogram"
	"sluice/stockgate/link"
)

// mostTrips is how many round trips with orders are under way to one server before others wait for one of them to come back:
// two, so that a connection that hangs does not stop everybody.
const mostTrips = 2

// pipelines let the calls of orders that come at the same time share round trips, whichever SKUs they are for. While fewer
// than mostTrips are under way to a server a call leaves at once, by itself. What comes meanwhile waits until one of them is
// back, and then leaves together: up to 64 calls of 256 orders in all, which Redis reads some thirty at a time, so that they
// hold it no longer than one full call. There is no timer. Each call keeps its own time: one that has no turn within it is not
// sent any more, and one that is under way then has not been answered.
//
// Who waits is somebody who asks for a Reserve or a Finish. A desk has at most two of the former for each of MaxSKUs lines,
// fewer than requests may be in flight, and at most 256 of the latter.
type pipelines struct {
	longest time.Duration // that a call waits whose asker has set no time
	sizes   histogram.Histogram

	mu     sync.Mutex
	to     map[string]pipeline // by server: those to which something is under way
	closed bool
	all    sync.WaitGroup
}

// pipeline is what is on its way to one server.
type pipeline struct {
	trips   int
	waiting []*errand
}

// askInTurn is ask, for a call that may wait for others and share their round trip. Behind a Reserve that waits for replicas
// nobody shall wait.
func (r *Redis) askInTurn(ctx context.Context, q *errand) (answer []any, err error) {
	if q.script == "reserve" && r.replicas > 0 {
		return r.ask(ctx, q)
	}
	q.keys = fiveKeys(q.sku)
	at := r.link.To(q.keys[0]).Owner()
	if r.pipes.departs(ctx, at, q) {
		r.pipes.sizes.Observe(tripScale, 1)
		defer r.comesBack(at)
		return r.ask(ctx, q)
	}
	select {
	case <-q.back:
		return q.answer, q.err
	case <-ctx.Done():
	}
	if r.pipes.forget(at, q) {
		return nil, fmt.Errorf("%w: %w", link.ErrNoTurn, ctx.Err())
	}
	select {
	case <-q.back:
		return q.answer, q.err
	default: // it is under way, and q is whoever's carries it
		return nil, ctx.Err()
	}
}

// departs reports whether q may leave at once. If not, it waits.
func (p *pipelines) departs(ctx context.Context, at string, q *errand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.to[at]
	alone := line.trips < mostTrips || p.closed
	if alone {
		line.trips++
	} else {
		q.wait(ctx, p.longest)
		line.waiting = append(line.waiting, q)
	}
	p.to[at] = line
	return alone
}

// wait makes q ready to be carried by somebody else, who may still have it when its asker has given up.
func (q *errand) wait(ctx context.Context, longest time.Duration) {
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(longest)
	}
	q.until, q.back = until, make(chan struct{})
}

// forget takes q out of those who wait. It reports false when it does not wait any more.
func (p *pipelines) forget(at string, q *errand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.to[at]
	i := slices.Index(line.waiting, q)
	if i < 0 {
		return false
	}
	line.waiting = slices.Delete(line.waiting, i, i+1)
	p.to[at] = line
	return true
}

// comesBack ends the round trip of one call, or gives its place to those who wait.
func (r *Redis) comesBack(at string) {
	p := &r.pipes
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.to[at].waiting) > 0 {
		p.all.Go(func() { r.carryAll(at) })
		return
	}
	p.end(at)
}

// end ends a round trip behind which nobody waits. mu is held.
func (p *pipelines) end(at string) {
	line := p.to[at]
	if line.trips--; line.trips == 0 {
		delete(p.to, at)
		return
	}
	p.to[at] = line
}

// carryAll takes those who wait to their server, until there is nobody. Each of them has a time of its own, and none sets that
// of the others: a round trip has the link's.
func (r *Redis) carryAll(at string) {
	for {
		runtime.Gosched() // who is nearly here comes along
		some := r.pipes.take(at)
		if len(some) == 0 {
			return
		}
		r.pipes.sizes.Observe(tripScale, float64(len(some)))
		r.askTogether(context.Background(), some)
	}
}

// take takes out who leaves together. With nobody the round trip has ended.
func (p *pipelines) take(at string) (some []*errand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, orders := p.to[at], 0
	for len(line.waiting) > 0 && len(some) < together {
		q := line.waiting[0]
		if orders += q.orders; len(some) > 0 && orders > maxItems {
			break
		}
		some = append(some, q)
		line.waiting[0], line.waiting = nil, line.waiting[1:]
	}
	p.to[at] = line
	if len(some) == 0 {
		p.end(at)
	}
	return some
}

// close answers those who wait, and lets nobody wait any more. It returns when nobody is carried.
func (p *pipelines) close() {
	p.mu.Lock()
	p.closed = true
	for at, line := range p.to {
		for _, q := range line.waiting {
			q.err = fmt.Errorf("%w: %w", link.ErrNoTurn, redis.ErrClosed)
			q.end()
		}
		line.waiting = nil
		p.to[at] = line
	}
	p.mu.Unlock()
	p.all.Wait()
}
