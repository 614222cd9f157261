package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// SoldOutOn describes the answer by which a shop says that a SKU is sold out. What is given must all be true of it.
type SoldOutOn struct {
	Status []int      // any of them; nil = any status
	Header string     // a field's name; "" = none is looked for
	Value  string     // of that field; "" = any
	JSON   *JSONValue // nil = the body is not looked into
}

// learn takes in what the shop's answer says of the SKU. Only answers to gated requests that name one count.
func (p *Proxy) learn(r *request, resp *fasthttp.Response) {
	if p.lessons == nil || len(r.sku) == 0 || !r.route.gated() {
		return
	}
	if says := resp.Header.Peek(shopOrder); string(says) == "sold-out" {
		p.lessons.Learn(r.now, r.sku, r.held)
		return
	}
	if p.soldOutOn != nil && !r.held && p.soldOutOn.is(resp) {
		p.lessons.Learn(r.now, r.sku, false)
	}
}

func (s *SoldOutOn) is(resp *fasthttp.Response) bool {
	if len(s.Status) > 0 && !contains(s.Status, resp.StatusCode()) {
		return false
	}
	if s.Header != "" {
		v := resp.Header.Peek(s.Header)
		if v == nil || s.Value != "" && !bytes.Equal(v, []byte(s.Value)) {
			return false
		}
	}
	return s.JSON == nil || s.JSON.in(wholeBody(resp))
}

func contains(list []int, n int) bool {
	for _, v := range list {
		if v == n {
			return true
		}
	}
	return false
}

// mostRead is the longest body that is looked into, in bytes: a page that is longer says more than "sold out".
const mostRead = 16 << 10

// wholeBody is the body as far as it is in memory; nil where it is still on its way, or too long to be looked into.
func wholeBody(resp *fasthttp.Response) (body []byte) {
	if !resp.IsBodyStream() {
		body = resp.Body()
	} else if s, ok := resp.BodyStream().(interface{ Whole() []byte }); ok {
		body = s.Whole()
	}
	if len(body) > mostRead {
		return nil
	}
	return body
}

// in reports whether body has one of the values in its place.
func (j *JSONValue) in(body []byte) bool {
	if len(body) == 0 {
		return false
	}
	parsed, err := fastjson.ParseBytes(body)
	if err != nil {
		return false
	}
	v, reason := walkJSON(parsed, j.Keys)
	if v == nil || reason != Admitted {
		return false
	}
	found := string(v.MarshalTo(nil))
	for _, want := range j.Values {
		if found == want {
			return true
		}
	}
	return false
}
