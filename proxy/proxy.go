// Package proxy takes one request at a time from the listener to an answer: match, identify, admit, forward,
// or refuse with one reason out of one list. It promises that a refused request never reaches the shop, that an
// order is handed to the shop at most once, and that every refusal is a whole, readable HTTP answer.
// It keeps no stock, no limit and no connection to the shop itself: those are asked through Stock, Windows,
// Places and Shop.
package proxy

import (
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Options are the parts and settings of a Proxy. Stock and Orders may be nil when no route needs them.
type Options struct {
	Routes          []Route
	Observe         bool // count refusals, and let everything through
	Trusted         []netip.Prefix
	ClientHeader    string // what a trusted proxy names its client in; X-Forwarded-For by default
	RequestIDHeader string // "" = none
	MaxBody         int64  // bytes; of gated routes
	PassHost        bool   // the shop sees the client's Host rather than its own authority
	Responses       Responses
	Pace            func() Pace // of a new connection; nil = connections have no rate of their own
	CloseOnExcess   bool        // a connection over its rate is closed as well
	Settling        Settling
	Proof           Proof
	SoldOutOn       *SoldOutOn // nil = only the shop's own word says so
	Show            Show
	PageWait        time.Duration // for somebody else's fetch of the same page, at most
	MaxRequests     int           // on one connection, which is closed with the last; 0 = no cap

	Rates  []KeyedRate
	Bypass []netip.Prefix // clients that are never limited; the stock still says no
	Deny   []netip.Prefix // clients that are refused at once, on all routes
	Spared []Reason       // refusals of these limits are counted, and the request goes on to the next limit

	Shop    Shop
	Stock   Stock
	Orders  Orders
	Sales   Sales   // nil = nothing is on a schedule
	Lessons Lessons // nil = the shop's answers teach nothing
	Shelf   Shelf   // nil = nobody is told what is left
	Windows Windows
	Places  Places
	Pages   Pages        // nil = no answer is kept
	Now     func() int64 // monotonic ns; nil = of this process
	Log     *slog.Logger

	Journal Journal           // nil = nobody is told what became of requests
	Tracer  Tracer            // nil = no request is traced
	Bounds  map[Reason]string // how large each limit is, for the journal
	Unit    string            // how many the stock lets into the shop for each unit, likewise
	Version string            // of the configuration, likewise

	Before *Proxy // the one that this one replaces, whose counts go on; nil = none
}

// Proxy handles requests. It is safe for concurrent use.
type Proxy struct {
	routes       []route
	outlines     outlines // of the routes
	noRoute      route    // stands for requests that no route takes
	gatedAny     bool
	formMethods  bool // a form could name the method of a gated route
	observe      bool
	trusted      []netip.Prefix
	clientHeader string
	idHeader     string
	maxBody      int64
	passHost     bool
	answers      responder
	script       *clientScript
	prover       *prover
	pace         func() Pace
	closeExcess  bool
	settling     Settling
	soldOutOn    *SoldOutOn
	show         Show
	signer       *signer // nil = what the shop is told is not signed
	maxRequests  int
	pageWait     time.Duration
	bypass, deny *addressList
	spared       [numReasons]bool
	counts       *counts
	strangers    *strangers
	dates        dates
	generation   uint32 // 1, and one more with each successor

	shop     Shop
	launcher Launcher // shop; nil = it has to be waited for
	stock    Stock
	orders   Orders
	sales    Sales
	lessons  Lessons
	shelf    Shelf
	windows  Windows
	places   Places
	pages    Pages // nil = nothing is kept
	start    time.Time
	clock    func() int64
	log      *slog.Logger
	journal  Journal // nil = none
	tracer   Tracer  // nil = none
	bounds   [numReasons]string
	unit     string
	version  string
	pool     sync.Pool
}

// New compiles routes and answers. Its errors are *RouteError where a route is at fault.
func New(o Options) (*Proxy, error) {
	routes, errs := compileRoutes(o.Routes)
	if errs = append(errs, attachRates(o.Rates, routes)...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	answers, err := newResponder(o.Responses)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		routes: routes, outlines: outlinesOf(routes), noRoute: route{Route: Route{Name: noRouteName}},
		observe: o.Observe, trusted: o.Trusted, clientHeader: o.ClientHeader, idHeader: o.RequestIDHeader,
		maxBody: o.MaxBody, passHost: o.PassHost, answers: answers, script: newClientScript(), pace: o.Pace, closeExcess: o.CloseOnExcess,
		maxRequests: o.MaxRequests, bypass: newAddressList(o.Bypass), deny: newAddressList(o.Deny),
		sales: o.Sales, lessons: o.Lessons, shelf: o.Shelf, soldOutOn: o.SoldOutOn, show: o.Show,
		settling: o.Settling, shop: o.Shop, stock: o.Stock, orders: o.Orders, windows: o.Windows, places: o.Places, pages: o.Pages, pageWait: o.PageWait,
		start: time.Now(), clock: o.Now, log: o.Log, journal: o.Journal, tracer: o.Tracer, unit: o.Unit, version: o.Version,
	}
	if p.clock == nil {
		p.clock = func() int64 { return int64(time.Since(p.start)) }
	}
	if p.clientHeader == "" {
		p.clientHeader = "X-Forwarded-For"
	}
	for i := range routes {
		p.gatedAny = p.gatedAny || routes[i].gated()
		p.formMethods = p.formMethods || routes[i].gated() && routes[i].pattern.method != "" && routes[i].pattern.method != "POST"
	}
	if o.Before != nil {
		p.counts, p.strangers, p.generation = o.Before.counts, o.Before.strangers, o.Before.generation+1
	} else {
		p.counts, p.strangers = newCounts(4*runtime.GOMAXPROCS(0)), new(strangers)
		p.generation = 1
	}
	if len(o.Settling.Key) > 0 {
		if p.signer, err = newSigner(o.Settling.Key); err != nil {
			return nil, err
		}
	}
	var verified *prover
	if o.Before != nil {
		verified = o.Before.prover
	}
	if p.prover, err = newProver(o.Proof, routes, verified); err != nil {
		return nil, err
	}
	p.noRoute.tallies = p.counts.of(noRouteName)
	for i := range routes {
		routes[i].tallies = p.counts.of(routes[i].Name)
		for j := range routes[i].meters {
			routes[i].meters[j].tallies = p.counts.ofRate(routes[i].meters[j].Name)
		}
	}
	for _, reason := range o.Spared {
		p.spared[reason] = true
	}
	for reason, bound := range o.Bounds {
		p.bounds[reason] = bound
	}
	p.launcher, _ = o.Shop.(Launcher)
	p.pool.New = func() any { return new(request) }
	return p, nil
}

// protected lists the header names that routes look into: no other spelling of them may reach the shop beside them.
func (p *Proxy) protected() (names []string) {
	names = append(names, p.clientHeader)
	for i := range p.routes {
		for _, v := range p.routes[i].variables() {
			for _, part := range v.parts {
				if part.source == header {
					names = append(names, part.name)
				}
			}
		}
	}
	return names
}

// handle takes one request to its answer.
func (p *Proxy) handle(x *exchange) {
	r := p.begin(x)
	defer p.end(r)
	if answer := p.own(r); answer != nil {
		p.tell(r, answer)
		return
	}
	reason, wait := p.decide(r)
	if reason != Admitted && p.lets(r, reason) {
		reason = Admitted
	}
	if reason == Admitted && !r.served {
		if reason = p.forward(r); r.flight != nil {
			r.conn.away, r.owed = r, wait
			return
		}
	}
	p.conclude(r, reason, wait)
}

// land goes on with a request whose flight has news, or is to be waited for here. r.conn.away tells whether it still flies.
func (p *Proxy) land(r *request) {
	defer p.end(r)
	outcome, ended := r.flight.End()
	if !ended {
		return
	}
	r.flight, r.conn.away = nil, nil
	p.conclude(r, p.answered(r, outcome, nil), r.owed)
}

// conclude answers a request that is not admitted, or that the shop has not answered.
func (p *Proxy) conclude(r *request, reason Reason, wait time.Duration) {
	if reason != Admitted {
		r.refused(reason, wait)
		p.refuse(r, reason, wait)
	}
	if p.answers.RateFields {
		r.tellRates()
	}
}

// decide goes up the ladder: connection, route, who and what, then limits and stock.
func (p *Proxy) decide(r *request) (reason Reason, wait time.Duration) {
	p.takeID(r)
	reason = p.match(r)
	switch {
	case p.denied(r):
		return DeniedIP, 0
	case reason == Admitted && preflight(r):
		return Admitted, 0
	case reason == Admitted && r.route.Gate == Pass:
		if reason, wait := p.rated(r); reason != Admitted {
			return reason, wait
		}
		return p.fromPages(r), 0
	}
	if limit, wait := p.paced(r); limit != Admitted {
		return limit, wait
	}
	if reason == Admitted {
		reason = p.identify(r)
	}
	if reason != Admitted {
		return reason, 0
	}
	reason, wait = p.admit(r)
	if r.now%decisionSample == 0 {
		observe(&r.shard.decided, time.Duration(p.clock()-r.now))
	}
	return reason, wait
}

// lets counts a refusal that is only observed. A request that is not understood cannot be let through.
func (p *Proxy) lets(r *request, reason Reason) bool {
	if !p.observe || refusals[reason].close {
		return false
	}
	p.leave(r)
	p.settle(r)
	r.tally().observed[reason].Add(1)
	r.observed = reason
	return true
}

func (p *Proxy) begin(x *exchange) *request {
	r := p.pool.Get().(*request)
	r.proxy, r.asked, r.resp, r.reply, r.conn = p, &x.asked, &x.resp, &x.reply, x.conn
	r.now = p.clock()
	p.judge(r.conn)
	r.shard = r.conn.shard
	r.route = &p.noRoute
	if !r.conn.trusted && r.now%strangerSample == 0 {
		p.strangers.note(r.now, r.conn.peer, len(r.asked.Peek(p.clientHeader)) > 0, p.log, p.clientHeader)
	}
	return r
}

// end counts the answer and lets the request go, if it does not wait for one. A panic on the way costs this one request, not the sale.
func (p *Proxy) end(r *request) {
	if fault := recover(); fault != nil {
		r.shard.panics.Add(1)
		p.log.Error("handling a request panicked", "fault", fault, "stack", string(debug.Stack()))
		r.flight, r.conn.away = nil, nil
		r.refused(Internal, 0)
		p.refuse(r, Internal, 0)
	}
	if r.flight != nil {
		return
	}
	p.leave(r)
	p.leavePage(r)
	p.settle(r)
	r.tally().code(r.status())
	p.note(r)
	r.clear()
	p.pool.Put(r)
}
