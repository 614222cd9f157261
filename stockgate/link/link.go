// Package link keeps the connections to one Redis, for whoever of the stock gate talks to it: a single server, the
// master that sentinels name, or the masters of a cluster.
//
// It promises that no command is ever sent twice, that a call ends within ConnectTimeout + Timeout, and that a
// server in trouble is left alone: after BreakerErrors its breaker opens, and every call to it fails at once, without a
// packet, until BreakerPause is over; then one call tries. It also opens when the server has answered nobody for a
// second: those who wait for one that hangs need not be many errors. The connections of a pool are opened
// ahead, but not to a server that has failed and not answered since. Where Identify tells servers from each other, whoever
// asks knows which one it asks, even while Redis fails over or a slot moves.
//
// A question is put again only when the server said that it did nothing: it is not the one (MOVED, ASK, READONLY), or
// not yet (TRYAGAIN).
//
// It refuses to know any command of its callers. What is asked, and what an error means, is theirs.
package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	options Options
	longest time.Duration // a call that must connect first
	log     *slog.Logger

	place   atomic.Pointer[place] // nil = not known yet what Redis is
	finding chan struct{}         // holds whoever finds that out
	breaker *breaker              // of finding
	next    atomic.Uint64         // the address at which finding begins
	mu      sync.Mutex            // guards the change of place, and closed
	closed  bool
}

// place is where the questions go: a single server, a watched one, or a cluster.
type place interface {
	ask(ctx context.Context, w Way, q question) error
	servers(ctx context.Context) ([]*node, error)
	topology() string
	close()
}

// question is what is to be asked on one server, and which of its errors count against that.
type question struct {
	ask  func(ctx context.Context, c *redis.Client, server string) error
	lost func(error) error
}

// breaker leaves one server alone.
type breaker = gobreaker.TwoStepCircuitBreaker[struct{}]

// New returns a Link. It does not wait for Redis: whether it is there shows at the first call. The caller must
// Close it.
func New(o Options) (*Link, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Link{options: o, longest: o.ConnectTimeout + o.Timeout, log: o.Log, finding: make(chan struct{}, 1)}
	if l.log == nil {
		l.log = slog.Default()
	}
	l.breaker = o.breaker(func() bool { return false }, func(gobreaker.State) {})
	if o.Topology != Auto {
		l.settle(o.Topology, o.MasterName)
	}
	return l, nil
}

// Do lets ask make one round trip, when the breaker lets it, and returns its error. Those errors for which
// lost returns nil do not count against Redis. In a cluster any master may be asked, and another one when that says so.
func (l *Link) Do(ctx context.Context, ask func(context.Context, *redis.Client) error, lost func(error) error) error {
	return Way{link: l}.Do(ctx, ask, lost)
}

// Ask is Do, and tells ask which server it speaks to: what Options.Identify said of it. Whichever connection the
// question takes, it reaches that server and no other. When another server is found in its place, or somebody else found
// that meanwhile, nothing was sent, and the question is put once more, to that one.
func (l *Link) Ask(ctx context.Context, ask func(context.Context, *redis.Client, string) error, lost func(error) error) error {
	return Way{link: l}.Ask(ctx, ask, lost)
}

// ask puts a question, having found out what Redis is.
func (l *Link) ask(ctx context.Context, w Way, q question) error {
	ctx, cancel := context.WithTimeout(ctx, l.longest)
	defer cancel()
	p, err := l.find(ctx)
	if err != nil {
		return err
	}
	return p.ask(ctx, w, q)
}

// Close closes all connections. Later calls fail.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if p := l.place.Load(); p != nil {
		(*p).close()
	}
	return nil
}

// Topology is what Redis is: Single, Sentinel or Cluster. With Auto it may have to ask.
func (l *Link) Topology(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.longest)
	defer cancel()
	p, err := l.find(ctx)
	if err != nil {
		return "", fmt.Errorf("find out what redis is: %w", err)
	}
	return p.topology(), nil
}
