// Package link keeps the connections to one Redis, for whoever of the stock gate talks to it.
//
// It promises that no command is ever sent twice, that a call ends within ConnectTimeout + Timeout, and that a
// Redis in trouble is left alone: after BreakerErrors the breaker opens, and every call fails at once, without a
// packet, until BreakerPause is over; then one call tries. A Redis that hangs need not open it: one call at a time
// that waits for Timeout is not many errors a second, and does not harm either. Where Identify tells servers from
// each other, whoever asks knows which one it asks, even while Redis fails over.
//
// It refuses to know any command. What is asked, and what an error means, is its caller's.
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

// ErrLeftAlone is the cause when nothing was sent since the breaker is open.
var ErrLeftAlone = errors.New("redis is left alone after too many errors")

// Link is the way to one Redis. It is safe for concurrent use.
type Link struct {
	options redis.Options
	longest time.Duration // a call that must connect first
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	identify func(context.Context, *redis.Conn) (string, error)

	session atomic.Pointer[session]
	stale   atomic.Bool // the next call needs a new session
	mu      sync.Mutex  // guards the change of session, and closed
	closed  bool
}

// New returns a Link. It does not wait for Redis: whether it is there shows at the first call. The caller must
// Close it.
func New(o Options) (*Link, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Link{options: o.client(), longest: o.ConnectTimeout + o.Timeout, identify: o.Identify}
	l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:      time.Second,
		BucketPeriod:  100 * time.Millisecond,
		Timeout:       o.BreakerPause,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int64(c.TotalFailures) >= int64(o.BreakerErrors) },
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) { l.stale.Store(to == gobreaker.StateHalfOpen) },
	})
	l.session.Store(l.connect())
	return l, nil
}

// Do lets ask make one round trip, when the breaker lets it, and returns its error. Those errors for which
// lost returns nil do not count against Redis.
func (l *Link) Do(ctx context.Context, ask func(context.Context, *redis.Client) error, lost func(error) error) error {
	return l.Ask(ctx, func(ctx context.Context, c *redis.Client, _ string) error { return ask(ctx, c) }, lost)
}

// Ask is Do, and tells ask which server it speaks to: what Options.Identify said of it. Whichever connection the
// question takes, it reaches that server and no other. When another server is found in its place, or somebody else found
// that meanwhile, nothing was sent, and the question is put once more, to that one.
func (l *Link) Ask(ctx context.Context, ask func(context.Context, *redis.Client, string) error, lost func(error) error) error {
	report, err := l.breaker.Allow()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLeftAlone, err)
	}
	if l.stale.CompareAndSwap(true, false) {
		l.replace(l.session.Load())
	}
	ctx, cancel := context.WithTimeout(ctx, l.longest)
	defer cancel()
	s := l.session.Load()
	err = s.ask(ctx, ask, l.identify != nil)
	if errors.Is(err, errAnotherServer) || errors.Is(err, redis.ErrClosed) && s != l.session.Load() {
		l.replace(s)
		s = l.session.Load()
		err = s.ask(ctx, ask, l.identify != nil)
	}
	if errors.Is(err, ErrMixedUp) {
		l.replace(s)
	}
	report(lost(err))
	return err
}

// Close closes all connections. Later calls fail.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.session.Load().client.Close()
}
