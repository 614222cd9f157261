package reject

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy/server"
)

// New renders all answers. Its errors begin with the file of a page or language and its line, with "languages: " if the
// languages cannot be served, or with "envelope:".
func New(o Options) (*Responder, error) {
	files, err := newTemplates(o.Pages)
	if err != nil {
		return nil, err
	}
	r := &Responder{format: o.Format, header: o.RequestIDHeader, jitter: o.Jitter, origins: map[string]bool{}}
	for _, origin := range o.Origins {
		r.origins[origin], r.anyOrigin = true, r.anyOrigin || origin == "*"
	}
	expose := "Link, Retry-After, ETag, Sluice-Time"
	if o.RequestIDHeader != "" {
		expose += ", " + o.RequestIDHeader
	}
	expose += ", " + reasonHeader
	if o.RateFields {
		expose += ", RateLimit, RateLimit-Policy"
	}
	if r.anyOrigin {
		r.allow = octets.AppendField(r.allow, "Access-Control-Allow-Origin", "*")
	} else {
		r.allow = octets.AppendField(r.allow, "Access-Control-Allow-Credentials", "true")
	}
	r.allow = octets.AppendField(r.allow, "Access-Control-Expose-Headers", expose)
	if r.locales, err = newLocales(o.Languages, files); err != nil {
		return nil, err
	}
	if o.EnvelopeStatus == 0 {
		o.EnvelopeStatus = fasthttp.StatusOK
	}
	n := renderer{Options: o, files: files}
	if n.problem, err = parse("problem", problemText, problemTerms); err != nil {
		panic("BUG: " + err.Error())
	}
	if n.envelope, err = parse("envelope", o.EnvelopeBody, envelopeTerms); err != nil {
		return nil, err
	}
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		r.add(reason, &n)
	}
	return r, nil
}

func (r *Responder) add(reason Reason, n *renderer) {
	answer := n.answer(reason)
	r.retry[reason] = answer.RetryAfter
	for i := range r.locales {
		r.answers[reason] = append(r.answers[reason], n.variants(reason, answer, &r.locales[i]))
	}
	var out fasthttp.Response
	var text server.Prepared
	r.Write(&out, &text, &Case{Reason: reason})
	r.raw[reason], r.rawStatus[reason] = server.AppendResponse(nil, &out, &text, "close"), out.StatusCode()
}

// renderer renders answers. It is not needed once New returns.
type renderer struct {
	Options
	files             *templates
	problem, envelope template
}

// answer is the configured answer to a reason.
func (n *renderer) answer(reason Reason) Answer {
	a := n.Answers[reason.Class()]
	if own := table[reason].status; own != 0 {
		a.Status = own
	}
	if a.Status == 0 {
		a.Status = fasthttp.StatusServiceUnavailable
	}
	return a
}

// variants are the answers in one language. An earlier request that may have placed the order makes no difference to a
// reason that does not deny an order. Of an order that was cancelled one is known to have placed it.
func (n *renderer) variants(reason Reason, a Answer, l *locale) (v variants) {
	v[0] = n.formats(reason, a, l, reason.orderMessage())
	v[1] = v[0]
	if !reason.mayHavePlaced() {
		v[1] = n.formats(reason, a, l, oneOnly)
	}
	if reason == Released {
		v[1] = n.formats(reason, a, l, placedBefore)
	}
	v[2] = n.formats(reason, a, l, notInLine)
	return v
}

func (n *renderer) formats(reason Reason, a Answer, l *locale, order message) (all [numFormats]rendered) {
	all[HTML] = n.page(reason, a, l, order)
	all[Problem] = n.problemAnswer(reason, a, l, order)
	all[Envelope] = n.envelopeAnswer(reason, a, l)
	return all
}

// fields are those of an answer that do not differ from request to request.
func (n *renderer) fields(reason Reason, status int, contentType string, l *locale) []byte {
	fields := octets.AppendField(nil, "Content-Type", contentType)
	if l != nil {
		fields = octets.AppendField(fields, "Content-Language", l.tag)
	}
	fields = octets.AppendField(fields, "Cache-Control", "no-store")
	fields = octets.AppendField(fields, "Vary", "Accept, Accept-Language, Origin")
	fields = octets.AppendField(fields, reasonHeader, reason.String())
	if reason == Unidentified && status == fasthttp.StatusUnauthorized {
		fields = octets.AppendField(fields, "WWW-Authenticate", "Bearer") // RFC 9110, section 15.5.2
	}
	return fields
}

