package proxy

import (
	"net/http"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
)

// Handle answers one request: admitted and forwarded, or rejected for one reason.
func (p *Proxy) Handle(r *Request) {
	defer p.release(r) // slots, reservations, counters, access record
	switch {
	case p.serveInternal(r):
	case p.admit(r):
		p.forward(r)
	default:
		p.reject(r)
	}
}

// admit finds the request's route and runs its checks.
func (p *Proxy) admit(r *Request) bool {
	p.match(r)
	return p.passesChecks(r)
}

// passesChecks runs the request's checks in their order; the first objection decides. A limit that is only observed is
// counted, and the next check goes on. In observe mode the first objection is counted, what was acquired is released,
// and the request is forwarded.
func (p *Proxy) passesChecks(r *Request) bool {
	for i := range r.checks {
		if r.bypass && r.checks[i].bypass {
			continue
		}
		r.rejection = r.checks[i].decide(p, r)
		switch reason := r.rejection.Reason; {
		case reason == reject.Admitted:
		case p.observeOnly[reason]:
			r.observe()
		case p.Observe && !reason.ClosesConnection():
			p.releaseAcquired(r)
			r.observe()
			return true
		default:
			return false
		}
		if r.page.served {
			break
		}
	}
	return true
}

// reject answers the request with the reason, and closes the connection where it cannot be used any further.
func (p *Proxy) reject(r *Request) {
	r.nth = r.shard().Rejected(r.rejection.Reason)
	r.client.shard.Detail(r.rejection.Detail.Cause)
	if r.nth%metrics.DecisionSample == 1 {
		r.client.shard.Decided(time.Duration(p.Now() - r.now))
	}
	p.describeRejection(r)
	p.responder.Write(&r.ctx.Response, r.conn.Prepared(), &r.reject)
	r.carryRejection()
	p.appendRateFields(r)
	if r.rejection.Reason.ClosesConnection() || !r.conn.SkipBody() {
		r.conn.CloseAfterResponse()
	}
}

// release gives back what the request acquired, counts its answer and writes its access record. A panic on the way
// costs this one request.
func (p *Proxy) release(r *Request) {
	if fault := recover(); fault != nil {
		r.client.shard.Panic()
		p.Log.Error("handling a request panicked", "fault", fault, "stack", string(debug.Stack()))
		r.rejection = rejection{Reason: reject.Internal}
		p.reject(r)
	}
	p.releaseAcquired(r)
	p.leavePage(r)
	if !r.suspended {
		p.account(r)
	}
	p.slow.release(&r.body)
	r.clear()
	p.pool.Put(r)
}

// account counts the answer, and writes the access record.
func (p *Proxy) account(r *Request) {
	r.shard().Status(r.ctx.Response.StatusCode())
	if r.route.Gate.GuardsStock() && len(r.buyer.sku) > 0 {
		r.client.shard.CountSKU(r.buyer.sku, r.attempt.sent, r.now)
	}
	p.record(r)
}

// releaseAcquired gives back the connection, the stock check's admission, the slot and the places in flight, and
// settles the order; each at most once.
func (p *Proxy) releaseAcquired(r *Request) {
	if r.acquired.conn {
		r.acquired.conn = false
		p.Upstream.Release(&r.attempt.request)
	}
	p.releaseCounted(&r.acquired)
	if r.acquired.order {
		r.acquired.order = false
		p.Orders.Settle(r.order(), r.reservation.Serial, r.outcome)
	}
}

// acquired is what is owed for one request.
type acquired struct {
	stock  bool               // Stock.Enter admitted it: Leave is owed
	sku    []byte             // of stock
	slot   ConcurrencyLimiter // whose Acquire admitted it: Release is owed; nil = none
	took   time.Duration      // by the upstream, to answer
	places placesInFlight     // of limits in flight: Release of each is owed
	order  bool               // Orders.Reserve took the units: Settle is owed
	conn   bool               // Upstream.Acquire took one: Release is owed
}

// releaseCounted gives back the admission of the stock check, the slot and the places in flight.
func (p *Proxy) releaseCounted(a *acquired) {
	if a.stock {
		a.stock = false
		p.Stock.Leave(a.sku)
	}
	if a.slot != nil {
		a.slot.Release(a.took)
		a.slot = nil
	}
	a.places.Release()
}

// observe counts a rejection that is not enforced.
func (r *Request) observe() {
	r.observed = r.rejection
	r.shard().Observed(r.observed.Reason)
	r.client.shard.Detail(r.observed.Detail.Cause)
	r.rejection = rejection{}
}

// newRequest begins a request: whose it is, when it came, and which checks it has to pass.
func (p *Proxy) newRequest(ctx *fasthttp.RequestCtx, c *server.Conn) *Request {
	r := p.pool.Get().(*Request)
	r.proxy, r.ctx, r.conn, r.head = p, ctx, c, c.Request()
	r.client = c.State.(*connState)
	r.now = p.Now()
	r.checked = r.now
	p.resolveTrust(r.client, c)
	r.route = &p.unmatched
	p.ensureRequestID(r)
	head := r.head
	r.scratch.host = route.HostName(r.scratch.host[:0], head.Host)
	r.source.Head, r.source.Host, r.source.Query = head, r.scratch.host, head.Query
	r.source.RequestID, r.source.Tokens = r.id, p.auth
	if !r.client.trusted && p.proxies.Samples(r.now) {
		p.proxies.Observe(r.now, c.Peer(), len(head.Peek(p.ClientHeader)) > 0)
	}
	return r
}

// serve handles a request that came on c.
func (p *Proxy) serve(ctx *fasthttp.RequestCtx, c *server.Conn) {
	p.Handle(p.newRequest(ctx, c)) // which is another's from here on
	// A connection may carry so many requests. Its response says that it is the last.
	if p.MaxRequests > 0 && c.Requests() >= p.MaxRequests && !c.State.(*connState).shared {
		c.CloseAfterResponse()
	}
}

// protocolError answers what never became a request.
func (p *Proxy) protocolError(ctx *fasthttp.RequestCtx, c *server.Conn, e server.ProtocolError) {
	r := p.newRequest(ctx, c)
	defer p.release(r)
	detail := reject.Detail{Cause: reject.ProtocolRule, Operand: e.Rule.Text()}
	r.rejection = rejection{Reason: reject.Malformed, Detail: detail}
	p.reject(r)
	ctx.Response.SetStatusCode(e.Status)
	if e.Status == http.StatusMethodNotAllowed { // TRACE; any other token is a method here
		ctx.Response.Header.Add("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS") // RFC 9110, section 15.5.6
	}
}
