package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// silenceLimit is how long a server may answer no call before its breaker opens, however few calls there are.
const silenceLimit = time.Second

// server is one Redis server, or the master that sentinels name: its connections and its circuit breaker. It is the
// topology of a Redis that is one server.
type server struct {
	options    Options
	address    string // "" = locate tells
	locate     func(context.Context) (string, error)
	breaker    *breaker
	session    atomic.Pointer[session]
	probeFirst atomic.Bool            // the breaker is half-open: probe, and open new connections
	silent     atomic.Int64           // Unix ns since when no call was answered; 0 = the last one was
	reached    atomic.Pointer[string] // the server to which the last connection led; nil = none
	taught     atomic.Pointer[string] // the server to which OnServer spoke last; nil = none
	slotless   time.Time              // since when a cluster's server is no master; the cluster's lock guards it
	mu         sync.Mutex             // guards the change of session, and closed
	closed     bool
}

// session is connections that all lead to one server. When another server is found, it gets another session.
type session struct {
	client     client
	identified bool                   // Options.Identify is there
	identity   atomic.Pointer[string] // what it said; nil = no connection was opened yet
	address    atomic.Pointer[string] // where locate said that the server is; nil = no connection was opened yet
}

// breaker is a circuit breaker that names the last error that it has counted.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	last atomic.Pointer[string]
}

// Allow returns what a call is to be reported to, or ErrBreakerOpen. The last error is only part of its text: it is not
// what became of this call.
func (b *breaker) Allow() (func(error), error) {
	report, err := b.TwoStepCircuitBreaker.Allow()
	if last := b.last.Load(); err != nil && last != nil {
		return nil, fmt.Errorf("%w: %w: %s", ErrBreakerOpen, err, *last)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBreakerOpen, err)
	}
	return func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			text := err.Error()
			b.last.Store(&text)
		}
		report(err)
	}, nil
}

// newBreaker makes a breaker, of s where that is not nil.
func (o Options) newBreaker(s *server) *breaker {
	return &breaker{TwoStepCircuitBreaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     time.Second,
		BucketPeriod: 100 * time.Millisecond,
		Timeout:      o.BreakerPause,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return int64(c.TotalFailures) >= int64(o.BreakerErrors) ||
				o.BreakerErrors != Unbroken && s != nil && s.silentFor() >= silenceLimit
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if s != nil {
				s.probeFirst.Store(to == gobreaker.StateHalfOpen)
			}
		},
	})}
}

// newServer makes the server at an address, or the one that locate finds.
func newServer(o Options, address string, locate func(context.Context) (string, error)) *server {
	s := &server{options: o, address: address, locate: locate}
	s.breaker = o.newBreaker(s)
	s.session.Store(s.connect(o.PoolSize - 1))
	return s
}

// silentFor is how long the server has answered no call.
func (s *server) silentFor() time.Duration {
	since := s.silent.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(time.Now().UnixNano() - since)
}

// healthy reports whether the last call was answered and the breaker lets calls through.
func (s *server) healthy() bool {
	return s.silent.Load() == 0 && s.breaker.State() != gobreaker.StateOpen
}

func (s *server) servers(context.Context) ([]*server, error) { return []*server{s}, nil }

func (*server) name() string { return Single }

// call makes a call to this server when its breaker lets it, wherever the route leads.
func (s *server) call(ctx context.Context, _ Route, c call) error {
	report, err := s.breaker.Allow()
	if err != nil {
		return err
	}
	if s.probeFirst.CompareAndSwap(true, false) {
		if err := s.probe(ctx); err != nil {
			report(err)
			return fmt.Errorf("%w: %w", ErrBreakerOpen, err)
		}
		s.replace(s.session.Load())
	}
	on := s.session.Load()
	err = on.call(ctx, c)
	if s.isAnother(err) || errors.Is(err, redis.ErrClosed) && on != s.session.Load() {
		s.replace(on)
		on = s.session.Load()
		err = on.call(ctx, c)
	}
	lost := c.counted(err)
	if Redirected(err) || redis.HasErrorPrefix(err, "CLUSTERDOWN") { // it answers, about a slot that others may have
		lost = nil
	}
	if errors.Is(err, ErrReplyMismatch) {
		s.replace(on)
	}
	switch since := s.silent.Load(); {
	case lost == nil && since != 0:
		s.silent.Store(0)
	case lost != nil && since == 0:
		s.silent.CompareAndSwap(0, time.Now().UnixNano())
	}
	report(lost)
	return err
}

