package server

import (
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
)

// Handler answers the requests of a Server. Its methods are called concurrently for different connections, and one at
// a time for each connection.
type Handler interface {
	// OpenConn is asked once for each connection, before anything is read from it, and must not block. When ok is false
	// the server writes answer, a whole HTTP response or nil, and closes the connection; over TLS it closes without
	// an answer. When full, MaxConns or the process' limit of descriptors is reached, and ok must be false.
	OpenConn(c *Conn, full bool) (answer []byte, ok bool)

	// Handle answers one request in ctx.Response; Of tells its connection, which has the request's head. ctx.Request
	// means nothing until Conn.Parse, or until Handle has made it out of that head. Handle may run in an event loop, and
	// must call Conn.StepAside before anything that can block. Nothing of ctx may be kept, but for the response's body
	// stream, which the server reads and closes. The server frames the answer: the fields of framing and of the
	// connection in it are not sent, and Conn.CloseAfterResponse ends the connection.
	Handle(ctx *fasthttp.RequestCtx)

	// ProtocolError answers a request that is not valid HTTP/1.1. The connection ends with the answer.
	ProtocolError(ctx *fasthttp.RequestCtx, e ProtocolError)

	// CloseConn is called once for each connection that Open admitted, when it has ended.
	CloseConn(c *Conn)
}

// Options of a Server. Times of 0 mean no limit.
type Options struct {
	ReadHeaderTimeout time.Duration // a head, a TLS handshake, a PROXY header; also the wait for the first request
	ReadTimeout       time.Duration // a body, from the first read that waits for it; or each read: LimitEachRead
	WriteTimeout      time.Duration // one write to a client that does not read
	IdleTimeout       time.Duration // the wait for a next request

	// MaxConns bounds the descriptors that clients hold: connections, those included that wait for a PROXY header or
	// are rejected and still read the answer. 0 = no bound.
	MaxConns int

	TLS           *tls.Config                // nil = plain HTTP
	ProxyProtocol func(peer netip.Addr) bool // whether connections from peer begin with a PROXY header; nil = none do
	Logger        *slog.Logger               // nil = slog.Default()
}

// Server accepts connections and hands their requests to a Handler until Drain. It is safe for concurrent use.
type Server struct {
	handler Handler
	options atomic.Pointer[Options]
	parser  atomic.Pointer[parser]

	exchanges sync.Pool // of *exchange
	pieces    sync.Pool // of *piece, for streamed bodies
	date      dates

	mu        sync.Mutex
	open      map[*Conn]struct{}
	listeners []net.Listener
	loops     eventLoops    // nil = none are open
	stopped   bool          // no listener is accepted any more
	emptied   chan struct{} // closed when draining and no connection is open
	accepting sync.WaitGroup

	announced atomic.Bool // answers say Connection: close
	closing   atomic.Bool // idle connections are ended
	lingering atomic.Int32
	awaiting  atomic.Int32 // connections whose PROXY header is awaited

	missingHeaders atomic.Uint64
	protocolErrors [numRules]atomic.Uint64
}

// NewServer makes a Server that has no listener yet. It panics on limits under their minimum.
func NewServer(h Handler, l Limits, o Options) *Server {
	s := &Server{handler: h, open: map[*Conn]struct{}{}, emptied: make(chan struct{})}
	s.pieces.New = func() any { return new(piece) }
	s.Use(l, o)
	return s
}

// Use has the heads that begin to arrive from now on go by l, and all connections by o. Whether there are TLS and PROXY
// headers must stay as it was: Serve has opened its listeners for that.
func (s *Server) Use(l Limits, o Options) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s.options.Store(&o)
	s.parser.Store(newParser(l))
}

// Stats are counters since the server was made, and the connections that are open now.
type Stats struct {
	ProtocolErrors      [numRules]uint64 // by Rule
	MissingProxyHeaders uint64           // connections that had to begin with a PROXY header and did not
	Connections         int              // those that wait for a PROXY header included
}

