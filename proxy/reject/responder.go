package reject

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
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
	Detail         Detail
	Wait           time.Duration // until another attempt is worth it; 0 = the class decides
	Starts         time.Time     // when the sale starts, for NotStarted; zero = not known
	RequestID      []byte        // empty = none
	SKU            []byte        // empty = none
	Room           string        // path of the waiting room that the order needs a pass of; "" = none
	OrderLink      string        // path at which the client can ask for the order's state; "" = none
	MayHaveOrdered bool          // an earlier request of this client may have placed the order
	RetryPath      []byte        // where the page's "try again" leads, with the query; nil = "/"
	BackPath       []byte        // where the page's "back" leads, with the query; nil = "/"
	Accept         []byte
	AcceptLanguage []byte
	Origin         []byte
}

// Responder answers rejections. All that does not depend on the request is rendered by New.
// It is safe for concurrent use.
type Responder struct {
	format    Format
	header    string          // of the request ID; "" = none
	origins   map[string]bool // that may read; "*" is none of them
	anyOrigin bool            // every origin may read, without credentials
	expose    string          // Access-Control-Expose-Headers
	jitter    time.Duration
	locales   locales
	answers   [NumReasons][]variants // by locale
	retry     [NumReasons]time.Duration
	raw       [NumReasons][]byte
	rawStatus [NumReasons]int
}

// variants are the answers of one reason in one language: [1] to a client that may have placed the order before.
type variants [2][numFormats]rendered

// rendered is one answer, but for what differs from request to request.
type rendered struct {
	header    *fasthttp.ResponseHeader // with the status
	body      body
	retries   bool   // the page leads to another attempt
	day, days string // the unit of the clock, escaped
}

// Write writes the whole response but its framing. It allocates nothing once out has its room.
func (r *Responder) Write(out *fasthttp.Response, c *Case) {
	format := r.format
	if format == Auto {
		format = chooseFormat(c.Accept)
	}
	variant := 0
	if c.MayHaveOrdered {
		variant = 1
	}
	a := &r.answers[c.Reason][r.locales.choose(c.AcceptLanguage)][variant][format]
	out.Reset()
	a.header.CopyTo(&out.Header)
	v := values{c: c, format: format, retries: a.retries, day: a.day, days: a.days}
	if c.Reason.MayHaveOrder() && isPath(c.OrderLink) {
		v.order = c.OrderLink
		addLink(out, v.order)
	}
	if out.StatusCode() != fasthttp.StatusSeeOther { // there it would be the time to wait before following the redirect
		v.seconds = r.addRetryAfter(out, c)
	}
	a.body.write(out, &v)
	if r.header != "" && len(c.RequestID) > 0 {
		out.Header.AddBytesV(r.header, c.RequestID)
	}
	r.AllowOrigin(out, c.Origin)
}

const (
	maxStartWait = time.Minute                // a client that waits for a start asks again after at most this time
	maxWait      = 100 * 365 * 24 * time.Hour // keeps sums below the largest Duration
)

// addRetryAfter adds Retry-After and returns its seconds; 0 = there is none. They are rounded up: a client told to come
// back too early is rejected twice.
func (r *Responder) addRetryAfter(out *fasthttp.Response, c *Case) int {
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
	seconds := int((wait + time.Second - 1) / time.Second)
	var buf [20]byte
	out.Header.AddBytesV("Retry-After", strconv.AppendInt(buf[:0], int64(seconds), 10))
	return seconds
}

// addLink names the order's state (RFC 8631).
func addLink(out *fasthttp.Response, path string) {
	var buf [512]byte // longer ones do not occur: a serial and a SKU have at most 128 bytes each
	out.Header.AddBytesV("Link", append(append(append(buf[:0], '<'), path...), `>; rel="status"`...))
}

// AllowOrigin lets a page of another origin read the answer if the configuration allows it (Fetch, section 3.2). A page
// that cannot read an answer takes it for a network error, and many libraries then send the order again.
func (r *Responder) AllowOrigin(out *fasthttp.Response, origin []byte) {
	switch {
	case len(origin) == 0:
	case r.anyOrigin: // by the standard, browsers then let no page read what was asked for with credentials
		out.Header.Add("Access-Control-Allow-Origin", "*")
		out.Header.Add("Access-Control-Expose-Headers", r.expose)
	case r.origins[string(origin)]:
		out.Header.AddBytesV("Access-Control-Allow-Origin", origin)
		out.Header.Add("Access-Control-Allow-Credentials", "true")
		out.Header.Add("Access-Control-Expose-Headers", r.expose)
	}
}

// Raw is the whole answer to a connection that is rejected before any HTTP is read. It must not be changed.
func (r *Responder) Raw(reason Reason) []byte { return r.raw[reason] }

// RawStatus is the status of that answer.
func (r *Responder) RawStatus(reason Reason) int { return r.rawStatus[reason] }
