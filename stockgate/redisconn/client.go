// Package redisconn keeps the connections to one Redis: a single server, the master that sentinels name, or the masters
// of a cluster. go-redis opens them, speaks the protocol and reads a cluster's slots.
//
// This package adds four promises. No command is sent twice, unless the server said that it did nothing: it is not the
// right one (MOVED, ASK, READONLY) or not yet (TRYAGAIN). A call ends within ConnectTimeout + Timeout. Each server has
// a circuit breaker, which opens after BreakerErrors, or when the server has answered no call for a second; every call
// fails at once then, and after BreakerPause one call tries. Where Identify names servers, a caller knows which one its
// commands reach, even while Redis fails over or a slot moves.
//
// So calls go to go-redis' clients of single servers, with MaxRetries -1. Its ClusterClient would repeat each command
// after a timeout that is not marked NoRetry, and does not tell which server it asks. Its FailoverClient believes the
// first sentinel that answers; see watched.
//
// It knows no command of its callers. What is asked, and what an error means, is theirs.
package redisconn

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Client reaches one Redis. It is safe for concurrent use.
type Client struct {
	options  Options
	topology atomic.Pointer[topology] // nil = not known yet
	detect   chan struct{}            // held while the topology is detected
	foundLog *slog.Logger             // what Redis is found to be: one process has several clients of one Redis
	breaker  *breaker                 // of the detection
	passed   atomic.Int64             // how many connections were opened when the guard let a call through last
	mu       sync.Mutex               // guards the change of topology, and closed
	closed   bool
}

// topology is where calls go: one server, the master that sentinels name, or a cluster.
type topology interface {
	call(ctx context.Context, w Route, c call) error
	servers(ctx context.Context) ([]*server, error)
	name() string
	close()
}

// What callers pass. An ask makes one round trip on the client of one server, of which server is the name, and a lost
// returns nil for errors that do not count against that server; nil = each one counts.
type (
	askFunc   = func(ctx context.Context, c Commands) error
	askOnFunc = func(ctx context.Context, c Commands, server string) error
	lostFunc  = func(error) error
)

// Once is a command that go-redis must not send again by itself, whatever its other settings say.
type Once struct{ *redis.Cmd }

// NoRetry tells go-redis so.
func (Once) NoRetry() bool { return true }

// call is what to do on one server.
type call struct {
	do   askOnFunc
	lost lostFunc
}

// counted is err where it counts against the server.
func (c call) counted(err error) error {
	if err == nil || c.lost == nil {
		return err
	}
	return c.lost(err)
}

// New returns a Client. It does not wait for Redis: whether Redis is there shows at the first call. The caller must
// Close it.
func New(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.opened = new(atomic.Int64)
	l := &Client{options: o, detect: make(chan struct{}, 1), foundLog: o.Log}
	if o.Log == nil {
		l.foundLog, l.options.Log = slog.New(slog.DiscardHandler), slog.Default()
	}
	l.breaker = o.newBreaker(nil)
	l.passed.Store(notPassed)
	if o.Topology != Auto {
		l.open(o.Topology, o.MasterName)
	}
	return l, nil
}

// Do is Route.Do on any server. In a cluster any master may be asked, and another one when that says so.
func (l *Client) Do(ctx context.Context, ask askFunc, lost lostFunc) error {
	return l.To("").Do(ctx, ask, lost)
}

// Close closes all connections. Later calls fail.
func (l *Client) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.topology.Load(); t != nil && !l.closed {
		(*t).close()
	}
	l.closed = true
	return nil
}

// Topology is what Redis is: Single, Sentinel or Cluster. With Auto it may have to ask.
func (l *Client) Topology(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.longest())
	defer cancel()
	t, err := l.find(ctx)
	if err != nil {
		return "", fmt.Errorf("detect the topology of redis: %w", err)
	}
	return t.name(), nil
}

// find returns the topology. The first calls wait until one of them has detected it.
func (l *Client) find(ctx context.Context) (topology, error) {
	if t := l.topology.Load(); t != nil {
		return *t, nil
	}
	select {
	case l.detect <- struct{}{}:
		defer func() { <-l.detect }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnsent, ctx.Err())
	}
	if t := l.topology.Load(); t != nil {
		return *t, nil
	}
	report, err := l.breaker.Allow()
	if err != nil {
		return nil, err
	}
	name, master, err := l.options.detect(ctx)
	report(err)
	if err != nil {
		return nil, err
	}
	l.foundLog.Info("redis found", "topology", name, "master_name", master,
		"addresses", strings.Join(l.options.Addresses, " "))
	if t := l.open(name, master); t != nil {
		return t, nil
	}
	return nil, redis.ErrClosed
}

// open makes what a topology needs; nil when l is closed.
func (l *Client) open(name, master string) topology {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	var t topology
	switch name {
	case Sentinel:
		t = watchMaster(l.options, master)
	case Cluster:
		t = newCluster(l.options)
	default:
		t = newServer(l.options, l.options.Addresses[0], nil)
	}
	l.topology.Store(&t)
	return t
}

// Route leads to the server that has a key, or to a certain server. It is a value, cheap to make, and lasts as long as
// its Client.
type Route struct {
	link   *Client
	key    string  // "" = any server
	server *server // nil = the one that has the key
	free   bool    // no guard stands before it
}

// To leads to the server that has key, now and after it moves. All keys that a call names must be in its slot.
func (l *Client) To(key string) Route { return Route{link: l, key: key} }

// Servers lead to each server that takes writes: one, or a cluster's masters.
func (l *Client) Servers(ctx context.Context) ([]Route, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.longest())
	defer cancel()
	t, err := l.find(ctx)
	if err != nil {
		return nil, err
	}
	all, err := t.servers(ctx)
	ways := make([]Route, len(all))
	for i, s := range all {
		ways[i] = Route{link: l, server: s}
	}
	return ways, err
}

// Address is where a way of Servers leads; "" for others, and for a master that sentinels name.
func (w Route) Address() string {
	if w.server == nil {
		return ""
	}
	return w.server.address
}

// Do lets ask make one round trip, when the breaker lets it, and returns its error. Those errors for which lost returns
// nil do not count against Redis.
func (w Route) Do(ctx context.Context, ask askFunc, lost lostFunc) error {
	return w.Ask(ctx, func(ctx context.Context, c Commands, _ string) error { return ask(ctx, c) }, lost)
}

// Ask is Do, and tells ask which server it reaches: the name that Options.Identify gave. Every connection of the client
// leads to that server. When another server is found in its place nothing was sent, and ask is called once more, for
// that one.
func (w Route) Ask(ctx context.Context, ask askOnFunc, lost lostFunc) error {
	ctx, cancel := context.WithTimeout(ctx, w.link.options.longest())
	defer cancel()
	t, err := w.link.find(ctx)
	if err == nil && !w.free {
		err = w.link.guard(ctx)
	}
	if err != nil {
		return err
	}
	return t.call(ctx, w, call{ask, lost})
}
