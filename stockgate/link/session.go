package link

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ErrMixedUp is the cause when a reply belonged to another question: whoever finds that returns it from what Ask
// was given, and every connection is closed, since no later reply on them could be believed either.
var ErrMixedUp = errors.New("the reply is another question's")

// errAnotherServer closes a connection that reached another server than the others of its session. Nothing was
// sent on it.
var errAnotherServer = errors.New("redis is another server than before")

// session is one client, all of whose connections have reached the same server.
type session struct {
	client *redis.Client
	server atomic.Pointer[string] // what Options.Identify said; nil = no connection was opened yet
}

// is reports whether server is the session's; the first one that is named is.
func (s *session) is(server string) bool {
	return s.server.CompareAndSwap(nil, &server) || *s.server.Load() == server
}

// connect opens a session. No connection is opened before it is needed.
func (l *Link) connect() *session {
	s, o := &session{}, l.options
	if first := o.OnConnect; l.identify != nil {
		o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
			server, err := l.identify(ctx, c)
			if err != nil {
				return err
			}
			if !s.is(server) {
				return errAnotherServer
			}
			if first == nil {
				return nil
			}
			return first(ctx, c)
		}
	}
	s.client = redis.NewClient(&o)
	return s
}

// ask asks on s, having learnt which server that is.
func (s *session) ask(ctx context.Context, ask func(context.Context, *redis.Client, string) error, identify bool) error {
	if !identify {
		return ask(ctx, s.client, "")
	}
	if s.server.Load() == nil {
		if err := s.client.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	return ask(ctx, s.client, *s.server.Load())
}

// replace closes old and opens another session, unless somebody has done it already. The breaker's single try after
// a pause needs that too: once as many dials have failed as the pool is large, go-redis dials only once a second and
// answers with the last error meanwhile.
func (l *Link) replace(old *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.session.Load() != old {
		return
	}
	l.session.Store(l.connect())
	_ = old.client.Close()
}
