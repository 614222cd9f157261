package proxy

import (
	"encoding/json"
	"net/url"
	"time"

	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// orderPath is where a client asks what became of its own order: GET /.sluice/orders/{serial}?sku=…
const orderPath = "/.sluice/orders/"

// answerOrderState tells the state of one order, and nothing else of it: a client that knows the serial may know that.
func (p *Proxy) answerOrderState(r *Request) rejection {
	head := &r.exchange.Request
	serial, err := url.PathUnescape(string(head.Path()[len(orderPath):]))
	query, fault := url.ParseQuery(string(head.Query()))
	if err != nil || fault != nil || !param.ValidIdempotencyKey([]byte(serial)) || len(query["sku"]) > 1 {
		return badRequest(reject.QueryInvalid, "")
	}
	sku := []byte(query.Get("sku"))
	if len(sku) > 0 && !param.ValidSKU(sku) {
		return badRequest(reject.SKUInvalid, "sku")
	}
	r.buyer.sku = sku
	if p.Queue != nil && len(sku) > 0 {
		return p.answerQueued(r, string(sku), serial, query.Get("proof"))
	}
	state, reason := p.Orders.State(r.now, sku, []byte(serial))
	if reason != reject.Admitted {
		return rejection{Reason: reason}
	}
	p.writeOrderState(r, serial, state)
	return rejection{}
}

func (p *Proxy) writeOrderState(r *Request, serial string, s OrderState) {
	answer := struct {
		Serial   string `json:"serial"`
		SKU      string `json:"sku,omitempty"`
		State    string `json:"state"`
		Deadline string `json:"deadline,omitempty"`
	}{Serial: serial, SKU: s.SKU, State: s.State}
	if s.State == "held" {
		answer.Deadline = time.UnixMilli(s.Deadline).UTC().Format(time.RFC3339Nano)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic("BUG: an order's state is no JSON: " + err.Error())
	}
	out := r.localResponse(200, "application/json")
	if s.State == "none" {
		out.Status = 404
	}
	out.Add("Cache-Control", "no-store")
	out.Add("Vary", "Origin")
	p.responder.AllowOrigin(out, r.exchange.Request.Peek("Origin"))
	out.Write(append(text, '\n'))
}