// call calls on a session, when it is known which server that reaches.
func (on *session) call(ctx context.Context, c call) error {
	identity := on.identity.Load()
	if identity == nil && on.identified {
		err := on.client.Ping(ctx).Err()
		if identity = on.identity.Load(); identity == nil {
			return fmt.Errorf("%w: %w", ErrUnsent, err)
		}
	}
	if identity == nil {
		identity = new(string)
	}
	return c.do(ctx, on.client, *identity)
}

// isAnother reports whether err says that nothing was done, since another server is to be asked in place of this one.
func (s *server) isAnother(err error) bool {
	demoted := errors.Is(err, errNoMaster) || redis.IsReadOnlyError(err)
	return errors.Is(err, errAnotherServer) || s.locate != nil && demoted
}

// probe finds out over one connection whether the server answers again: a session opens all of its connections ahead,
// and a server that hangs must not get that many with each try.
func (s *server) probe(ctx context.Context) error {
	on := s.connect(0)
	defer on.client.Close()
	err := on.client.Ping(ctx).Err()
	var reply redis.Error
	if errors.As(err, &reply) || s.isAnother(err) { // it is there, and says itself what it thinks of the call
		return nil
	}
	return err
}

// replace opens another session in place of old, unless another goroutine has done so. After a pause of the breaker
// that is needed too: once as many dials have failed as the pool is large, go-redis dials only once a second.
func (s *server) replace(old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.session.Load() != old {
		return
	}
	s.session.Store(s.connect(s.options.PoolSize - 1))
	_ = old.client.Close()
}

// close closes all connections. Later calls fail.
func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = s.session.Load().client.Close()
	}
}

// connect makes a session that opens so many connections ahead of a rush; one turn stays free for a call meanwhile.
func (s *server) connect(ahead int) *session {
	on, o := &session{identified: s.options.Identify != nil}, goRedisOptions(s.options, s.address)
	if s.options.Dialer == nil { // a server in this process costs no handshake, and calls need not wait for their turns
		o.MinIdleConns = ahead
	}
	o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return s.greet(ctx, on, c) }
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(&o)
	}
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s.locate != nil {
			var err error
			if address, err = s.locate(ctx); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
			}
			if !on.address.CompareAndSwap(nil, &address) && *on.address.Load() != address {
				return nil, errAnotherServer
			}
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err // with TLS conn is no nil then
		}
		return boundTo(ctx, conn), nil
	}
	client := redis.NewClient(&o)
	client.AddHook(hooks{client})
	on.client = client
	return on
}

// greet begins every new connection: it must lead to the server of its session.
func (s *server) greet(ctx context.Context, on *session, c Commands) (err error) {
	if opened := s.options.opened; opened != nil { // nil in tests of a server alone
		opened.Add(1)
	}
	if s.locate != nil {
		if err := isMaster(ctx, c); err != nil {
			return err
		}
	}
	identity := ""
	if s.options.Identify != nil {
		if identity, err = s.options.Identify(ctx, c); err != nil {
			return err
		}
	}
	if !on.identity.CompareAndSwap(nil, &identity) && *on.identity.Load() != identity {
		return errAnotherServer
	}
	if before := s.reached.Swap(&identity); before != nil && *before != identity && s.options.Moved != nil {
		s.options.Moved()
	}
	last := s.taught.Load()
	if s.options.OnServer == nil || identity != "" && last != nil && *last == identity {
		return nil
	}
	if err = s.options.OnServer(ctx, c); err == nil {
		s.taught.Store(&identity)
	}
	return err
}

// isMaster rejects a server that has been demoted, of which the sentinels have not heard yet. A user who may not ask
// for the role believes the sentinels.
func isMaster(ctx context.Context, c Commands) error {
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
