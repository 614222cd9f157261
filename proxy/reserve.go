package proxy

import (
	"net/url"
	"strconv"
)

// idempotencyKey names an order between the client, the gate and the shop
// (draft-ietf-httpapi-idempotency-key-header).
const idempotencyKey = "Idempotency-Key"

// order is what the request wants to buy.
func (r *request) order() Order {
	return Order{SKU: r.sku, User: r.user, Key: r.key, Quantity: r.quantity}
}

// closed asks memory alone whether the order is decided already.
func (p *Proxy) closed(r *request) Reason {
	t, closed := p.orders.Closed(r.now, r.order())
	if !closed {
		return Admitted
	}
	r.taken = t
	return t.Reason
}

// take asks for the units. From Admitted on they are held, and leave settles what became of them.
func (p *Proxy) take(r *request) Reason {
	r.taken = p.orders.Take(p.clock(), r.order())
	r.held, r.fate = r.taken.Reason == Admitted, Dropped
	return r.taken.Reason
}

// settle says what became of an order that was held, once, whatever happened on the way.
func (p *Proxy) settle(r *request) {
	if r.held {
		r.held = false
		p.orders.Settle(r.sku, r.taken.Serial, r.fate)
	}
}

// appendOrder tells the shop which order this is, until when its units are held, and that it is the gate who says so.
func (p *Proxy) appendOrder(dst []byte, r *request) []byte {
	serial, sku := []byte(r.taken.Serial), r.sku
	dst = appendField(dst, []byte(idempotencyKey), serial)
	dst = appendField(dst, []byte("Sluice-Sku"), sku)
	dst = append(strconv.AppendInt(append(dst, "Sluice-Quantity: "...), r.quantity, 10), "\r\n"...)
	dst = append(strconv.AppendInt(append(dst, "Sluice-Deadline: "...), r.taken.Deadline, 10), "\r\n"...)
	if p.signer == nil {
		return dst
	}
	dst = p.signer.append(append(dst, "Sluice-Signature: "...), signed{
		method: r.method, target: r.target(), serial: r.taken.Serial, sku: sku, quantity: r.quantity, deadline: r.taken.Deadline,
	})
	return append(dst, "\r\n"...)
}

// target is the request-target that the shop sees, out of the line that was built for it.
func (r *request) target() []byte { return r.line[len(r.method)+1 : len(r.line)-len(" HTTP/1.1\r\n")] }

// link names where the state of the order can be asked for.
func (r *request) link() string {
	if r.taken.Serial == "" {
		return ""
	}
	return statePath + url.PathEscape(r.taken.Serial) + "?sku=" + url.QueryEscape(string(r.sku))
}
