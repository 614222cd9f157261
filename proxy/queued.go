package proxy

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice/internal/octets"
	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// Queue is the orders that wait until they are delivered. Orders reserves their units.
type Queue interface {
	// Accept is what Order.Request is for an order that comes now.
	Accept(m *QueuedRequest) string

	// Accepted says that an order waits now, and tells its place as far as that is known.
	Accepted(sku, serial string) WaitingOrder

	// Proof is what a client shows to see the upstream's answer, or to cancel: it was told of the order. "" = it cannot
	// be told now: no client has it.
	Proof(sku, serial string) string

	// Find tells where an order is: Admitted, or why that cannot be told. The client may be suspended for up to wait,
	// until the state is another, while there is room for those who wait: then nothing else counts.
	Find(sku, serial string, wait time.Duration, client server.Client) (_ WaitingOrder, suspended bool,
		_ reject.Reason)

	// Cancel releases an order while it waits, and tells its state then; late reports that it was handed over before.
	Cancel(sku, serial string) (o WaitingOrder, late bool, reason reject.Reason)
}

// maxWait is how long a client may wait for another state.
const maxWait = 20 * time.Second

// reserveToWait asks for the units of an order that waits from then on. Nothing is owed for it: it is settled when it
// was delivered.
func (p *Proxy) reserveToWait(r *Request) rejection {
	order := r.order()
	order.Request = p.Queue.Accept(p.waitingRequest(r))
	if int64(len(order.Request)) > p.MaxWaiting {
		return bodyRejection(errBodyTooLarge)
	}
	r.reservation = p.Orders.Reserve(p.Now(), order)
	if r.reservation.Reason == reject.Admitted && r.route.room != nil {
		r.route.room.Used(r.buyer.user)
	}
	return rejection{Reason: r.reservation.Reason, Wait: r.reservation.Wait}
}

// waitingRequest is the request as it would be forwarded now, with the fields that are kept.
func (p *Proxy) waitingRequest(r *Request) *QueuedRequest {
	p.edit(r)
	head := r.head
	m := &QueuedRequest{Method: string(head.Method), Target: string(r.target()),
		HasBody: head.Chunked || head.ContentLength >= 0, Body: string(r.source.Body)}
	_, lines, _ := bytes.Cut(r.attempt.request.AppendHead(nil, nil), []byte("\r\n"))
	m.Fields = waitingFields(lines, p.RequestIDHeader)
	return m
}

// answerAccepted answers an order that waits: 202, and where its state can be asked for.
func (p *Proxy) answerAccepted(r *Request) {
	o := p.Queue.Accepted(string(r.buyer.sku), r.reservation.Serial)
	o.Deadline = r.reservation.Deadline
	p.writeOrder(r, &o, 202)
	link, out := r.orderLink(), &r.ctx.Response
	out.Header.Add("Location", link)
	out.Header.Add("Link", "<"+link+`>; rel="status"`)
	p.appendRateFields(r)
}

// writeOrder answers with the state of an order.
func (p *Proxy) writeOrder(r *Request, o *WaitingOrder, status int) {
	head := r.head
	page := bytes.Contains(head.Peek("Accept"), textHTML)
	contentType := "application/json"
	if page {
		contentType = "text/html; charset=utf-8"
	}
	out := r.localResponse(status, contentType)
	out.Header.Add("Cache-Control", "no-store")
	out.Header.Add("Vary", "Accept, Accept-Language, Origin")
	p.responder.AllowOrigin(r.conn.Prepared(), head.Peek("Origin"))
	if o.Pending() {
		out.Header.Add("Retry-After", strconv.FormatInt(int64(o.Again().Seconds()), 10))
	}
	if !page {
		out.AppendBody(o.AppendJSON(nil))
		return
	}
	if link := orderPath + url.PathEscape(o.Serial) + "?sku=" + url.QueryEscape(o.SKU); o.Pending() {
		if proof := r.proofOf(o); proof != "" {
			link += "&proof=" + proof
		}
		out.Header.Add("Refresh", fmt.Sprintf("%d; url=%s", int64(o.Again().Seconds()), link))
	}
	zh := len(p.Responses.Languages) > 0 && strings.HasPrefix(p.Responses.Languages[0], "zh")
	out.AppendBody(o.AppendPage(nil, string(head.Peek("Accept-Language")), zh))
}