// page is the answer in HTML, or a redirect.
func (n *renderer) page(reason Reason, a Answer, l *locale, order message) rendered {
	if a.Redirect != "" {
		fields := n.fields(reason, fasthttp.StatusSeeOther, contentTypes[HTML], l)
		return rendered{status: fasthttp.StatusSeeOther, fields: octets.AppendField(fields, "Location", a.Redirect)}
	}
	opens := reason == NotStarted
	waits := opens || retries(reason, a)
	hint, backLabel, timeLabel, joinLabel := noMessage, goBack, retryIn, joinRoom
	switch {
	case opens:
		hint, timeLabel, joinLabel = goesOn, startsIn, lineUp
	case waits:
		hint, backLabel = comeBack, tryAgain
	case reason == InProgress, reason == Duplicate:
		hint = lookFirst
	case reason == SoldOut:
		hint = mayReturn
	case reason == Unidentified:
		hint = signIn
	case reason == Malformed, reason == BadRequest, reason == Ambiguous, reason == TooSlow:
		hint = reloadPage
	}
	texts := map[string]string{
		"title": l.title(reason), "detail": l.message(order), "hint": l.message(hint), "lang": l.tag,
		"time_label": l.message(timeLabel), "back_label": l.message(backLabel), "starts_label": l.message(startsAt),
		"day": l.message(oneDay), "days": l.message(manyDays), "request_id_label": l.message(requestIDLabel),
		"reason": reason.String(), "class": reason.Class().String(), "status": strconv.Itoa(a.Status),
		"jitter_ms": strconv.FormatInt(n.Jitter.Milliseconds(), 10), "join_label": l.message(joinLabel),
	}
	conditions := withRoom(reason, map[string]bool{"waits": waits, "opens": opens, "hint": hint != noMessage})
	if reason == Room {
		conditions["cause"] = false // what is wrong with a pass is for operators
	}
	b := n.files.page(reason.Class().String(), l.tag).body(escape(texts, HTML), conditions)
	return rendered{
		a.Status, n.fields(reason, a.Status, contentTypes[HTML], l), b, waits, texts["day"], texts["days"],
	}
}

// withRoom leaves the block of a waiting room out of all answers but those that may have one.
func withRoom(reason Reason, conditions map[string]bool) map[string]bool {
	if reason != Room && reason != NotStarted {
		conditions["room"] = false
	}
	return conditions
}

// problemText is application/problem+json (RFC 9457). Each reason is a problem type; its title and detail are in the
// client's language. retry_after is in seconds.
const problemText = `{"type":"urn:problem-type:sluice:$reason","title":"$title","detail":"$detail"` +
	`<!-- if cause -->,"cause":"$cause"<!-- end --><!-- if limit -->,"limit":"$limit"<!-- end -->` +
	`,"reason":"$reason"<!-- if status -->,"status":$status<!-- end --><!-- if code -->,"code":$code<!-- end -->` +
	`<!-- if waits -->,"retry_after":$retry_after<!-- end --><!-- if order -->,"order":"$order"<!-- end -->` +
	`<!-- if sku -->,"sku":"$sku"<!-- end --><!-- if room -->,"room":"$room"<!-- end -->` +
	`,"request_id":"$request_id"}` + "\n"

var problemTerms = vocabulary{
	[]string{"title", "detail", "cause", "limit", "reason", "status", "code", "retry_after", "order", "sku", "room",
		"request_id"},
	[]string{"cause", "limit", "status", "code", "waits", "order", "sku", "room"},
}

func (n *renderer) problemAnswer(reason Reason, a Answer, l *locale, order message) rendered {
	hint, contentType := noMessage, contentTypes[Problem]
	if retries(reason, a) {
		hint = comeBack
	}
	title := l.title(reason)
	if reason == Confirmed { // which is no problem
		contentType = "application/json"
	}
	texts := map[string]string{
		"title": title, "detail": l.sentences(title, l.message(order), l.message(hint)), "reason": reason.String(),
		"status": strconv.Itoa(a.Status), "code": strconv.Itoa(a.Code),
	}
	b := n.problem.body(escape(texts, Problem), withRoom(reason, map[string]bool{
		"status": reason != Malformed, // the broken rule decides its status
		"code":   a.Code != 0,
		"waits":  a.RetryAfter > 0 || reason == NotStarted,
	}))
	return rendered{status: a.Status, fields: n.fields(reason, a.Status, contentType, l), body: b}
}

var envelopeTerms = vocabulary{
	placeholders: []string{"code", "message", "reason", "detail", "request_id", "retry_after", "sku"},
}

// envelopeAnswer is the answer in the shop's own form. If the outcome of an order is unknown it keeps the status of the
// reason, so that no client takes it for a success.
func (n *renderer) envelopeAnswer(reason Reason, a Answer, l *locale) rendered {
	code, status := a.Code, n.EnvelopeStatus
	if code == 0 && reason != Confirmed {
		code = a.Status * 100
	}
	if reason.OutcomeUnknown() {
		status = a.Status
	}
	texts := map[string]string{"code": strconv.Itoa(code), "message": l.title(reason), "reason": reason.String()}
	fields := n.fields(reason, status, contentTypes[Envelope], nil)
	return rendered{status: status, fields: fields, body: n.envelope.body(escape(texts, Envelope), nil)}
}

// retries reports whether a client is told to try again after some time.
func retries(reason Reason, a Answer) bool { return a.RetryAfter > 0 && !reason.mayHavePlaced() }

// escape replaces the values of a format by what is written.
func escape(texts map[string]string, f Format) map[string]string {
	for name, text := range texts {
		texts[name] = string(appendEscaped(nil, text, f))
	}
	return texts
}
