package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ErrMixedUp is the cause when a reply belonged to another question: whoever finds that returns it from what Ask
// was given, and every connection is closed, since no later reply on them could be believed either.
var ErrMixedUp = errors.New("the reply is another question's")

// Why a connection that was opened just now is closed. Nothing was sent on it.
var (
	errAnotherServer = errors.New("redis is another server than before")
	errNoMaster      = errors.New("redis is no master")
)

// session is the connections to one server.
type session struct {
	client     *redis.Client
	identified bool                   // Options.Identify is there
	server     atomic.Pointer[string] // what Options.Identify said; nil = no connection was opened yet

	address atomic.Pointer[string] // where locate said that the server is; nil = not known yet
	finding chan struct{}          // holds whoever asks locate

	options redis.Options
	mu      sync.Mutex    // guards asking and closed
	asking  *redis.Client // for slots that the server is about to get; nil = never needed
	closed  bool
}

// is reports whether server is the session's; the first one that is named is.
func (s *session) is(server string) bool {
	return s.server.CompareAndSwap(nil, &server) || *s.server.Load() == server
}

// connect opens a session. Without ahead no connection is opened before it is needed.
func (n *node) connect(ahead bool) *session {
	s, o := &session{identified: n.options.Identify != nil, finding: make(chan struct{}, 1)}, n.options.client(n.address)
	if !ahead {
		o.MinIdleConns = 0
	}
	o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return n.greet(ctx, s, c) }
	if n.locate != nil {
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) { return n.dial(ctx, s, network) }
	}
	s.options = o
	s.client = redis.NewClient(&o)
	s.client.AddHook(stamped{})
	return s
}

// greet speaks first on every new connection.
func (n *node) greet(ctx context.Context, s *session, c *redis.Conn) error {
	if n.locate != nil {
		if err := isMaster(ctx, c); err != nil {
			return err
		}
	}
	if n.options.Identify != nil {
		server, err := n.options.Identify(ctx, c)
		if err != nil {
			return err
		}
		if !s.is(server) {
			return errAnotherServer
		}
		return n.teach(ctx, server, c)
	}
	return n.teach(ctx, "", c)
}

// teach lets OnServer speak, once to each server: what it says may be long, and a rush needs many connections at once.
func (n *node) teach(ctx context.Context, server string, c *redis.Conn) error {
	if n.options.OnServer == nil {
		return nil
	}
	if last := n.taught.Load(); server != "" && last != nil && *last == server {
		return nil
	}
	if err := n.options.OnServer(ctx, c); err != nil {
		return err
	}
	n.taught.Store(&server)
	return nil
}

// isMaster refuses a server that has been demoted, of which a sentinel has not heard yet. Who may not ask believes the
// sentinels.
func isMaster(ctx context.Context, c *redis.Conn) error {
	all, err := c.Do(ctx, "role").Slice()
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		return nil
	case err != nil:
		return err
	case len(all) == 0 || all[0] != "master":
		return errNoMaster
	}
	return nil
}

// dial connects to where the server of s is.
func (n *node) dial(ctx context.Context, s *session, network string) (net.Conn, error) {
	address, err := n.find(ctx, s)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: n.options.ConnectTimeout}
	if n.options.TLS == nil {
		return d.DialContext(ctx, network, address)
	}
	return (&tls.Dialer{NetDialer: &d, Config: n.options.TLS}).DialContext(ctx, network, address)
}

// find asks once for each session where its server is; a session keeps to one server.
func (n *node) find(ctx context.Context, s *session) (string, error) {
	if at := s.address.Load(); at != nil {
		return *at, nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.options.ConnectTimeout+n.options.Timeout)
	defer cancel()
	select {
	case s.finding <- struct{}{}:
		defer func() { <-s.finding }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if at := s.address.Load(); at != nil {
		return *at, nil
	}
	at, err := n.locate(ctx)
	if err == nil {
		s.address.Store(&at)
	}
	return at, err
}

// ask asks on s, having learnt which server that is.
func (s *session) ask(ctx context.Context, q question, asking bool) error {
	client := s.client
	if asking {
		if client = s.forAsking(); client == nil {
			return redis.ErrClosed
		}
	}
	if s.identified && s.server.Load() == nil {
		if err := client.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	server := ""
	if named := s.server.Load(); named != nil {
		server = *named
	}
	return q.ask(ctx, client, server)
}

// forAsking is a client that may ask about slots that the server is about to get; nil once s is closed.
func (s *session) forAsking() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.asking == nil {
		o := s.options
		o.MinIdleConns = 0
		s.asking = redis.NewClient(&o)
		s.asking.AddHook(stamped{})
		s.asking.AddHook(askingFirst{s.asking})
	}
	return s.asking
}

func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	_ = s.client.Close()
	if s.asking != nil {
		_ = s.asking.Close()
	}
}

// where is the address of the server, "" before locate has told it.
func (s *session) where() string {
	if at := s.address.Load(); at != nil {
		return *at
	}
	return ""
}

// once opens one connection to an address for one question, without any greeting. Sentinels mostly have no users, also where
// the servers that they watch have: who does not know the user is asked by nobody in particular.
func (o Options) once(ctx context.Context, address string, ask func(context.Context, *redis.Client) error) error {
	err := o.onceAs(ctx, address, ask)
	if o.Username != "" && redis.HasErrorPrefix(err, "WRONGPASS") {
		anybody := o
		anybody.Username, anybody.Password = "", nil
		if anybody.onceAs(ctx, address, ask) == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	return nil
}

func (o Options) onceAs(ctx context.Context, address string, ask func(context.Context, *redis.Client) error) error {
	plain := o.client(address)
	plain.PoolSize, plain.MinIdleConns = 1, 0
	c := redis.NewClient(&plain)
	defer c.Close()
	return ask(ctx, c)
}