// proofOf is the proof that the client of this request has, or is told now.
func (r *Request) proofOf(o *WaitingOrder) string {
	if r.reservation.Serial == o.Serial || r.proven {
		return r.proxy.Queue.Proof(o.SKU, o.Serial)
	}
	return ""
}

// findOwners finds how the users of orders that wait are proven: the same way on all routes, or none is.
func (p *Proxy) findOwners() {
	for i := range p.routes {
		switch rt := &p.routes[i]; {
		case !rt.Queue:
		case !rt.user.Proven(), p.owners != nil && p.owners.String() != rt.user.String():
			p.owners = nil
			return
		default:
			p.owners = &rt.user
		}
	}
}

// isOwner reports whether the client proves that it is the user of an order.
func (r *Request) isOwner(user string) bool {
	if r.proxy.owners == nil || user == "" {
		return false
	}
	by, fault := r.proxy.owners.Value(&r.source)
	return fault.Reason == reject.Admitted && string(by) == user
}

// answerQueued tells the state of an order that may wait, or cancels it. The upstream's answer and the right to cancel
// are for its proven user, and for clients that were told of the order: a key alone can be guessed.
func (p *Proxy) answerQueued(r *Request, sku, serial, proof string) rejection {
	head := r.head
	want := p.Queue.Proof(sku, serial)
	r.proven = want != "" && subtle.ConstantTimeCompare([]byte(proof), []byte(want)) == 1
	cancels := string(head.Method) == "DELETE"
	if cancels && r.proven {
		return p.cancelQueued(r, sku, serial)
	}
	wait := octets.PreferredWait(head.Peek("Prefer"), maxWait)
	if cancels {
		wait = 0
	}
	o, suspended, reason := p.Queue.Find(sku, serial, wait, r.conn)
	if r.suspended = suspended; suspended || reason != reject.Admitted {
		return rejection{Reason: reason}
	}
	r.proven = r.proven || r.isOwner(o.User)
	switch {
	case cancels:
		return p.cancelQueued(r, sku, serial)
	case !r.proven:
		o.Answer = KeptAnswer{}
	}
	status := 200
	if o.State == "none" {
		status = 404
	}
	if a := &o.Answer; a.Status >= 200 && !a.TooLong && bytes.Contains(head.Peek("Accept"), textHTML) {
		server.Begin(&r.ctx.Response, a.Status)
		r.ctx.Response.Header.Add("Cache-Control", "no-store")
		writeKeptAnswer(&r.ctx.Response, a)
		r.discardBody()
		return rejection{}
	}
	p.writeOrder(r, &o, status)
	if wait > 0 {
		r.ctx.Response.Header.Add("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	}
	return rejection{}
}

// cancelQueued ends an order while it waits. 409: it was handed over.
func (p *Proxy) cancelQueued(r *Request, sku, serial string) rejection {
	if !r.proven {
		return rejection{Reason: reject.Denied, Detail: reject.Detail{Cause: reject.ValueMissing, Operand: "proof"}}
	}
	o, late, reason := p.Queue.Cancel(sku, serial)
	if reason != reject.Admitted {
		return rejection{Reason: reason}
	}
	status := 200
	switch {
	case o.State == "none":
		status = 404
	case late:
		status = 409
	}
	p.writeOrder(r, &o, status)
	return rejection{}
}

// keptFields are the header fields that wait with an order, beside those that describe its body: no more than the
// upstream needs to place it.
var keptFields = [...]string{"Host", "Accept", "Accept-Language", "Authorization", "Cookie", "Origin",
	"Referer", "User-Agent", "X-Csrf-Token", "X-Requested-With", "X-Xsrf-Token", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "Via"}

// waitingFields are those of the header lines of a request that wait with it. requestID names one more; "" = none.
func waitingFields(lines []byte, requestID string) (kept []KeptField) {
	for len(lines) > len("\r\n") {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		if name, value := octets.Cut(line, ':'); isKeptField(name, requestID) {
			kept = append(kept, KeptField{Name: string(name), Value: string(octets.Trim(value))})
		}
	}
	return kept
}

func isKeptField(name []byte, requestID string) bool {
	for _, kept := range keptFields {
		if octets.EqualFold(name, kept) {
			return true
		}
	}
	if octets.HasPrefixFold(name, "Content-") { // the body is kept as it came, and its length is told anew
		return !octets.EqualFold(name, "Content-Length")
	}
	return requestID != "" && octets.EqualFold(name, requestID)
}
