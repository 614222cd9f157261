// Package link keeps the connections to one Redis, for whoever of the stock gate talks to it.
//
// It promises that no command is ever sent twice, that a call ends within ConnectTimeout + Timeout, and that a
// Redis in trouble is left alone: after BreakerErrors the breaker opens, and every call fails at once, without a
// packet, until BreakerPause is over; then one call tries. A Redis that hangs need not open it: one call at a time
// that waits for Timeout is not many errors a second, and does not harm either.
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

	client atomic.Pointer[redis.Client]
	stale  atomic.Bool // the next call needs a new client
	mu     sync.Mutex  // guards the change of client, and closed
	closed bool
}

// New returns a Link. It does not wait for Redis: whether it is there shows at the first call. The caller must
// Close it.
func New(o Options) (*Link, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Link{options: o.client(), longest: o.ConnectTimeout + o.Timeout}
	l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:      time.Second,
		BucketPeriod:  100 * time.Millisecond,
		Timeout:       o.BreakerPause,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int64(c.TotalFailures) >= int64(o.BreakerErrors) },
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) { l.stale.Store(to == gobreaker.StateHalfOpen) },
	})
	l.client.Store(l.connect())
	return l, nil
}

func (l *Link) connect() *redis.Client {
	o := l.options
	return redis.NewClient(&o)
}

// Do lets ask make one round trip, when the breaker lets it, and returns its error. Those errors for which
// lost returns nil do not count against Redis.
func (l *Link) Do(ctx context.Context, ask func(context.Context, *redis.Client) error, lost func(error) error) error {
	report, err := l.breaker.Allow()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLeftAlone, err)
	}
	if l.stale.CompareAndSwap(true, false) {
		l.reconnect()
	}
	ctx, cancel := context.WithTimeout(ctx, l.longest)
	defer cancel()
	err = ask(ctx, l.client.Load())
	report(lost(err))
	return err
}

// reconnect replaces the client. The breaker's single try after a pause needs that: once as many dials have
// failed as the pool is large, go-redis dials only once a second and answers with the last error meanwhile.
func (l *Link) reconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	_ = l.client.Swap(l.connect()).Close()
}

// Close closes all connections. Later calls fail.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.client.Load().Close()
}
