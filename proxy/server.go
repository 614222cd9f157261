package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/http1"
	"sluice/proxy/http1/eventloop"
)

// Connections limits the open client connections: all together, and of one client.
type Connections interface {
	// Open counts one: Admitted, ConnOpen or IPConns. perClient is false for trusted proxies, whose connections
	// carry many shoppers each.
	Open(client netip.Addr, perClient bool) Reason
	// Close ends what Open admitted.
	Close(client netip.Addr, perClient bool)
}

// ServerOptions say how clients are listened to. Times of 0 mean no limit.
type ServerOptions struct {
	ReadHeaderTimeout time.Duration
	ReadTimeout       time.Duration // the whole request
	WriteTimeout      time.Duration // one write to a client that does not read
	IdleTimeout       time.Duration
	MaxHeader         int // bytes

	Connections   Connections
	TLS           *tls.Config // nil = plain HTTP
	ProxyProtocol bool        // connections from trusted proxies begin with a PROXY header
	Log           *slog.Logger
}

// Server takes connections from listeners and their requests to a Proxy, until it is told to drain.
type Server struct {
	ServerOptions
	proxy atomic.Pointer[Proxy]

	exchanges sync.Pool
	silent    *fasthttp.ResponseHeader // as each answer's begins

	mu        sync.Mutex
	open      map[*Conn]struct{}
	listeners []net.Listener
	stopped   bool          // no listener is begun any more
	emptied   chan struct{} // closed when draining and the last connection has gone

	guard     atomic.Pointer[http1.Guard]
	draining  atomic.Bool // answers say Connection: close
	closing   atomic.Bool // idle connections are ended
	lingering atomic.Int32
	proving   atomic.Int32              // connections whose PROXY header is awaited
	unproven  atomic.Uint64             // connections from trusted proxies that had none
	refused   [numReasons]atomic.Uint64 // connections
	observed  [numReasons]atomic.Uint64 // connections that observe let in
	malformed [http1.NumKinds]atomic.Uint64
	accepting sync.WaitGroup
	loops     *eventloop.Loops // nil = every connection waits in a goroutine of its own
	crew      crew
	rooms     sync.Pool // for what ends a parking
}

// NewServer makes a Server that has no listener yet.
func NewServer(p *Proxy, o ServerOptions) *Server {
	s := &Server{ServerOptions: o, open: map[*Conn]struct{}{}, emptied: make(chan struct{})}
	s.Replace(p)
	s.exchanges.New = func() any { return newExchange() }
	s.silent = silentHead()
	s.crew.work = s.work
	s.rooms.New = func() any { b := make([]byte, roomSize); return &b }
	return s
}

// Replace has p handle all requests from now on; those under way are finished by the one before. Connections stay, with
// what is known of them: their rate, and whether they count as one client. Whether they are trusted is judged anew.
func (s *Server) Replace(p *Proxy) {
	s.guard.Store(http1.NewGuard(http1.Limits{Header: s.MaxHeader, Target: maxTarget, Protected: p.protected()}))
	s.proxy.Store(p)
}

// maxTarget is the longest request target in bytes; a longer one is answered 414.
const maxTarget = 8 << 10

// quietLogger swallows what the HTTP library says of each broken connection: it is counted, not logged.
type quietLogger struct{}

func (quietLogger) Printf(string, ...any) {}

func (s *Server) handle(x *exchange) {
	p := s.proxy.Load()
	x.conn.begin()
	if p.handle(x); x.conn.away == nil {
		s.handled(x, p)
	}
}

// handled says of an answer that it is the last on its connection, where it is.
func (s *Server) handled(x *exchange, p *Proxy) {
	if (s.draining.Load() || p.exhausted(x.conn)) && x.resp.StatusCode() != fasthttp.StatusSwitchingProtocols {
		x.reply.last = true
	}
}

// Serve takes connections from ln until Drain has it closed; none when Drain came first.
func (s *Server) Serve(ln net.Listener) error {
	ln = s.looped(ln)
	defer ln.Close()
	if !s.listen(ln) {
		return nil
	}
	defer s.accepting.Done()
	pause := time.Duration(0)
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.take(c)
		case errors.Is(err, os.ErrDeadlineExceeded): // set by stopListening
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of file descriptors, a connection that was reset before it was taken: go on
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.Log.Warn("accepting a connection", "err", err, "pause", pause)
			time.Sleep(pause)
		}
	}
}

// listen notes a listener that Drain has to close and to wait for; false when it is too late for one.
func (s *Server) listen(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.listeners = append(s.listeners, ln)
	s.accepting.Add(1)
	return true
}

