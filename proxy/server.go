package proxy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// Connections limits the open client connections: all together, and of one client.
type Connections interface {
	// Open counts one: Admitted, ConnOpen or IPConns. perClient is false for trusted proxies, whose connections carry
	// many clients each.
	Open(client netip.Addr, perClient bool) reject.Reason
	// Close ends what Open admitted.
	Close(client netip.Addr, perClient bool)
}

// ServerOptions say how clients are listened to. Times of 0 mean no limit.
type ServerOptions struct {
	ReadHeaderTimeout time.Duration
	ReadTimeout       time.Duration // the whole request
	WriteTimeout      time.Duration // one write to a client that does not read
	IdleTimeout       time.Duration
	MaxHeader         int  // bytes
	LenientTarget     bool // raw UTF-8 in a request target is percent-encoded

	Connections   Connections
	MaxConns      int         // descriptors that clients hold at most; 0 = no bound
	TLS           *tls.Config // nil = plain HTTP
	ProxyProtocol bool        // connections from trusted proxies begin with a PROXY header
	Decide        *Decide     // nil = requests are forwarded
	Log           *slog.Logger
}

// Server serves connections with a Proxy, which Replace exchanges for another. It is the server.Handler of its
// server.Server.
type Server struct {
	*server.Server
	connections Connections
	proxy       atomic.Pointer[Proxy]
	rejected    [reject.NumReasons]atomic.Uint64 // connections
	observed    [reject.NumReasons]atomic.Uint64 // connections that observe mode admitted
	decides     *Decide                          // nil = requests are forwarded
	open        *decisions                       // of all deciders of a server
	deciders    []*Server
}

// NewServer makes a Server that has no listener yet.
func NewServer(p *Proxy, o ServerOptions) *Server {
	s := &Server{connections: o.Connections, decides: o.Decide, open: newDecisions()}
	s.Server = server.NewServer(s, server.Limits{}, server.Options{})
	s.Replace(p, o)
	return s
}

// Replace has p handle all requests from now on, and connections go by o; requests under way are finished by the Proxy
// before. Connections stay, with what is known of them: their request rate, and whether they count as one client.
// Whether they are trusted is decided anew. Connections and Decide of o, and whether there are TLS and PROXY headers,
// must stay.
func (s *Server) Replace(p *Proxy, o ServerOptions) {
	if s.decides != nil { // proxies ask from this machine or near, by plain HTTP
		o.TLS, o.ProxyProtocol = nil, false
	}
	h := server.Options{ReadHeaderTimeout: o.ReadHeaderTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		IdleTimeout: o.IdleTimeout, MaxConns: o.MaxConns, TLS: o.TLS, Logger: o.Log}
	if o.ProxyProtocol {
		h.ProxyProtocol = func(peer netip.Addr) bool { return s.proxy.Load().Trusted.Has(peer) }
	}
	s.Use(p.limits(o.MaxHeader, o.LenientTarget), h)
	s.proxy.Store(p)
	for _, d := range s.deciders {
		d.Replace(p, o)
	}
}

// Decider makes a Server that answers questions, on which it listens itself: o.Decide says whose. s replaces its Proxy
// and options, and drains it. It must be made before s serves.
func (s *Server) Decider(o ServerOptions) *Server {
	d := NewServer(s.proxy.Load(), o)
	d.open = s.open
	s.deciders = append(s.deciders, d)
	return d
}

// AnnounceShutdown makes every answer from now on the last of its connection.
func (s *Server) AnnounceShutdown() {
	s.Server.AnnounceShutdown()
	for _, d := range s.deciders {
		d.AnnounceShutdown()
	}
}

// Drain stops listening and waits until the requests under way have their answers, or until ctx ends; then it closes
// the connections that are left, and returns how many they were. What other proxies still forward is of unknown
// outcome then.
func (s *Server) Drain(ctx context.Context) (cut int) {
	var all sync.WaitGroup
	var cutOff atomic.Int64
	for _, d := range s.deciders {
		all.Go(func() { cutOff.Add(int64(d.Drain(ctx))) })
	}
	cut = s.Server.Drain(ctx)
	all.Wait()
	if s.decides == nil {
		s.open.close()
	}
	return cut + int(cutOff.Load())
}

// Handle implements server.Handler.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) {
	if c, ok := server.Of(ctx); ok {
		if s.decides != nil {
			s.decide(ctx, c)
			return
		}
		s.proxy.Load().serve(ctx, c)
		return
	}
	s.handleForeign(ctx)
}

