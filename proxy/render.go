package proxy

import (
	"encoding/json"
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
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
)

// Placeholders that no configured text can hold: control characters are refused there.
const (
	idMark    = "\x01"
	waitMark  = "\x02"
	skuMark   = "\x03"
	orderMark = "\x04"
)

func newBody(text string) (b body) {
	for text != "" {
		i := strings.IndexAny(text, idMark+waitMark+skuMark+orderMark)
		if i < 0 {
			i = len(text)
		}
		p := piece{text: []byte(text[:i])}
		text = text[i:]
		if text != "" {
			p.gap = gap(text[0])
			text = text[1:]
		}
		b.pieces = append(b.pieces, p)
	}
	return b
}

// write splices what differs into the fixed text. Id and SKU are of characters that need no escaping in JSON or HTML.
func (b *body) write(resp *fasthttp.Response, r *request, wait int) {
	for i := range b.pieces {
		resp.AppendBody(b.pieces[i].text)
		switch b.pieces[i].gap {
		case idGap:
			resp.AppendBody(r.id)
		case waitGap:
			r.number = strconv.AppendInt(r.number[:0], int64(wait), 10)
			resp.AppendBody(r.number)
		case skuGap:
			resp.AppendBody(safe(r.sku))
		case orderGap:
			resp.AppendBodyString(r.link())
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
	for _, tag := range in.Languages {
		for l, known := range languageTags {
			if tag == known {
				a.served = append(a.served, language(l))
			}
		}
	}
	if len(a.served) == 0 {
		return a, fmt.Errorf("languages %q: none of them is served; en and zh-CN are", in.Languages)
	}
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
	for lang := range numLanguages {
		title := row.title[lang]
		a.bodies[reason][lang] = a.inEachFormat(reason, answer, lang, title, reason.detail(lang))
		a.cautious[reason][lang] = a.bodies[reason][lang]
		if !reason.mayHavePlaced() {
			a.cautious[reason][lang] = a.inEachFormat(reason, answer, lang, title, oneOnly[lang])
		}
	}
}

func (a *responder) inEachFormat(reason Reason, answer Answer, lang language, title, detail string) (all [Envelope + 1]body) {
	if !reason.mayHavePlaced() && answer.RetryAfter > 0 {
		detail += " " + comeBack[lang]
	}
	all[HTML] = newBody(page(lang, title, detail))
	all[Problem] = newBody(problem(reason, answer, title, detail))
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

// page stands alone: no script, no request for anything else, light and dark.
func page(lang language, title, detail string) string {
	return fmt.Sprintf(pageText, languageTags[lang], html.EscapeString(title), html.EscapeString(detail))
}

const pageText = `<!doctype html>
<html lang="%[1]s"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>%[2]s</title>
<style>:root{color-scheme:light dark}body{font:17px/1.6 system-ui,sans-serif;display:grid;place-content:center;min-height:90vh;margin:0 1.5rem;text-align:center}h1{font-size:1.6rem;margin:0 0 .5rem}p{margin:.3rem 0}small{opacity:.65}</style></head>
<body><main role="status"><h1>%[2]s</h1><p>%[3]s</p><small>` + idMark + `</small></main></body></html>
`

// rawAnswer is a whole HTTP answer for a connection that is refused before any HTTP is read.
func (a *responder) rawAnswer(reason Reason) []byte {
	format := a.Format
	if format == Auto {
		format = Problem
	}
	var resp fasthttp.Response
	quiet(&resp)
	resp.Header.SetNoDefaultContentType(true)
	resp.SetStatusCode(a.rawStatus(reason))
	r := request{ctx: &fasthttp.RequestCtx{}}
	seconds := a.retryAfter(reason, 0, &r)
	a.bodies[reason][a.served[0]][format].write(&resp, &r, seconds)
	resp.Header.SetContentType(contentTypes[format])
	resp.Header.Set("Cache-Control", "no-store")
	if seconds > 0 {
		resp.Header.Set("Retry-After", strconv.Itoa(seconds))
	}
	if a.ReasonHeader != "" {
		resp.Header.Set(a.ReasonHeader, reason.String())
	}
	resp.SetConnectionClose()
	return []byte(resp.String())
}

// rawStatus is the status of that answer.
func (a *responder) rawStatus(reason Reason) int {
	if a.Format == Envelope {
		return a.EnvelopeStatus
	}
	return a.rows[reason].Status
}
