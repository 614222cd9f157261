package proxy

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/page"
)

// Format is what a refusal's body looks like.
type Format uint8

const (
	Auto     Format = iota // by Accept: a page for browsers, a problem for programs
	HTML                   // a page
	Problem                // RFC 9457, application/problem+json
	Envelope               // the shop's own {code,msg}
)

// Responses is how refusals are answered.
type Responses struct {
	Format         Format
	Languages      []string // tags; the first speaks to whoever names none
	Pages          PageFiles
	Answers        map[Class]Answer
	EnvelopeStatus int
	EnvelopeBody   string // with $code $message $reason $request_id $retry_after $sku
	Jitter         time.Duration
	CORS           bool   // reflect the Origin, so that a page of another origin can read why
	ReasonHeader   string // "" = none
	RateFields     bool   // tell RateLimit and RateLimit-Policy
}

// responder answers what the gate refuses. Everything that can be is rendered once, at start.
type responder struct {
	Responses
	tongues []tongue // that are spoken; the first to whoever names none
	book    *page.Book
	expose  string
	rows    [numReasons]Answer
	bodies  [numReasons][][Envelope + 1]body // by tongue
	// cautious are for a client that may have an order, placed by an earlier request.
	cautious [numReasons][][Envelope + 1]body
	stamps   stamps
	raw      [numReasons][]byte // for connections that are refused before any HTTP is read
}

// refuse writes the answer. wait is how long until it is worth trying again; 0 = the class knows.
func (p *Proxy) refuse(r *request, reason Reason, wait time.Duration) {
	a := &p.answers
	resp, row := &r.ctx.Response, &a.rows[reason]
	resp.Reset()
	format, lang := a.format(r), speaks(r.asked.Peek("Accept-Language"), a.tongues)
	a.stamps.heads[lang][format].CopyTo(&resp.Header)
	if format == HTML && row.Redirect != "" {
		resp.SetStatusCode(fasthttp.StatusSeeOther)
		resp.Header.Set("Location", row.Redirect)
	} else {
		resp.SetStatusCode(row.Status)
		if format == Envelope && !reason.unknown() {
			resp.SetStatusCode(a.EnvelopeStatus)
		}
		bodies := &a.bodies
		if r.mayRepeat(reason) {
			bodies = &a.cautious
		}
		bodies[reason][lang][format].write(resp, r, a.retryAfter(reason, wait, r))
	}
	a.writeHeaders(r, reason, format)
	if refusals[reason].close || reason == ConnRate && p.closeExcess || !r.conn.forgo() {
		r.conn.unread = true
		resp.SetConnectionClose()
	}
}

// refuseBroken answers what never became a request.
func (p *Proxy) refuseBroken(x *exchange, status int) {
	r := p.begin(x)
	p.takeID(r)
	r.refused(Malformed, 0)
	p.refuse(r, Malformed, 0)
	r.ctx.Response.SetStatusCode(status)
	p.end(r)
}

// retryAfter is in whole seconds, rounded up: a client told to come back too early is refused twice.
// The jitter keeps those who were refused together from coming back together.
//
// Who is early is told when the sale starts, and to look again before that when it is far away.
func (a *responder) retryAfter(reason Reason, wait time.Duration, r *request) int {
	least := a.rows[reason].RetryAfter
	switch {
	case reason == NotStarted && wait > 0:
		wait = min(wait, latestReturn)
	case least == 0:
		return 0
	}
	wait = min(max(wait, least), longestWait)
	if a.Jitter > 0 {
		wait += rand.N(a.Jitter)
	}
	seconds := int((wait + time.Second - 1) / time.Second)
	r.number = strconv.AppendInt(r.number[:0], int64(seconds), 10)
	r.ctx.Response.Header.SetCanonical(retryAfterField, r.number)
	return seconds
}

const (
	latestReturn = time.Minute
	longestWait  = 100 * 365 * 24 * time.Hour // whoever is told is told enough, and sums stay below what a Duration holds
)

func (a *responder) writeHeaders(r *request, reason Reason, format Format) {
	h := &r.ctx.Response.Header
	if reason == Confirmed && format == Problem {
		h.SetContentType("application/json") // it is none
	}
	if reason.hasOrder() && r.taken.Serial != "" {
		h.Set("Link", "<"+r.link()+`>; rel="status"`) // RFC 8631
	}
	if len(a.stamps.reason) > 0 {
		h.SetCanonical(a.stamps.reason, a.stamps.reasons[reason])
	}
	if len(r.id) > 0 {
		h.SetCanonical(r.proxy.idField, r.id)
	}
	if reason == Unidentified && r.ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer") // RFC 9110, section 15.5.2
	}
	if a.CORS {
		a.allowOrigin(r, h)
	}
}

// allowOrigin lets a page of another origin read the refusal (Fetch, section 3.2). A page that cannot read it takes
// it for a network error, and many libraries then send the order again.
func (a *responder) allowOrigin(r *request, h *fasthttp.ResponseHeader) {
	if origin := r.asked.Peek("Origin"); len(origin) > 0 {
		h.SetCanonical(originField, origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", a.expose)
	}
}

var contentTypes = [Envelope + 1]string{HTML: "text/html; charset=utf-8", Problem: "application/problem+json", Envelope: "application/json; charset=utf-8"}

// quiet keeps the HTTP library from adding what neither the gate nor the shop said.
func quiet(resp *fasthttp.Response) {
	resp.Header.SetNoDefaultContentType(true)
}
