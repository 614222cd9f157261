package proxy

import (
	"net/url"
	"strconv"
	"time"

	"sluice/internal/octets"
	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/stockgate/ledger"
)

// idempotencyKey names an order between the client, the proxy and the upstream
// (draft-ietf-httpapi-idempotency-key-header).
const idempotencyKey = "Idempotency-Key"

// skuHeader tells the upstream what is bought.
const skuHeader = "Sluice-Sku"

// order is what the request wants to buy.
func (r *Request) order() ledger.Order {
	b := &r.buyer
	o := ledger.Order{SKU: b.sku, User: b.user, Key: b.key, Quantity: b.quantity}
	if len(b.lines) > 0 {
		o.SKU, o.Quantity, o.More, o.Cart = b.lines[0].SKU, b.lines[0].Quantity, b.lines[1:], b.cart
	}
	return o
}

// answered takes what was said of the order, and the SKU that it is about.
func (r *Request) answered(by Reservation) rejection {
	if r.reservation = by; by.SKU != nil {
		r.buyer.sku = by.SKU
	}
	r.repeatable = r.repeatable || by.Refunded
	return rejection{Reason: by.Reason, Wait: by.Wait}
}

// checkLedgerMemory asks memory alone whether the order is decided already.
func (p *Proxy) checkLedgerMemory(r *Request) rejection {
	known, decided := p.Orders.Decided(r.now, r.order())
	if !decided {
		r.lookUp = known.LookUp
		return rejection{}
	}
	return r.answered(known)
}

// checkStoredOrder looks the order up where memory did not tell.
func (p *Proxy) checkStoredOrder(r *Request) rejection {
	if !r.lookUp {
		return rejection{}
	}
	return p.lookUpEarlierOrder(r)
}

// lookUpEarlierOrder asks the store whether the order has won before. It comes before the limits of what reaches the
// upstream: a shopper of a sold-out SKU must not hold a slot.
func (p *Proxy) lookUpEarlierOrder(r *Request) rejection {
	r.conn.StepAside()
	known, decided := p.Orders.LookUp(p.Now(), r.order())
	if r.checked = p.Now(); decided {
		return r.answered(known)
	}
	return rejection{}
}

// reserve asks for the units. From Admitted on they are reserved, and release settles what became of them.
func (p *Proxy) reserve(r *Request) rejection {
	r.conn.StepAside()
	if r.route.Queue {
		return p.reserveToWait(r)
	}
	no := r.answered(p.Orders.Reserve(p.Now(), r.order()))
	r.acquired.order = r.reservation.Reason == reject.Admitted
	if r.acquired.order && r.route.room != nil {
		r.route.room.Used(r.buyer.user)
	}
	r.outcome = metrics.OrderRejected
	return no
}

// checkSchedule asks the schedule, and what the upstream's responses have taught. An order that takes stock here has
// been looked for in memory before.
func (p *Proxy) checkSchedule(r *Request) rejection {
	if lines := r.buyer.lines; len(lines) > 1 {
		for _, l := range lines[1:] {
			r.buyer.sku = l.SKU
			if no := p.skuOnSale(r); no.Reason != reject.Admitted {
				return no
			}
		}
		r.buyer.sku = lines[0].SKU
	}
	return p.skuOnSale(r)
}

func (p *Proxy) skuOnSale(r *Request) rejection {
	reserved := r.route.Gate == route.Reserve
	if p.Schedule != nil {
		if reason, wait := p.Schedule.Closed(r.checked, r.buyer.sku, reserved); reason != reject.Admitted {
			// An order of an earlier sale may be repeated, by its key. Before the start one without a key is new.
			r.repeatable = reserved && len(r.buyer.key) > 0
			return rejection{Reason: reason, Wait: wait}
		}
	}
	if p.Feedback != nil && !reserved && p.Feedback.SoldOut(r.checked, r.buyer.sku) {
		return rejection{Reason: reject.SoldOut}
	}
	return rejection{}
}

