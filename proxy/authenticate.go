package proxy

import (
	"strconv"

	"sluice/internal/octets"
	"sluice/proxy/auth"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// proven is the route as the keys see it.
func (rt *boundRoute) proven() auth.Route {
	return auth.Route{Name: rt.Name, Variables: rt.variables(), SKU: &rt.sku, User: &rt.user, UserText: rt.User,
		OrderToken: rt.OrderToken, Pass: rt.Gate == route.Pass}
}

func provenOn(routes []boundRoute) (all []auth.Route) {
	for i := range routes {
		all = append(all, routes[i].proven())
	}
	return all
}

// orderTokenHeader is where an order carries its token. It is not passed on.
const orderTokenHeader = "Sluice-Token"

// checkOrderToken rejects an order without its token, where the route wants one.
func (p *Proxy) checkOrderToken(r *Request) rejection {
	token, fault := r.source.Header(orderTokenHeader)
	if fault.Reason != reject.Admitted {
		return rejected(fault)
	}
	if !p.auth.Orders.Valid(token, r.buyer.sku, r.buyer.user, p.sharedTime(r.now)) {
		return rejection{Reason: reject.Token}
	}
	return rejection{}
}

// sharedTime is now in Unix ms, by the clock that all instances share where there is one.
func (p *Proxy) sharedTime(now int64) int64 {
	if p.Availability != nil {
		return p.Availability.Time(now)
	}
	return p.auth.Now().UnixMilli()
}

// wantsOrderToken reports a question for the token of an order beside the stock.
func (p *Proxy) wantsOrderToken(query []byte) bool {
	for p.auth.Orders != nil && len(query) > 0 {
		var field []byte
		field, query = octets.Cut(query, '&')
		if string(field) == "token=1" {
			return true
		}
	}
	return false
}

// appendOrderToken appends the token for the user who asks, from the start of the sale on and to its end.
func (p *Proxy) appendOrderToken(dst []byte, r *Request, phase StockPhase) []byte {
	if phase != PhaseInStock && phase != PhaseSoldOut { // what is sold out may come back
		return dst
	}
	for i := range p.routes {
		if !p.routes[i].OrderToken {
			continue
		}
		r.source.ClientAddr = r.clientAddr()
		user, fault := p.routes[i].user.Value(&r.source)
		if fault.Reason != reject.Admitted || !param.ValidUser(user) {
			return dst
		}
		dst = append(dst, `,"token":"`...)
		return append(p.auth.Orders.Append(dst, r.buyer.sku, user, p.sharedTime(r.now)), '"')
	}
	return dst
}

// writeOrderToken sends the answer in r.scratch.text, which is for this user alone: no cache may keep it, and no page
// of another origin may read it.
func (p *Proxy) writeOrderToken(r *Request, at int64) {
	out := r.localResponse(200, "application/json")
	out.Header.Add("Cache-Control", "private, no-store")
	out.Header.Add("Sluice-Time", strconv.FormatInt(at, 10))
	out.AppendBody(r.scratch.text)
}
