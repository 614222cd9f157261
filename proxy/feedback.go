package proxy

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/proxy/param"
)

// SoldOutOn describes the response by which an upstream says that a SKU is sold out. What is given must all be true.
type SoldOutOn struct {
	Status []int      // any of them; nil = any status
	Header string     // a field's name; "" = none is looked for
	Value  string     // of that field; "" = any
	JSON   *JSONValue // nil = the body is not looked into
}

// recordSoldOut takes in what the upstream's response says of the SKU. Only responses to limited requests that name a
// SKU count.
func (p *Proxy) recordSoldOut(r *Request, resp *fasthttp.Response) {
	if p.Feedback == nil || len(r.buyer.sku) == 0 {
		return
	}
	if says := resp.Header.Peek(orderHeader); string(says) == "sold-out" {
		p.Feedback.Record(r.now, r.buyer.sku, r.acquired.order)
		return
	}
	if p.SoldOutOn != nil && !r.acquired.order && p.SoldOutOn.matches(resp) {
		p.Feedback.Record(r.now, r.buyer.sku, false)
	}
}

func (s *SoldOutOn) matches(resp *fasthttp.Response) bool {
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

// maxBodyToRead is the longest body that is looked into, in bytes: a longer page says more than "sold out".
const maxBodyToRead = 16 << 10

// bufferedBody is the body as far as it is in memory; nil where it is still on its way, or too long to be looked into.
func bufferedBody(resp *fasthttp.Response) (body []byte) {
	if !resp.IsBodyStream() {
		body = resp.Body()
	} else if s, ok := resp.BodyStream().(interface{ Whole() []byte }); ok {
		body = s.Whole()
	}
	if len(body) > maxBodyToRead {
		return nil
	}
	return body
}
