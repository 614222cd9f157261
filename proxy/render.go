package proxy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"sluice/proxy/http1"
)

// body is a rendered refusal: fixed text with gaps for what differs from request to request.
type body struct {
	pieces []piece
}

type piece struct {
	text []byte
	gap  gap
}

type gap uint8

const (
	noGap gap = iota
	idGap
	waitGap
	skuGap
	orderGap
	numGaps // those of pages follow
)

// Placeholders that no configured text can hold: control characters are refused there.
const (
	idMark    = "\x01"
	waitMark  = "\x02"
	skuMark   = "\x03"
	orderMark = "\x04"
	bodyMarks = idMark + waitMark + skuMark + orderMark
)

func newBody(text string) (b body) {
	for text != "" {
		i := strings.IndexAny(text, bodyMarks+pageMarks)
		if i < 0 {
			i = len(text)
		}
		p := piece{text: []byte(text[:i])}
		text = text[i:]
		if text != "" {
			p.gap = markOf(text[0])
			text = text[1:]
		}
		b.pieces = append(b.pieces, p)
	}
	return b
}

// write splices what differs into the fixed text. Id and SKU are of characters that need no escaping in JSON or HTML.
func (b *body) write(out *reply, r *request, wait int) {
	for i := range b.pieces {
		out.sayBytes(b.pieces[i].text)
		switch b.pieces[i].gap {
		case idGap:
			out.sayBytes(r.id)
		case waitGap:
			r.number = strconv.AppendInt(r.number[:0], int64(wait), 10)
			out.sayBytes(r.number)
		case skuGap:
			out.sayBytes(safe(r.sku))
		case orderGap:
			out.say(r.link())
		case noGap:
		default:
			r.fillPage(out, b.pieces[i].gap, wait)
		}
	}
}

// safe hides what would need escaping.
func safe(b []byte) []byte {
	for _, c := range b {
		if c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			return nil
		}
	}
	return b
}

func newResponder(in Responses) (responder, error) {
	a := responder{Responses: in, expose: "Link, Retry-After, X-Request-Id"}
	if in.ReasonHeader != "" {
		a.expose += ", " + in.ReasonHeader
	}
	if in.RateFields {
		a.expose += ", RateLimit, RateLimit-Policy"
	}
	if err := a.openPages(); err != nil {
		return a, err
	}
	a.stamps = a.cut()
	if in.EnvelopeStatus == 0 {
		a.EnvelopeStatus = fasthttp.StatusOK
	}
	for reason := Admitted + 1; reason < numReasons; reason++ {
		a.render(reason)
		a.raw[reason] = a.rawAnswer(reason)
	}
	return a, nil
}

func (a *responder) render(reason Reason) {
	row := &refusals[reason]
	answer := a.Answers[row.class]
	if row.status != 0 {
		answer.Status = row.status
	}
	if answer.Status == 0 {
		answer.Status = fasthttp.StatusServiceUnavailable
	}
	a.rows[reason] = answer
	for i := range a.tongues {
		t := &a.tongues[i]
		plain := a.inEachFormat(reason, answer, t, reason.detail())
		cautious := plain
		if !reason.mayHavePlaced() {
			cautious = a.inEachFormat(reason, answer, t, oneOnly)
		}
		a.bodies[reason], a.cautious[reason] = append(a.bodies[reason], plain), append(a.cautious[reason], cautious)
	}
}

func (a *responder) inEachFormat(reason Reason, answer Answer, t *tongue, detail phrase) (all [Envelope + 1]body) {
	title, text := t.title(reason), t.say(detail)
	if !reason.mayHavePlaced() && answer.RetryAfter > 0 {
		text += " " + t.say(comeBack)
	}
	all[HTML] = newBody(a.page(reason, answer, t, detail))
	all[Problem] = newBody(problem(reason, answer, title, text))
	all[Envelope] = newBody(a.envelope(reason, answer, title))
	return all
}

// problem is application/problem+json (RFC 9457); retry_after is in seconds.
func problem(reason Reason, answer Answer, title, detail string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"about:blank","title":%s,"detail":%s,"reason":%s`, quote(title), quote(detail), quote(reason.String()))
	if reason != Malformed { // its status tells which of several faults it was
		fmt.Fprintf(&b, `,"status":%d`, answer.Status)
	}
	if answer.Code != 0 {
		fmt.Fprintf(&b, `,"code":%d`, answer.Code)
	}
	if answer.RetryAfter > 0 || reason == NotStarted {
		b.WriteString(`,"retry_after":` + waitMark)
	}
	if reason.hasOrder() {
		b.WriteString(`,"order":"` + orderMark + `"`)
	}
	b.WriteString(`,"sku":"` + skuMark + `","request_id":"` + idMark + "\"}\n")
	return b.String()
}

func (a *responder) envelope(reason Reason, answer Answer, title string) string {
	code := answer.Code
	if code == 0 && reason != Confirmed {
		code = answer.Status * 100
	}
	quoted := quote(title)
	return strings.NewReplacer(
		"$code", strconv.Itoa(code), "$message", quoted[1:len(quoted)-1], "$reason", reason.String(),
		"$request_id", idMark, "$retry_after", waitMark, "$sku", skuMark, "$$", "$",
	).Replace(a.EnvelopeBody)
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a fixed text that is no JSON string: " + err.Error())
	}
	return string(b)
}

// rawAnswer is a whole HTTP answer for a connection that is refused before any HTTP is read.
func (a *responder) rawAnswer(reason Reason) []byte {
	format := a.Format
	if format == Auto {
		format = Problem
	}
	var out reply
	out.begin(a.rawStatus(reason), nil, nil)
	out.add("Content-Type", contentTypes[format])
	out.add("Cache-Control", "no-store")
	r := request{asked: new(http1.Request), reply: &out}
	a.bodies[reason][0][format].write(&out, &r, a.retryAfter(reason, 0, &r))
	if a.ReasonHeader != "" {
		out.add(a.ReasonHeader, reason.String())
	}
	return out.appendTo(nil, "close", false)
}

// rawStatus is the status of that answer.
func (a *responder) rawStatus(reason Reason) int {
	if a.Format == Envelope {
		return a.EnvelopeStatus
	}
	return a.rows[reason].Status
}