// take lets a connection in, once it is known whose it is.
func (s *Server) take(nc net.Conn) {
	if s.ProxyProtocol && s.proxy.Load().trusts(peerAddr(nc)) {
		s.takeProxied(nc)
		return
	}
	s.admit(nc, peerAddr(nc))
}

// admit gives a connection a goroutine of its own, or refuses it before any HTTP is read.
func (s *Server) admit(nc net.Conn, peer netip.Addr) {
	c := &Conn{Conn: nc, peer: peer, shard: s.proxy.Load().counts.shard(), server: s}
	if c.looped, _ = nc.(*eventloop.Socket); c.looped != nil {
		c.looped.Owner = c
	}
	s.proxy.Load().judge(c)
	c.shared = c.trusted || s.proxy.Load().bypass.has(c.peer)
	reason := s.Connections.Open(c.peer, !c.shared)
	switch {
	case reason == Admitted:
	case s.proxy.Load().observes(reason):
		s.observed[reason].Add(1)
	default:
		s.proxy.Load().noteTurnedAway(c, reason, s.refused[reason].Add(1))
		s.turnAway(nc, reason)
		return
	}
	if s.TLS != nil {
		c.Conn = tls.Server(nc, s.TLS)
	}
	c.counted = reason == Admitted
	c.reader = s.guard.Load().NewReader(socket{c})
	if pace := s.proxy.Load().pace; pace != nil && !c.shared {
		c.pace = pace()
	}
	s.hold(c)
	if c.looped != nil {
		c.rest()
		return
	}
	c.wake = c.wakened()
	go s.welcome(c)
}

func (s *Server) hold(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

// broken answers a request that cannot be understood, or did not arrive, and ends its connection.
func (s *Server) broken(x *exchange, why http1.Violation) {
	x.conn.unread = true
	s.malformed[why.Kind].Add(1)
	s.proxy.Load().refuseBroken(x, why.Status)
	x.reply.last = true
}

// forget is called once for each connection that was held and has ended.
func (s *Server) forget(c *Conn) {
	if c.counted {
		s.Connections.Close(c.peer, !c.shared)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.closing.Load() && len(s.open) == 0 {
		s.signalEmpty()
	}
}

func (s *Server) signalEmpty() {
	select {
	case <-s.emptied:
	default:
		close(s.emptied)
	}
}

// maxLingering bounds the refused connections that are waited for until they have read their refusal.
const maxLingering = 256

// turnAway writes a whole refusal to a connection that was never let in. Behind TLS it could not be read before a
// handshake, which is what a flood would want us to spend: such a connection is just closed.
func (s *Server) turnAway(c net.Conn, reason Reason) {
	if s.TLS != nil {
		_ = c.Close()
		return
	}
	if s.lingering.Add(1) > maxLingering {
		s.lingering.Add(-1)
		_ = c.SetWriteDeadline(time.Now().Add(lingerTime))
		_, _ = c.Write(s.proxy.Load().answers.raw[reason])
		_ = c.Close()
		return
	}
	go func() {
		defer s.lingering.Add(-1)
		defer c.Close()
		if c.SetWriteDeadline(time.Now().Add(lingerTime)) == nil {
			if _, err := c.Write(s.proxy.Load().answers.raw[reason]); err == nil {
				linger(c)
			}
		}
	}()
}

// Announce makes every answer from now on the last on its connection, so that clients move elsewhere.
func (s *Server) Announce() { s.draining.Store(true) }

// backlog is how long connections that the kernel has already taken are still served once draining began; grace is how
// long a connection that waits for its next request may still send one.
const (
	backlog = 100 * time.Millisecond
	grace   = 250 * time.Millisecond
)

// Drain stops listening and waits until what is under way has its answer, or until ctx ends; then it closes
// what is left, and reports how many connections that were.
func (s *Server) Drain(ctx context.Context) (cut int) {
	defer s.endLoops()
	defer s.crew.dismiss()
	s.Announce()
	s.stopListening()
	s.accepting.Wait()
	s.mu.Lock()
	s.closing.Store(true)
	for c := range s.open {
		c.hurry()
	}
	if len(s.open) == 0 {
		s.signalEmpty()
	}
	s.mu.Unlock()
	select {
	case <-s.emptied:
		return 0
	case <-ctx.Done():
	}
	s.mu.Lock()
	left := make([]*Conn, 0, len(s.open))
	for c := range s.open {
		left = append(left, c)
	}
	s.mu.Unlock()
	for _, c := range left {
		c.abandon()
	}
	return len(left)
}

// stopListening takes what waits in the kernel's queue before it closes: a closed listener resets them.
func (s *Server) stopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, ln := range s.listeners {
		if d, ok := ln.(interface{ SetDeadline(time.Time) error }); ok {
			_ = d.SetDeadline(time.Now().Add(backlog))
		}
	}
}