// ProtocolError implements server.Handler.
func (s *Server) ProtocolError(ctx *fasthttp.RequestCtx, e server.ProtocolError) {
	if c, ok := server.Of(ctx); ok {
		s.proxy.Load().protocolError(ctx, c, e)
		if s.decides != nil {
			d := dialects[s.decides.Dialect]
			d.markRejection(ctx, c)
		}
	}
}

// handleForeign answers a request that another fasthttp server has read. It waits in the goroutine of that server, and
// the limits of connections are that server's to keep.
func (s *Server) handleForeign(ctx *fasthttp.RequestCtx) {
	p := s.proxy.Load()
	c, err := s.Foreign(ctx)
	c.State = &connState{shard: p.counters.Shard()}
	if e, broken := err.(server.ProtocolError); broken {
		p.protocolError(ctx, c, e)
	} else {
		p.serve(ctx, c)
	}
	c.Prepared().AddTo(&ctx.Response.Header)
	if c.Closes() {
		ctx.SetConnectionClose()
	}
}

// OpenConn implements server.Handler: it counts the connection, or rejects it before any HTTP is read. Where there is
// no descriptor left it rejects in observe mode too: nothing could be forwarded.
func (s *Server) OpenConn(c *server.Conn, full bool) (answer []byte, ok bool) {
	p := s.proxy.Load()
	state := &connState{shard: p.counters.ShardOf(c.Loop()), decides: s.decides}
	p.resolveTrust(state, c)
	state.shared = state.trusted || p.bypass.Has(c.Peer())
	reason := reject.ConnOpen
	if !full {
		reason = s.connections.Open(c.Peer(), !state.shared)
	}
	switch {
	case reason == reject.Admitted:
		state.counted = true
	case !full && (p.Observe || p.observeOnly[reason]):
		s.observed[reason].Add(1)
	default:
		p.recordRejectedConn(c, reason, s.rejected[reason].Add(1))
		return p.responder.Raw(reason), false
	}
	if p.ConnRate != nil && !state.shared {
		state.rate = p.ConnRate()
	}
	c.State = state
	return nil, true
}

// CloseConn implements server.Handler.
func (s *Server) CloseConn(c *server.Conn) {
	if state := c.State.(*connState); state.counted {
		s.connections.Close(c.Peer(), !state.shared)
	}
}

var (
	connRejectedDesc = prometheus.NewDesc("sluice_rejected_connections_total",
		"Connections rejected before any HTTP was read, by reason.", []string{"reason"}, nil)
	connObservedDesc = prometheus.NewDesc("sluice_observed_connection_rejections_total",
		"Connections that were accepted in observe mode and would otherwise have been rejected, by reason.",
		[]string{"reason"}, nil)
	malformedDesc = prometheus.NewDesc("sluice_malformed_requests_total",
		"Requests that break a rule of HTTP/1.1, by rule.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	ch <- connRejectedDesc
	ch <- connObservedDesc
	ch <- malformedDesc
	ch <- openDecisionsDesc
	ch <- endedDecisionsDesc
}

// Collect implements prometheus.Collector. The reasons of connection limits are shown at 0 too, so that a rate can be
// computed from the first rejection on.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
	}
	for _, reason := range []reject.Reason{reject.ConnOpen, reject.IPConns} {
		rejected, observed := s.rejected[reason].Load(), s.observed[reason].Load()
		for _, d := range s.deciders {
			rejected, observed = rejected+d.rejected[reason].Load(), observed+d.observed[reason].Load()
		}
		count(connRejectedDesc, rejected, reason.String())
		count(connObservedDesc, observed, reason.String())
	}
	if len(s.deciders) > 0 {
		s.open.collect(ch)
	}
	stats := s.Stats()
	for _, d := range s.deciders {
		for rule, n := range d.Stats().ProtocolErrors {
			stats.ProtocolErrors[rule] += n
		}
	}
	count(connRejectedDesc, stats.MissingProxyHeaders, "no_proxy_header")
	for rule, n := range stats.ProtocolErrors {
		if n > 0 {
			count(malformedDesc, n, server.Rule(rule).String())
		}
	}
}

// Totals adds up all routes, those that a reload has dropped included, and the connections that were rejected.
func (s *Server) Totals() metrics.Totals {
	t := s.proxy.Load().counters.Totals()
	for reason := range t.Rejected {
		t.Rejected[reason] += s.rejected[reason].Load()
		for _, d := range s.deciders {
			t.Rejected[reason] += d.rejected[reason].Load()
		}
	}
	return t
}
