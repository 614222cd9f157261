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
	out, row := r.reply, &a.rows[reason]
	format, lang := a.format(r), speaks(r.asked.Peek("Accept-Language"), a.tongues)
	out.begin(row.Status, a.stamps.of(reason, lang, format), r.date())
	if format == HTML && row.Redirect != "" {
		out.status = fasthttp.StatusSeeOther
		out.add("Location", row.Redirect)
	} else {
		if format == Envelope && !reason.unknown() {
			out.status = a.EnvelopeStatus
		}
		bodies := &a.bodies
		if r.mayRepeat(reason) {
			bodies = &a.cautious
		}
		bodies[reason][lang][format].write(out, r, a.retryAfter(reason, wait, r))
	}
	a.addFields(r, reason)
	if refusals[reason].close || reason == ConnRate && p.closeExcess || !r.conn.forgo() {
		r.conn.unread = true
		out.last = true
	}
}

// refuseBroken answers what never became a request.
func (p *Proxy) refuseBroken(x *exchange, status int) {
	r := p.begin(x)
	p.takeID(r)
	r.refused(Malformed, 0)
	p.refuse(r, Malformed, 0)
	r.reply.status = status
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
	r.reply.addBytes("Retry-After", r.number)
	return seconds
}

const (
	latestReturn = time.Minute
	longestWait  = 100 * 365 * 24 * time.Hour // whoever is told is told enough, and sums stay below what a Duration holds
)

// addFields adds what differs from one refusal to the next.
func (a *responder) addFields(r *request, reason Reason) {
	out := r.reply
	if reason.hasOrder() && r.taken.Serial != "" {
		out.add("Link", "<"+r.link()+`>; rel="status"`) // RFC 8631
	}
	if a.ReasonHeader != "" {
		out.add(a.ReasonHeader, reason.String())
	}
	if len(r.id) > 0 {
		out.addBytes(r.proxy.idHeader, r.id)
	}
	if reason == Unidentified && out.status == fasthttp.StatusUnauthorized {
		out.add("WWW-Authenticate", "Bearer") // RFC 9110, section 15.5.2
	}
	if a.CORS {
		a.allowOrigin(r)
	}
}

// allowOrigin lets a page of another origin read the refusal (Fetch, section 3.2). A page that cannot read it takes
// it for a network error, and many libraries then send the order again.
func (a *responder) allowOrigin(r *request) {
	if origin := r.asked.Peek("Origin"); len(origin) > 0 {
		r.reply.addBytes("Access-Control-Allow-Origin", origin)
		r.reply.add("Access-Control-Allow-Credentials", "true")
		r.reply.add("Access-Control-Expose-Headers", a.expose)
	}
}

var contentTypes = [Envelope + 1]string{HTML: "text/html; charset=utf-8", Problem: "application/problem+json", Envelope: "application/json; charset=utf-8"}

// quiet keeps the HTTP library from adding what neither the gate nor the shop said.
func quiet(resp *fasthttp.Response) {
	resp.Header.SetNoDefaultContentType(true)
}
