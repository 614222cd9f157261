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
	stale   atomic.Bool            // the next call needs a new session
	failing atomic.Int64           // Unix ns since when it has answered no question; 0 = it answered the last one
	taught  atomic.Pointer[string] // the server to which OnServer spoke last; nil = none
	unowned atomic.Int64           // Unix ns since when a cluster's node has no slot; 0 = it has some
	mu      sync.Mutex             // guards the change of session, and closed
	closed  bool
}

func newNode(o Options, address string, locate func(context.Context) (string, error)) *node {
	n := &node{options: o, address: address, locate: locate}
	n.breaker = o.breaker(n.silent, func(to gobreaker.State) { n.stale.Store(to == gobreaker.StateHalfOpen) })
	n.session.Store(n.connect(true))
	return n
}

// hangs is for how long a server may answer nobody before it is left alone, however few ask: whoever waits for it costs a
// connection, and the others a little of their time.
const hangs = time.Second

// silent reports whether the server hangs.
func (n *node) silent() bool {
	since := n.failing.Load()
	return since != 0 && time.Now().UnixNano()-since >= int64(hangs)
}

// note keeps in mind whether the server answers.
func (n *node) note(lost error) {
	switch since := n.failing.Load(); {
	case lost == nil && since != 0:
		n.failing.Store(0)
	case lost != nil && since == 0:
		n.failing.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// breaker makes one, which also opens when silent says so; changed is told its states.
func (o Options) breaker(silent func() bool, changed func(to gobreaker.State)) *breaker {
	s := gobreaker.Settings{
		Interval:     time.Second,
		BucketPeriod: 100 * time.Millisecond,
		Timeout:      o.BreakerPause,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return int64(c.TotalFailures) >= int64(o.BreakerErrors) || o.BreakerErrors != Unbroken && silent()
		},
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) { changed(to) },
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
		if err := n.probe(ctx); err != nil {
			report(err)
			return fmt.Errorf("%w: %w", ErrLeftAlone, err)
		}
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
	n.note(lost)
	report(lost)
	return err
}

// another reports whether err says that nothing was done, since another server is to be asked in place of this one.
func (n *node) another(err error) bool {
	return errors.Is(err, errAnotherServer) || n.locate != nil && (errors.Is(err, errNoMaster) || redis.IsReadOnlyError(err))
}

// probe looks whether the server answers again, over one connection: a session opens all of its own ahead, and a server
// that hangs shall not have that many with each try.
func (n *node) probe(ctx context.Context) error {
	s := n.connect(false)
	defer s.close()
	err := s.client.Ping(ctx).Err()
	var reply redis.Error
	if errors.As(err, &reply) || n.another(err) { // it is there; what it thinks of the question it says itself
		return nil
	}
	return err
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
	n.session.Store(n.connect(true))
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
