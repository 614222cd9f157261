package proxy

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
)

// OutcomeRules say by which responses the upstream tells what became of an order. A response that does not say so for
// certain decides nothing: the order's outcome is unknown then, and its units stay held.
type OutcomeRules struct {
	ConfirmOn []string // statuses like "2xx" or "201"
	ReleaseOn []string // "4xx" is without 408, which tells nothing
	// ConfirmJSON, where given, is a place in the body that must hold one of Values beside a status of ConfirmOn. A body
	// that holds another value of the same type there says that there is no order. Anything else says nothing.
	ConfirmJSON *JSONValue
	Unread      *UnreadBodies // counts compressed bodies; nil = they are not counted
}

// ByBody reports whether the body of a response decides.
func (o *OutcomeRules) ByBody() bool { return o.ConfirmJSON != nil }

// OrderHeader is the header by which the upstream says itself what became of an order. It is removed from responses,
// but on pass routes.
const OrderHeader = "Sluice-Order"

// Outcome reads the upstream's response. Its own word counts most; two different ones count for nothing.
func (o *OutcomeRules) Outcome(resp *fasthttp.Response) metrics.OrderOutcome {
	if words := resp.Header.PeekAll(OrderHeader); len(words) > 0 {
		return statedOutcome(words)
	}
	status := resp.StatusCode()
	switch {
	case listsStatus(o.ConfirmOn, status):
		return o.confirmed(resp)
	case status == fasthttp.StatusRequestTimeout && !slices.Contains(o.ReleaseOn, "408"):
		// A server that gave up waiting says nothing of what it did: "4xx" does not mean this one.
	case listsStatus(o.ReleaseOn, status):
		return metrics.OrderRejected
	}
	return metrics.OrderUnknown
}

func statedOutcome(words [][]byte) metrics.OrderOutcome {
	if !linesAgree(words) {
		return metrics.OrderUnknown
	}
	switch string(words[0]) {
	case "confirmed":
		return metrics.OrderConfirmed
	case "released", "sold-out":
		return metrics.OrderRejected
	}
	return metrics.OrderUnknown
}

// confirmed looks into the body where the status alone does not tell.
func (o *OutcomeRules) confirmed(resp *fasthttp.Response) metrics.OrderOutcome {
	if o.ConfirmJSON == nil {
		return metrics.OrderConfirmed
	}
	if o.Unread.compressed(resp) {
		return metrics.OrderUnknown
	}
	switch o.ConfirmJSON.compare(resp.Body()) {
	case oneOfThem:
		return metrics.OrderConfirmed
	case another:
		return metrics.OrderRejected
	}
	return metrics.OrderUnknown
}

// listsStatus reports whether list has a status, or its class.
func listsStatus(list []string, status int) bool {
	if status < 100 || status > 999 {
		return false
	}
	text := [3]byte{'0' + byte(status/100), '0' + byte(status/10%10), '0' + byte(status%10)}
	for _, s := range list {
		if len(s) == 3 && s[0] == text[0] && (s[1:] == "xx" || s[1:] == string(text[1:])) {
			return true
		}
	}
	return false
}

// SoldOutAnswer describes the response by which an upstream says that a SKU is sold out. What is given must all be
// true.
type SoldOutAnswer struct {
	Status []int         // any of them; nil = any status
	Header string        // a field's name; "" = none is looked for
	Value  string        // of that field; "" = any
	JSON   *JSONValue    // nil = the body is not looked into
	Unread *UnreadBodies // counts compressed bodies; nil = they are not counted
}

// ByBody reports whether the body of a response decides; s may be nil.
func (s *SoldOutAnswer) ByBody() bool { return s != nil && s.JSON != nil }

// Matches reports whether a response is the one.
func (s *SoldOutAnswer) Matches(resp *fasthttp.Response) bool {
	if len(s.Status) > 0 && !slices.Contains(s.Status, resp.StatusCode()) {
		return false
	}
	if s.Header != "" && !s.hasHeader(resp.Header.PeekAll(s.Header)) {
		return false
	}
	if s.JSON == nil {
		return true
	}
	return !s.Unread.compressed(resp) && s.JSON.compare(bufferedBody(resp)) == oneOfThem
}

// hasHeader reports whether each line of the field has the value: two different ones say nothing.
func (s *SoldOutAnswer) hasHeader(lines [][]byte) bool {
	for _, line := range lines {
		if s.Value != "" && string(line) != s.Value {
			return false
		}
	}
	return len(lines) > 0
}

// maxVerdictBody is the longest body that is looked into, in bytes: a longer page says more than "sold out".
const maxVerdictBody = 16 << 10

// bufferedBody is the body as far as it is in memory; nil where it is still on its way, or too long to be looked into.
func bufferedBody(resp *fasthttp.Response) (body []byte) {
	if !resp.IsBodyStream() {
		body = resp.Body()
	} else if s, ok := resp.BodyStream().(interface{ Whole() []byte }); ok {
		body = s.Whole()
	}
	if len(body) > maxVerdictBody {
		return nil
	}
	return body
}

// linesAgree reports whether all lines of a field are the same.
func linesAgree(words [][]byte) bool {
	for _, w := range words[1:] {
		if !bytes.Equal(w, words[0]) {
			return false
		}
	}
	return true
}

// recordSoldOut takes in what the upstream's response says of the SKU. Only responses to limited requests that name a
// SKU count.
func (p *Proxy) recordSoldOut(r *Request, resp *fasthttp.Response) {
	if p.Feedback == nil || len(r.buyer.sku) == 0 || len(r.buyer.lines) > 1 {
		return
	}
	if words := resp.Header.PeekAll(OrderHeader); len(words) > 0 && string(words[0]) == "sold-out" && linesAgree(words) {
		p.Feedback.Record(r.now, r.buyer.sku, r.acquired.order)
		return
	}
	if p.SoldOutOn != nil && !r.acquired.order && p.SoldOutOn.Matches(resp) {
		p.Feedback.Record(r.now, r.buyer.sku, false)
	}
}