// Stats reads all counters.
func (s *Server) Stats() (t Stats) {
	for rule := range t.ProtocolErrors {
		t.ProtocolErrors[rule] = s.protocolErrors[rule].Load()
	}
	t.MissingProxyHeaders = s.missingHeaders.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Connections = len(s.open)
	return t
}

// Serve accepts connections from ln until Drain, which makes it return nil; it returns at once after a Drain. Any
// other error is that of a listener that was closed. Serve closes ln.
func (s *Server) Serve(ln net.Listener) error {
	ln = s.throughLoops(ln)
	defer ln.Close()
	if !s.addListener(ln) {
		return nil
	}
	defer s.accepting.Done()
	spare := newSpare(s.options.Load().Logger)
	defer spare.release()
	for {
		nc, short, err := spare.accept(ln)
		switch {
		case short:
			spare.reject(s, nc)
		case err == nil:
			s.accept(nc)
		case errors.Is(err, os.ErrDeadlineExceeded): // set by stopListening
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of descriptors, or a connection that was reset before it was accepted
			spare.warn(err)
			time.Sleep(acceptPause)
		}
	}
}

// addListener registers a listener that Drain stops and waits for; false when Drain came first.
func (s *Server) addListener(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.listeners = append(s.listeners, ln)
	s.accepting.Add(1)
	return true
}

// accept admits a connection, once its peer is known.
func (s *Server) accept(nc net.Conn) {
	peer := peerAddr(nc)
	if named := s.options.Load().ProxyProtocol; named != nil && named(peer) && !s.full() {
		s.acceptProxied(nc, peer)
		return
	}
	s.admit(nc, peer, false)
}

// admit asks the handler, and gives the connection to an engine. unnamed: see Conn.Unnamed.
func (s *Server) admit(nc net.Conn, peer netip.Addr, unnamed bool) {
	c := newConn(s, nc, peer)
	c.unnamed = unnamed
	s.mu.Lock()
	loops := s.loops
	s.mu.Unlock()
	if loops != nil {
		c.event = loops.attach(nc, c)
	}
	if answer, ok := s.handler.OpenConn(c, s.full()); !ok {
		s.reject(nc, answer)
		return
	}
	if raw := rawConn(nc); raw != nil {
		_ = raw.Control(limitUnsent)
	}
	if secure := s.options.Load().TLS; secure != nil {
		c.Conn = tls.Server(nc, secure)
	}
	s.track(c)
	if c.event == nil {
		go s.serveConn(c)
	} else if !s.waitInLoop(c) {
		go s.serveReady(c)
	}
}

// peerAddr is the address at the other end of a connection; the zero Addr for a unix socket.
func peerAddr(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		ip, _ := netip.AddrFromSlice(a.IP)
		return ip.Unmap()
	}
	return netip.Addr{}
}

// maxLingering bounds the rejected connections that are kept until the client has read the answer. They have an eighth
// of the descriptors at most.
const maxLingering = 256

// reject writes a whole answer to a connection that was not admitted. Behind TLS it could not be read before a
// handshake, which is the cost that a flood aims at: such a connection is closed without one.
func (s *Server) reject(nc net.Conn, answer []byte) {
	most, o := int32(maxLingering), s.options.Load()
	if o.MaxConns > 0 {
		most = min(most, int32(o.MaxConns/8))
	}
	if o.TLS != nil {
		answer = nil
	}
	if len(answer) == 0 || s.lingering.Load() >= most || s.full() {
		closeWith(nc, answer)
		return
	}
	s.lingering.Add(1)
	go func() {
		defer s.lingering.Add(-1)
		defer nc.Close()
		if writeRejection(nc, answer) == nil {
			linger(nc, lingerTimeout, lingerSize)
		}
	}()
}

// closeWith does not wait until the client has read the answer.
func closeWith(nc net.Conn, answer []byte) {
	if len(answer) > 0 {
		_ = writeRejection(nc, answer)
	}
	_ = nc.Close()
}

func writeRejection(nc net.Conn, answer []byte) error {
	_ = nc.SetWriteDeadline(time.Now().Add(lingerTimeout))
	_, err := nc.Write(answer)
	return err
}
