package proxy

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"

	"sluice/internal/octets"
	"sluice/limiter"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// checkIdentity finds out who buys what. A request without its SKU or quantity is a bad one; one without its user comes
// from a client that has not signed in.
func (p *Proxy) checkIdentity(r *Request) rejection {
	if h := r.head; h.Upgrade && !h.H2C {
		return badRequest(reject.UpgradeOnGate, "") // an order is one request and one response, not a tunnel
	}
	r.source.ClientAddr = r.clientAddr()
	if no := p.readBodyToCheck(r); no.Reason != reject.Admitted {
		return no
	}
	if no := p.findSKU(r); no.Reason != reject.Admitted {
		return no
	}
	if no := p.findUser(r); no.Reason != reject.Admitted {
		return no
	}
	if r.route.Gate == route.Reserve {
		return p.findOrder(r)
	}
	return rejection{}
}

func (p *Proxy) findSKU(r *Request) rejection {
	v := &r.route.sku
	if v.Empty() {
		return rejection{}
	}
	if v.IsList() {
		lines, fault := findCart(v, &r.route.quantity, &r.source, p.MaxQuantity)
		if fault.Reason == reject.Admitted && !r.route.OneSource {
			fault = v.CheckOtherPlace(&r.source)
		}
		if fault.Reason != reject.Admitted {
			return rejected(fault)
		}
		for _, l := range lines {
			if !r.route.takesSKU(l.SKU) {
				return badRequest(reject.SKUInvalid, v.String())
			}
		}
		r.buyer.sku, r.buyer.quantity, r.buyer.lines = lines[0].SKU, lines[0].Quantity, lines
		r.buyer.cart = cartDigest(lines)
		return rejection{}
	}
	sku, fault := r.valueOf(v)
	switch {
	case fault.Reason != reject.Admitted:
		return rejected(fault)
	case len(sku) == 0:
		return badRequest(reject.SKUMissing, v.String())
	case !param.ValidSKU(sku) || !r.route.takesSKU(sku):
		return badRequest(reject.SKUInvalid, v.String())
	}
	r.buyer.sku = sku
	return rejection{}
}

// valueOf is the value of v, where no other place of the request contradicts it.
func (r *Request) valueOf(v *param.Variable) ([]byte, param.Fault) {
	value, fault := v.Value(&r.source)
	if fault.Reason == reject.Admitted && len(value) > 0 && !r.route.OneSource {
		fault = v.CheckOtherPlace(&r.source)
	}
	return value, fault
}

// takesSKU reports whether the route's orders may name the SKU, which is valid.
func (rt *boundRoute) takesSKU(sku []byte) bool { return !rt.DigitsOnly || octets.Length(sku) >= 0 }

func (p *Proxy) findUser(r *Request) (no rejection) {
	if r.route.user.Empty() {
		return rejection{}
	}
	if r.buyer.user, no = userBy(&r.route.user, &r.source); no.Reason == reject.Admitted && !r.route.OneSource {
		no = rejected(r.route.user.CheckOtherPlace(&r.source))
	}
	return no
}

// userBy finds the user that v names.
func userBy(v *param.Variable, s *param.Source) ([]byte, rejection) {
	user, fault := v.Value(s)
	switch {
	case fault.Reason != reject.Admitted:
		return nil, rejected(fault)
	case len(user) == 0:
		return nil, unidentified(cmp.Or(fault.Detail.Cause, reject.UserMissing), v.String())
	case !param.ValidUser(user):
		return nil, badRequest(reject.UserInvalid, v.String())
	}
	return user, rejection{}
}

// checkRequirement compares values of the request with the conditions of its route. A request that lacks one of them
// has not shown who it comes from.
func (p *Proxy) checkRequirement(r *Request) rejection {
	for i := range r.route.require {
		c := &r.route.require[i]
		switch value, fault := c.Variable().Value(&r.source); {
		case fault.Reason != reject.Admitted:
			return rejected(fault)
		case len(value) == 0:
			return unidentified(cmp.Or(fault.Detail.Cause, reject.ValueMissing), c.Variable().String())
		case !c.MetBy(value):
			return rejection{Reason: reject.Denied, Detail: reject.Detail{Cause: reject.ConditionUnmet, Operand: c.String()}}
		}
	}
	return rejection{}
}

// quantityFault says why amount is no quantity that one order may ask for.
func quantityFault(amount []byte, v *param.Variable, max int64) param.Fault {
	if _, whole := param.ParseQuantity(amount, 0); whole {
		return overMax(max)
	}
	return lineFault(reject.QuantityInvalid, v)
}

func overMax(max int64) param.Fault {
	return param.Fault{Reason: reject.BadRequest,
		Detail: reject.Detail{Cause: reject.QuantityOverMax, Operand: strconv.FormatInt(max, 10)}}
}

// findOrder finds out how many units are bought, and by which key the client knows its order.
func (p *Proxy) findOrder(r *Request) rejection {
	if v := &r.route.quantity; !v.IsList() {
		amount, fault := r.valueOf(v)
		switch {
		case fault.Reason != reject.Admitted:
			return rejected(fault)
		case len(amount) == 0:
			return badRequest(reject.QuantityMissing, v.String())
		}
		var ok bool
		if r.buyer.quantity, ok = param.ParseQuantity(amount, p.MaxQuantity); !ok {
			return rejected(quantityFault(amount, v, p.MaxQuantity))
		}
	}
	var fault param.Fault
	if r.buyer.key, fault = r.source.Header(idempotencyKey); fault.Reason != reject.Admitted {
		return rejected(fault)
	}
	if r.buyer.key != nil && !param.ValidIdempotencyKey(r.buyer.key) {
		return badRequest(reject.KeyInvalid, "")
	}
	return rejection{}
}

// readBodyToCheck reads the whole body if a variable looks into it, or if it could contradict the query.
// A large one is not asked for while no slot could take the request.
func (p *Proxy) readBodyToCheck(r *Request) rejection {
	if r.asked {
		return r.checkQuestion()
	}
	if !r.route.readBody && !r.route.readForm {
		return rejection{}
	}
	if r.head.ContentLength > limiter.SmallBody && !r.bypass {
		if no := p.queueFull(r); no.Reason != reject.Admitted {
			return no
		}
	}
	if no := p.readBody(r); no.Reason != reject.Admitted {
		return no
	}
	if len(r.source.Body) == 0 || !r.route.readBody {
		return rejection{}
	}
	return rejected(r.source.CheckBody())
}

// rejected is the rejection of a request in which a parameter cannot be found.
func rejected(f param.Fault) rejection { return rejection{Reason: f.Reason, Detail: f.Detail} }

func badRequest(cause reject.Cause, operand string) rejection {
	return rejection{Reason: reject.BadRequest, Detail: reject.Detail{Cause: cause, Operand: operand}}
}

func unidentified(cause reject.Cause, operand string) rejection {
	return rejection{Reason: reject.Unidentified, Detail: reject.Detail{Cause: cause, Operand: operand}}
}

// ensureRequestID keeps the request id that came along when it is fit for a header and a log line; else it makes one.
func (p *Proxy) ensureRequestID(r *Request) {
	if p.RequestIDHeader == "" {
		return
	}
	if id := r.head.Peek(p.RequestIDHeader); param.ValidRequestID(id) {
		r.id = id
		return
	}
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	r.scratch.id = hex.AppendEncode(r.scratch.id[:0], id[:])
	r.id = r.scratch.id
}
