package reject

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy/server"
)

// reasonHeader is where each rejection has its reason.
const reasonHeader = "X-Sluice-Reason"

// Options is how rejections are answered.
type Options struct {
	Format          Format
	Languages       []string // tags; at least one, unless Pages brings one. The first is the default
	Pages           PageFiles
	Answers         map[Class]Answer
	EnvelopeStatus  int           // 0 = 200
	EnvelopeBody    string        // with $code $message $reason $detail $request_id $retry_after $sku
	Jitter          time.Duration // added to Retry-After at random, so that rejected clients do not come back together
	Origins         []string      // whose pages can read the answer, with credentials; {"*"} = all, without
	RequestIDHeader string        // "" = none
	RateFields      bool          // pages of another origin may read RateLimit and RateLimit-Policy
}

// Case is one rejection as it is answered. Its bytes belong to the request. RequestID and Origin are written as
// header values and must hold no control bytes; all other bytes may be anything.
type Case struct {
	Reason         Reason
	Detail         Detail        `json:",omitzero"`
	Wait           time.Duration `json:",omitzero"` // until another attempt is worth it; 0 = the class decides
	Starts         time.Time     `json:"-"`         // when the sale starts, for NotStarted; zero = not known
	RequestID      []byte        `json:",omitzero"` // empty = none
	SKU            []byte        `json:",omitzero"` // empty = none
	Limit          string        `json:",omitzero"` // which limit, as the configuration calls it: of the class Busy
	Room           string        `json:",omitzero"` // path of the waiting room that the client may join now; "" = none
	OrderLink      string        `json:",omitzero"` // path at which the client can ask for the order's state; "" = none
	MayHaveOrdered bool          `json:",omitzero"` // an earlier request of this client may have placed the order
	NotInLine      bool          `json:",omitzero"` // the client has asked a waiting room for a place, and has none
	RetryPath      []byte        `json:",omitzero"` // where the page's "try again" leads, with the query; nil = "/"
	BackPath       []byte        `json:",omitzero"` // where the page's "back" leads, with the query; nil = "/"
	Accept         []byte        `json:"-"`
	AcceptLanguage []byte        `json:"-"`
	Origin         []byte        `json:"-"`
}

// Responder answers rejections. All that does not depend on the request is rendered by New.
// It is safe for concurrent use.
type Responder struct {
	format    Format
	header    string          // of the request ID; "" = none
	origins   map[string]bool // that may read; "*" is none of them
	anyOrigin bool            // every origin may read, without credentials
	allow     []byte          // the fields by which they may, but for their own name
	jitter    time.Duration
	locales   locales
	answers   [NumReasons][]variants // by locale
	retry     [NumReasons]time.Duration
	raw       [NumReasons][]byte
	rawStatus [NumReasons]int
}

// variants are the answers of one reason in one language: [1] to a client that may have placed the order before, [2] to
// one that has asked a waiting room for a place.
type variants [3][numFormats]rendered

// rendered is one answer, but for what differs from request to request.
type rendered struct {
	status    int
	fields    []byte // whole lines
	body      body
	retries   bool   // the page leads to another attempt
	day, days string // the unit of the clock, escaped
}

// Write writes the whole response but its framing: status and body to out, whose body is in text, and the fields to
// text. It allocates nothing once text has its room.
func (r *Responder) Write(out *fasthttp.Response, text *server.Prepared, c *Case) {
	format := r.format
	if format == Auto {
		format = chooseFormat(c.Accept)
	}
	variant := 0
	switch {
	case c.NotInLine:
		variant = 2
	case c.MayHaveOrdered:
		variant = 1
	}
	a := &r.answers[c.Reason][r.locales.choose(c.AcceptLanguage)][variant][format]
	fields := append(text.Fields[:0], a.fields...)
	v := values{c: c, format: format, requestID: plain(c.RequestID, format), sku: plain(c.SKU, format),
		retries: a.retries, day: a.day, days: a.days}
	if c.Reason.MayHaveOrder() && isPath(c.OrderLink) {
		v.order = c.OrderLink
		fields = append(append(append(fields, "Link: <"...), v.order...), ">; rel=\"status\"\r\n"...) // RFC 8631
	}
	if a.status != fasthttp.StatusSeeOther { // there it would be the time to wait before following the redirect
		if v.seconds = r.retryAfter(c); v.seconds > 0 {
			fields = append(strconv.AppendInt(append(fields, "Retry-After: "...), int64(v.seconds), 10), "\r\n"...)
		}
	}
	if r.header != "" && len(c.RequestID) > 0 {
		fields = octets.AppendField(fields, r.header, c.RequestID)
	}
	text.Fields, text.Body = fields, a.body.append(text.Body[:0], &v)
	server.Begin(out, a.status)
	out.SetBodyRaw(text.Body)
	r.AllowOrigin(text, c.Origin)
}

const (
	maxStartWait = time.Minute                // a client that waits for a start asks again after at most this time
	maxWait      = 100 * 365 * 24 * time.Hour // keeps sums below the largest Duration
)

// retryAfter is the value of Retry-After in seconds; 0 = there is none. They are rounded up: a client told to come back
// too early is rejected twice.
func (r *Responder) retryAfter(c *Case) int {
	least, wait := r.retry[c.Reason], c.Wait
	switch {
	case c.Reason == NotStarted && wait > 0:
		wait = min(wait, maxStartWait)
	case c.Reason == SoldOut && wait > 0: // it could not be verified that the client has not won
	case least == 0:
		return 0
	}
	wait = min(max(wait, least), maxWait)
	if r.jitter > 0 {
		wait += rand.N(r.jitter)
	}
	return int((wait + time.Second - 1) / time.Second)
}

// AllowOrigin lets a page of another origin read the answer if the configuration allows it (Fetch, section 3.2). A page
// that cannot read an answer takes it for a network error, and many libraries then send the order again.
func (r *Responder) AllowOrigin(text *server.Prepared, origin []byte) {
	switch {
	case len(origin) == 0:
	case r.anyOrigin: // by the standard, browsers then let no page read what was asked for with credentials
		text.Fields = append(text.Fields, r.allow...)
	case r.origins[string(origin)]:
		text.Fields = append(octets.AppendField(text.Fields, "Access-Control-Allow-Origin", origin), r.allow...)
	}
}

// Raw is the whole answer to a connection that is rejected before any HTTP is read. It must not be changed.
func (r *Responder) Raw(reason Reason) []byte { return r.raw[reason] }

// RawStatus is the status of that answer.
func (r *Responder) RawStatus(reason Reason) int { return r.rawStatus[reason] }
