package proxy

import (
	"encoding/json"
	"net/url"
	"time"
)

// statePath is where a client asks what became of its own order: GET /.sluice/orders/{serial}?sku=…
const statePath = "/.sluice/orders/"

// answerState tells the state of one order, and nothing else of it: whoever knows the serial may know that.
func (p *Proxy) answerState(r *request) (reason Reason, wait time.Duration) {
	r.conn.StepAside()
	path, query := splitTarget(r.asked.Target())
	r.path = path
	serial, err := url.PathUnescape(string(path[len(statePath):]))
	asked, fault := url.ParseQuery(string(query))
	if err != nil || fault != nil || !validKey([]byte(serial)) || len(asked["sku"]) > 1 {
		return BadRequest, 0
	}
	r.sku = []byte(asked.Get("sku"))
	if len(r.sku) > 0 && !ValidSKU(r.sku) {
		r.sku = nil
		return BadRequest, 0
	}
	state, reason := p.orders.State(r.now, r.sku, []byte(serial))
	if reason != Admitted {
		return reason, 0
	}
	p.writeState(r, serial, state)
	return Admitted, 0
}

func (p *Proxy) writeState(r *request, serial string, s OrderState) {
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
	out := r.answer(200, "application/json")
	if s.State == "none" {
		out.status = 404
	}
	out.add("Cache-Control", "no-store")
	out.add("Vary", "Origin")
	if p.answers.CORS {
		p.answers.allowOrigin(r)
	}
	out.sayBytes(append(text, '\n'))
}
