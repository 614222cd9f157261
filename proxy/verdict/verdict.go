// Package verdict reads from the upstream's response what became of an order, and whether the SKU is sold out.
package verdict

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
	"sluice/proxy/param"
)

// Rules say by which responses the upstream tells what became of an order. Units stay reserved where it tells
// nothing.
type Rules struct {
	ConfirmOn []string // statuses like "2xx" or "201"
	ReleaseOn []string
	// ConfirmJSON, where given, is a place in the body that must hold one of Values beside a status of ConfirmOn. A body
	// that holds another value there says that there is no order.
	ConfirmJSON *JSONValue
}

// JSONValue is a place in a JSON body, like "data.code", and what may stand there, as JSON.
type JSONValue struct {
	Keys   []string
	Values []string
}

// OrderHeader is the header by which the upstream says itself what became of an order. It is removed from responses,
// but on pass routes.
const OrderHeader = "Sluice-Order"

// Outcome reads the upstream's response. Its own word counts most; two different ones count for nothing.
func (s *Rules) Outcome(resp *fasthttp.Response) metrics.OrderOutcome {
	if words := resp.Header.PeekAll(OrderHeader); len(words) > 0 {
		return statedOutcome(words)
	}
	status := resp.StatusCode()
	switch {
	case listed(s.ConfirmOn, status):
		return s.confirmed(resp.Body())
	case listed(s.ReleaseOn, status):
		return metrics.OrderRejected
	}
	return metrics.OrderUnknown
}

func statedOutcome(words [][]byte) metrics.OrderOutcome {
	for _, w := range words[1:] {
		if !bytes.Equal(w, words[0]) {
			return metrics.OrderUnknown
		}
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
func (s *Rules) confirmed(body []byte) metrics.OrderOutcome {
	if s.ConfirmJSON == nil {
		return metrics.OrderConfirmed
	}
	found := param.JSONText(body, s.ConfirmJSON.Keys)
	switch {
	case found == nil:
		return metrics.OrderUnknown
	case s.ConfirmJSON.holds(found):
		return metrics.OrderConfirmed
	}
	return metrics.OrderRejected
}

// holds reports whether found, as JSON, is one of the values.
func (j *JSONValue) holds(found []byte) bool {
	return slices.ContainsFunc(j.Values, func(want string) bool { return want == string(found) })
}

// listed reports whether list has a status, or its class.
func listed(list []string, status int) bool {
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

// SoldOut describes the response by which an upstream says that a SKU is sold out. What is given must all be true.
type SoldOut struct {
	Status []int      // any of them; nil = any status
	Header string     // a field's name; "" = none is looked for
	Value  string     // of that field; "" = any
	JSON   *JSONValue // nil = the body is not looked into
}

// Matches reports whether a response is the one.
func (s *SoldOut) Matches(resp *fasthttp.Response) bool {
	if len(s.Status) > 0 && !slices.Contains(s.Status, resp.StatusCode()) {
		return false
	}
	if s.Header != "" {
		v := resp.Header.Peek(s.Header)
		if v == nil || s.Value != "" && !bytes.Equal(v, []byte(s.Value)) {
			return false
		}
	}
	if s.JSON == nil {
		return true
	}
	found := param.JSONText(bufferedBody(resp), s.JSON.Keys)
	return found != nil && s.JSON.holds(found)
}

// MaxBody is the longest body that is looked into, in bytes: a longer page says more than "sold out".
const MaxBody = 16 << 10

// bufferedBody is the body as far as it is in memory; nil where it is still on its way, or too long to be looked into.
func bufferedBody(resp *fasthttp.Response) (body []byte) {
	if !resp.IsBodyStream() {
		body = resp.Body()
	} else if s, ok := resp.BodyStream().(interface{ Whole() []byte }); ok {
		body = s.Whole()
	}
	if len(body) > MaxBody {
		return nil
	}
	return body
}

// SaysSoldOut reports whether the upstream says in so many words that it has no unit for the order.
func SaysSoldOut(resp *fasthttp.Response) bool {
	return string(resp.Header.Peek(OrderHeader)) == "sold-out"
}
