// Package proxy takes one request at a time to its answer: it finds the route, runs the route's checks, and forwards
// the request to the upstream or rejects it for one reason out of one list. It promises that a rejected request never
// reaches the upstream, but for those reasons that say that it was sent; that an order is handed to the upstream at most
// once; and that every rejection is a complete HTTP response.
// It keeps no stock, no limit and no connection to the upstream: Stock, Orders, the limiters and Upstream do.
//
// Handle is the way of a request. The table of checks is in checks.go; see check for what a new limit needs.
package proxy

import (
	"cmp"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"sluice/limiter"
	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
)

// Options are the parts and settings of a Proxy. Limiters are declared in checks.go. Stock and Orders may be nil when
// no route needs them.
type Options struct {
	Routes          []Route
	Observe         bool // count rejections, and forward the request unless its connection has to be closed
	Trusted         TrustedProxies
	ClientHeader    string // in which a trusted proxy names its client; "" = X-Forwarded-For
	RequestIDHeader string // "" = none
	MaxWaiting      int64  // bytes; of the whole request of an order that waits until it is delivered
	MaxBody         int64  // bytes; of routes that read the body. At most half of BodyMemory
	BodyMemory      int64  // bytes that request bodies hold at most, all together; 0 = 64 MiB
	PassHost        bool   // the upstream sees the client's Host rather than its own authority
	Responses       reject.Options
	MaxQuantity     int64        // units that one order may ask for; 0 = no bound
	Outcomes        OutcomeRules // by which responses the upstream tells what became of an order
	SigningKey      []byte       // signs what the upstream is told; nil = it is not signed
	Auth            auth.VerifierOptions
	SoldOutOn       *SoldOutAnswer // nil = only the header Sluice-Order says so
	StockStatus     StockStatusOptions
	CacheWait       time.Duration // for another request's fetch of the same page, at most
	SettleWithin    time.Duration // of what another proxy forwards; then slots are free, and the resolver asks
	MaxRequests     int           // on one connection, which is closed with the last; 0 = no cap

	Limiters
	Bypass      []netip.Prefix  // clients that no limit applies to; the stock still does
	Deny        []netip.Prefix  // clients that are rejected at once, on all routes
	ObserveOnly []reject.Reason // rejections of these limits are counted, and the next check goes on

	Upstream     Upstream
	Stock        Stock
	Orders       Orders
	Queue        Queue           // nil = no order waits until it is delivered
	Schedule     Schedule        // nil = every SKU is always on sale
	Feedback     SoldOutFeedback // nil = the upstream's responses teach nothing
	Availability Availability    // nil = no public stock status
	Cache        Cache           // nil = no page is kept
	Rooms        map[string]Room // waiting rooms by name
	Now          func() int64    // monotonic ns; nil = of this process
	Log          *slog.Logger

	AccessLog metrics.AccessLogger     // nil = none
	Tracer    metrics.Tracer           // nil = no request is traced
	Bounds    map[reject.Reason]string // how large each limit is, for the access log and explain
	Unit      string                   // how many requests the stock admits for each unit, likewise
	Version   string                   // of the configuration, likewise

	Before *Proxy // the one that this one replaces, whose counters go on; nil = none. New does not keep it
}

// Proxy handles requests. It is safe for concurrent use. It has more fields and methods than one type should: it is
// the sum of what one configuration compiles to, and never changes after New.
type Proxy struct {
	Options
	table          *route.Table
	routes         []boundRoute
	unmatched      boundRoute // stands for requests that no route takes
	rejecting      []check    // of requests that cannot be matched
	preflight      []check    // of CORS preflights
	internalChecks []check    // of questions to the proxy itself
	waitingRooms   map[string]*boundRoom
	owners         *param.Variable // how users of orders that wait are proven; nil = they are not
	responder      *reject.Responder
	script         *clientScript
	auth           *auth.Verifier
	pseudonym      []byte // of this instance, in Via
	bypass         *networkSet
	deny           *networkSet
	observeOnly    [reject.NumReasons]bool
	counters       *metrics.Counters
	proxies        *metrics.UntrustedProxyDetector
	signer         *auth.Signer // nil = what the upstream is told is not signed
	bodies         limiter.BodyMemory
	slow           *slowBodies // of all proxies of a server
	generation     uint32      // 1, and one more with each successor
	start          time.Time
	pool           sync.Pool
}

