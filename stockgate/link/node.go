package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// node is one server, or the master that somebody else names: its connections and its breaker.
type node struct {
	options Options
	address string                                // "" = locate tells
	locate  func(context.Context) (string, error) // asked once for each session; nil = address
	breaker *breaker
	session atomic.Pointer[session]
	stale   atomic.Bool  // the next call needs a new session
	failing atomic.Bool  // it did not answer the last question
	unowned atomic.Int64 // Unix ns since when a cluster's node has no slot; 0 = it has some
	mu      sync.Mutex   // guards the change of session, and closed
	closed  bool
}

func newNode(o Options, address string, locate func(context.Context) (string, error)) *node {
	n := &node{options: o, address: address, locate: locate}
	n.breaker = o.breaker(func(to gobreaker.State) { n.stale.Store(to == gobreaker.StateHalfOpen) })
	n.session.Store(n.connect())
	return n
}

// breaker makes one; changed may be nil.
func (o Options) breaker(changed func(to gobreaker.State)) *breaker {
	s := gobreaker.Settings{
		Interval:     time.Second,
		BucketPeriod: 100 * time.Millisecond,
		Timeout:      o.BreakerPause,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int64(c.TotalFailures) >= int64(o.BreakerErrors) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	}
	if changed != nil {
		s.OnStateChange = func(_ string, _, to gobreaker.State) { changed(to) }
	}
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](s)
}

// ask puts a question to this server, with the right to one about a slot that it is only about to get, where asking.
func (n *node) ask(ctx context.Context, q question, asking bool) error {
	report, err := n.breaker.Allow()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLeftAlone, err)
	}
	if n.stale.CompareAndSwap(true, false) {
		n.replace(n.session.Load())
	}
	s := n.session.Load()
	err = s.ask(ctx, q, asking)
	if n.another(err) || errors.Is(err, redis.ErrClosed) && s != n.session.Load() {
		n.replace(s)
		s = n.session.Load()
		err = s.ask(ctx, q, asking)
	}
	lost := err
	switch {
	case elsewhere(err).kind != here:
		lost = nil
	case err != nil:
		lost = q.lost(err)
	}
	if errors.Is(err, ErrMixedUp) {
		n.replace(s)
	}
	if now := lost != nil; now != n.failing.Load() {
		n.failing.Store(now)
	}
	report(lost)
	return err
}

// another reports whether err says that nothing was done, since another server is to be asked in place of this one.
func (n *node) another(err error) bool {
	return errors.Is(err, errAnotherServer) || n.locate != nil && (errors.Is(err, errNoMaster) || redis.IsReadOnlyError(err))
}

// replace closes old and opens another session, unless somebody has done it already. The breaker's single try after
// a pause needs that too: once as many dials have failed as the pool is large, go-redis dials only once a second and
// answers with the last error meanwhile.
func (n *node) replace(old *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.session.Load() != old {
		return
	}
	n.session.Store(n.connect())
	old.close()
}

// close closes all connections. Later questions fail.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		n.session.Load().close()
	}
}

// single is a Redis that is one server.
type single struct{ *node }

func (s single) ask(ctx context.Context, _ Way, q question) error { return s.node.ask(ctx, q, false) }

func (s single) servers(context.Context) ([]*node, error) { return []*node{s.node}, nil }

func (single) topology() string { return Single }