// appendOrderFields tells the upstream which order this is, until when its units are held, and that it is the proxy
// who says so.
func (p *Proxy) appendOrderFields(b []byte, r *Request) []byte {
	s := &r.reservation
	sku, quantity := r.buyer.sku, r.buyer.quantity
	if lines := r.buyer.lines; len(lines) > 0 {
		sku, quantity = appendCartText(nil, lines), unitsOf(lines)
	}
	b = octets.AppendField(b, idempotencyKey, s.Serial)
	b = octets.AppendField(b, skuHeader, sku)
	b = append(strconv.AppendInt(append(b, "Sluice-Quantity: "...), quantity, 10), "\r\n"...)
	b = append(strconv.AppendInt(append(b, "Sluice-Deadline: "...), s.Deadline, 10), "\r\n"...)
	if p.signer == nil {
		return b
	}
	b = p.signer.Append(append(b, "Sluice-Signature: "...), auth.SignedOrder{
		Method: r.head.Method, Target: r.target(), Serial: s.Serial, SKU: sku, Quantity: quantity,
		Deadline: s.Deadline,
	})
	return append(b, "\r\n"...)
}

// orderLink names where the state of the order can be asked for; "" = the order is not known.
func (r *Request) orderLink() string {
	if r.reservation.Serial == "" {
		return ""
	}
	o := r.order()
	link := orderPath + url.PathEscape(r.reservation.Serial) + "?sku=" + url.QueryEscape(string(o.SKU))
	for _, l := range o.More {
		link += "&sku=" + url.QueryEscape(string(l.SKU))
	}
	if r.route.Queue && r.proxy.Queue != nil && r.knowsOrder() {
		link += "&proof=" + r.proxy.Queue.Proof(string(r.buyer.sku), r.reservation.Serial)
	}
	return link
}

// knowsOrder reports whether this client has placed the order, now or before: it takes the units, it is the proven
// user, or it names the order's key. Another client can write the name of a user who is not proven.
func (r *Request) knowsOrder() bool {
	return r.reservation.Reason == reject.Admitted || r.reservation.ByKey || r.route.user.Proven()
}

// orderPath is where a client asks what became of its own order: GET /.sluice/orders/{serial}?sku=…
const orderPath = "/.sluice/orders/"

// answerOrderState tells the state of one order, and nothing else of it: a client that knows the serial may know that.
func (p *Proxy) answerOrderState(r *Request) rejection {
	head := r.head
	if !r.conn.Resumed() { // what it has waited for is in memory
		r.conn.StepAside()
	}
	serial, err := url.PathUnescape(string(head.Path[len(orderPath):]))
	query, fault := url.ParseQuery(string(head.Query))
	if err != nil || fault != nil || !param.ValidIdempotencyKey([]byte(serial)) || len(query["sku"]) > maxCartLines {
		return badRequest(reject.QueryInvalid, "")
	}
	sku := []byte(query.Get("sku"))
	for _, one := range query["sku"] {
		if (one != "" || len(query["sku"]) > 1) && !param.ValidSKU([]byte(one)) {
			return badRequest(reject.SKUInvalid, "sku")
		}
	}
	r.buyer.sku = sku
	if p.Queue != nil && len(sku) > 0 && len(query["sku"]) == 1 {
		return p.answerQueued(r, string(sku), serial, query.Get("proof"))
	}
	state, reason := p.Orders.State(r.now, sku, []byte(serial))
	for i := 1; i < len(query["sku"]) && reason == reject.Admitted; i++ { // the lines of one order
		var line OrderState
		line, reason = p.Orders.State(r.now, []byte(query["sku"][i]), []byte(serial))
		if outweighs(line.State, state.State) {
			state.State, state.Deadline = line.State, line.Deadline
		}
	}
	if reason != reject.Admitted {
		return rejection{Reason: reason}
	}
	p.writeOrderState(r, serial, state)
	return rejection{}
}

func (p *Proxy) writeOrderState(r *Request, serial string, s OrderState) {
	answer := struct {
		Serial   string        `json:"serial"`
		SKU      string        `json:"sku,omitempty"`
		State    ledger.Status `json:"state"`
		Deadline string        `json:"deadline,omitempty"`
	}{Serial: serial, SKU: s.SKU, State: s.State}
	if s.State == ledger.StatusHeld {
		answer.Deadline = time.UnixMilli(s.Deadline).UTC().Format(time.RFC3339Nano)
	}
	out := r.localResponse(200, "application/json")
	if s.State == ledger.StatusNone {
		out.SetStatusCode(404)
	}
	out.Header.Add("Cache-Control", "no-store")
	out.Header.Add("Vary", "Origin")
	p.responder.AllowOrigin(r.conn.Prepared(), r.head.Peek("Origin"))
	out.AppendBody(jsonLine(answer))
}