// New compiles routes and responses. Its errors are *route.Error or *LimitError where a route or a limit by key is at
// fault.
func New(o Options) (*Proxy, error) {
	p := &Proxy{Options: o, start: time.Now(), script: newClientScript(transientReasons()),
		bypass: newNetworkSet(o.Bypass), deny: newNetworkSet(o.Deny),
		unmatched: boundRoute{Route: Route{Name: noRouteName}}}
	if p.Now == nil {
		p.Now = func() int64 { return int64(time.Since(p.start)) }
	}
	if p.ClientHeader == "" {
		p.ClientHeader = "X-Forwarded-For"
	}
	for _, reason := range o.ObserveOnly {
		p.observeOnly[reason] = true
	}
	var errs []error
	if p.routes, p.table, errs = bindRoutes(o.Routes); len(errs) == 0 {
		errs = append(attachRates(o.Rates, p.routes), attachInFlight(o.InFlight, p.routes)...)
	}
	for i := range p.routes {
		rt := &p.routes[i]
		if rt.Concurrency == nil {
			rt.Concurrency = o.Concurrency
		}
		if rt.limited() {
			rt.priority = o.Priority
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p.findOwners()
	if err := p.bindRooms(); err != nil {
		return nil, err
	}
	responses, err := o.Responses, error(nil)
	responses.RequestIDHeader = o.RequestIDHeader
	if p.responder, err = reject.New(responses); err != nil {
		return nil, err
	}
	p.inherit(o.Before)
	if err := p.compileKeys(o.Before); err != nil {
		return nil, err
	}
	p.compileChecks()
	p.pool.New = func() any { return new(Request) }
	p.Before = nil // it would keep all former ones
	return p, nil
}

// compileKeys reads the keys that users, orders and signatures are checked and made with.
func (p *Proxy) compileKeys(before *Proxy) (err error) {
	if len(p.SigningKey) > 0 {
		if p.signer, err = auth.NewSigner(p.SigningKey); err != nil {
			return err
		}
	}
	var verified *auth.Verifier
	if before != nil {
		verified = before.auth
	}
	p.auth, err = auth.NewVerifier(p.Auth, provenOn(p.routes), verified)
	return err
}

// inherit takes over the counters of the Proxy before, or begins new ones.
func (p *Proxy) inherit(before *Proxy) {
	if before != nil {
		p.counters, p.proxies, p.generation = before.counters, before.proxies, before.generation+1
		p.pseudonym, p.slow = before.pseudonym, before.slow
	} else {
		p.slow = &slowBodies{after: slowAfter}
		p.counters = metrics.NewCounters(4 * runtime.GOMAXPROCS(0))
		p.generation, p.pseudonym = 1, []byte(newPseudonym())
	}
	if before == nil || before.ClientHeader != p.ClientHeader {
		p.proxies = metrics.NewUntrustedProxyDetector(p.ClientHeader, p.Log)
	}
	p.bodies = limiter.NewBodyMemory(p.counters.BodyMemory(), cmp.Or(p.BodyMemory, defaultBodyMemory))
	p.unmatched.counters = p.counters.Route(noRouteName)
	for i := range p.routes {
		rt := &p.routes[i]
		rt.counters = p.counters.Route(rt.Name)
		for j := range rt.rates {
			rt.rates[j].Counters = p.counters.Rate(rt.rates[j].Name)
		}
		for j := range rt.inFlight {
			rt.inFlight[j].Counters = p.counters.Rate(rt.inFlight[j].Name)
		}
	}
}

// Counters are what this Proxy and those before it have counted.
func (p *Proxy) Counters() *metrics.Counters { return p.counters }

// limits are those of request heads that this Proxy wants: no hop may remove a header that a route looks at.
func (p *Proxy) limits(maxHeader int, lenientTarget bool) server.Limits {
	names := append(p.auth.Headers(), p.ClientHeader)
	for i := range p.routes {
		for _, v := range p.routes[i].variables() {
			names = append(names, v.Names(param.Header)...)
		}
	}
	return server.Limits{Header: maxHeader, Target: maxTarget, Protected: names, LenientTarget: lenientTarget}
}

// maxTarget is the longest request target in bytes; a longer one is answered 414.
const maxTarget = 8 << 10

// slowAfter is how long a body has to come before another one may end it.
const slowAfter = 500 * time.Millisecond

// noRouteName is the metric label of requests that no route takes. No route may have this name.
const noRouteName = "none"
