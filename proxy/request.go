package proxy

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// Request is what the proxy knows of one request while it checks and forwards it. It is pooled; nothing in it outlives
// Handle, but for a streamed response, which takes its releases along.
type Request struct {
	proxy      *Proxy
	ctx        *fasthttp.RequestCtx
	head       *server.Request // of ctx, as the client sent it
	conn       *server.Conn
	client     *connState // of the connection
	now        int64      // monotonic ns of the proxy's clock, read once
	checked    int64      // likewise: now, or the end of its delay by a keyed rate
	route      *boundRoute
	matched    route.Match
	checks     []check
	source     param.Source // where the route's variables are looked up
	id         []byte
	addr       netip.Addr // by clientAddr
	buyer      buyer
	bypass     bool // no limit applies
	repeatable bool // an earlier request may have placed this very order, and it has not been looked up

	proven    bool // the client was told of the order that it asks about
	notInLine bool // it has asked a waiting room for a place, and has none

	lookUp bool // memory cannot tell whether the order has won before, but the store can

	suspended bool      // it waits for news, and is handled again then
	asked     bool      // another proxy asks about it, and forwards it
	internal  bool      // one of the proxy's own addresses is asked; nothing is bought
	unmatched rejection // why no route takes it
	rejection rejection
	observed  rejection // what a limit or mode that only observes would have rejected it for
	limit     string    // what rejected it and how large that is, where the reason alone does not say it
	nth       uint64    // of the rejections of its kind

	acquired    acquired
	reservation Reservation
	outcome     metrics.OrderOutcome // of the order
	rateKeys    rateKeys
	page        pageState
	upload      upload
	body        slowBody
	attempt     attempt
	trace       trace
	reject      reject.Case // room for the rejection's response: it is written whole
	carried     rejectionEncoder
	scratch     scratch
}

// rejection is one check's objection. The zero value is none.
type rejection struct {
	Reason reject.Reason
	Wait   time.Duration // until another attempt is worth it; 0 = not known
	Detail reject.Detail
}

// buyer is who wants to buy what. Its slices belong to the request.
type buyer struct {
	sku, user []byte
	key       []byte // the client's Idempotency-Key
	quantity  int64
	lines     []ledger.Line // of an order over several SKUs; sku is the first, or the one that it is rejected for
	cart      string        // the digest of lines
}

// attempt is the one time that the request goes to the upstream.
type attempt struct {
	request        upstream.Request
	outcome        upstream.Outcome
	sent           bool
	begun, replied int64 // monotonic ns
}

// trace is the request's place in a trace, where it is traced.
type trace struct {
	metrics.Trace
	on bool
}

// scratch is room that is kept from one request to the next.
type scratch struct {
	host, id, body, value, text, path, lines []byte
}

// maxKeptBody is the largest body buffer that waits for the next request, in bytes: a larger one is of BodyMemory.
const maxKeptBody = comeAtOnce

// clear forgets the request and keeps the room.
func (r *Request) clear() {
	if cap(r.scratch.body) > maxKeptBody {
		r.scratch.body = nil
	}
	if r.attempt.request.HTTP != nil { // its body lies in r
		r.attempt.request.HTTP.ResetBody()
	}
	r.source.Reset()
	r.attempt.request = upstream.Request{}
	r.proxy, r.ctx, r.head, r.conn, r.client, r.route, r.checks = nil, nil, nil, nil, nil, nil, nil
	r.matched = route.Match{}
	r.now, r.id, r.addr, r.buyer = 0, nil, netip.Addr{}, buyer{}
	r.bypass, r.repeatable, r.proven, r.lookUp, r.internal, r.suspended = false, false, false, false, false,
		false
	r.asked, r.notInLine = false, false
	r.unmatched, r.rejection, r.observed, r.limit, r.nth = rejection{}, rejection{}, rejection{}, "", 0
	r.acquired, r.reservation, r.outcome = acquired{}, Reservation{}, metrics.OrderRejected
	r.rateKeys.reset()
	r.page = pageState{Page: Page{Key: r.page.Key[:0], Conditions: r.page.Conditions[:0]}}
	r.upload, r.trace = upload{}, trace{}
	r.attempt.outcome, r.attempt.sent, r.attempt.begun, r.attempt.replied = upstream.Answered, false, 0, 0
}

// shard is where what becomes of this request is counted.
func (r *Request) shard() *metrics.RouteShard { return r.route.counters.At(r.client.shard) }
