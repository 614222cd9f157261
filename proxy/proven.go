package proxy

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"sluice/proxy/auth"
)

// Proof is by what keys users and orders prove what they say. The zero value proves nothing.
type Proof struct {
	JWT       auth.JWTOptions // of $jwt_x; Algorithm "" = none is verified. Claims are those that routes and rates ask for
	From      string          // a variable: where the token is
	CookieKey string          // of $signed_x; "" = none is verified
	TicketKey string          // of routes with OrderToken; "" = there are none
	Slot      time.Duration   // of tickets
}

// prover is Proof made ready.
type prover struct {
	in      Proof
	jwt     *auth.JWT
	from    variable
	cookies *auth.Cookies
	tickets *auth.Tickets
	wall    func() time.Time
}

// newProver reads the keys, or takes over from one of the same keys, which remembers who was verified.
func newProver(in Proof, routes []route, before *prover) (*prover, error) {
	in.JWT.Claims = claimsAsked(routes)
	if before != nil && reflect.DeepEqual(before.in, in) {
		return before, nil
	}
	p := &prover{in: in, wall: time.Now}
	var err error
	if in.JWT.Algorithm != "" {
		if p.jwt, err = auth.NewJWT(in.JWT); err != nil {
			return nil, fmt.Errorf("jwt_key_file: %w", err)
		}
		if p.from, err = compileVariable(in.From, &pattern{}); err != nil {
			return nil, fmt.Errorf("jwt_from: %w", err)
		}
		if !p.from.uses(header) && !p.from.uses(cookie) || len(p.from.parts) != 1 {
			return nil, fmt.Errorf("jwt_from: %q is neither a header nor a cookie; write it like \"$http_authorization\" or \"$cookie_token\"", in.From)
		}
	}
	if in.CookieKey != "" {
		if p.cookies, err = auth.NewCookies([]byte(in.CookieKey)); err != nil {
			return nil, fmt.Errorf("cookie_key_file: %w", err)
		}
	}
	if in.TicketKey != "" {
		if p.tickets, err = auth.NewTickets([]byte(in.TicketKey), in.Slot); err != nil {
			return nil, fmt.Errorf("order_token_key_file: %w", err)
		}
	}
	return p, p.serves(routes)
}

// CompileProof reports what New would find wrong with in, beside routes that need it. Errors begin with the key of
// [proof], or are *RouteError.
func CompileProof(in Proof, routes []Route) error {
	compiled, errs := compileRoutes(routes)
	if len(errs) > 0 {
		return nil // told elsewhere
	}
	_, err := newProver(in, compiled, nil)
	return err
}

// claimsAsked are the claims of the token that routes and rates look at.
func claimsAsked(routes []route) (names []string) {
	for i := range routes {
		for _, v := range routes[i].variables() {
			for _, part := range v.parts {
				if part.source == jwtClaim {
					names = append(names, part.name)
				}
			}
		}
	}
	return names
}

// serves wants every route to find what it asks for.
func (p *prover) serves(routes []route) error {
	user := ""
	for i := range routes {
		r := &routes[i]
		for _, v := range r.variables() {
			if v.uses(jwtClaim) && p.jwt == nil {
				return &RouteError{r.Name, "user", fmt.Errorf("$jwt_… needs proof.jwt_algorithm and proof.jwt_key_file: no token is verified without")}
			}
			if v.uses(signedCookie) && p.cookies == nil {
				return &RouteError{r.Name, "user", fmt.Errorf("$signed_… needs proof.cookie_key_file: no cookie is verified without")}
			}
		}
		if !r.OrderToken {
			continue
		}
		if p.tickets == nil {
			return &RouteError{r.Name, "order_token", fmt.Errorf("needs proof.order_token_key_file, the same on all instances")}
		}
		if r.user.empty() || r.sku.empty() || r.Gate == Pass {
			return &RouteError{r.Name, "order_token", fmt.Errorf("is of a user and a SKU: write user, sku, and another gate than \"pass\"")}
		}
		for _, s := range []source{pathName, formField, jsonField, requestID, literal} {
			if r.user.uses(s) {
				return &RouteError{r.Name, "order_token", fmt.Errorf("user = %q is not known where the token is told: it must be of a cookie, a header, the query, or proven", r.User)}
			}
		}
		if user != "" && r.User != user {
			return &RouteError{r.Name, "order_token", fmt.Errorf("user = %q, but another route with order_token has %q; write the same", r.User, user)}
		}
		user = r.User
	}
	return nil
}

// ticketHeader is where an order carries its token. It is not passed on.
const ticketHeader = "Sluice-Token"

// entitled reports whether the order has a token, where its route wants one.
func (p *Proxy) entitled(r *request) Reason {
	if !r.route.OrderToken {
		return Admitted
	}
	ticket, reason := r.header(ticketHeader)
	if reason != Admitted {
		return reason
	}
	if !p.prover.tickets.Valid(ticket, r.sku, r.user, p.sharedTime(r.now)) {
		return Token
	}
	return Admitted
}

// sharedTime is now in Unix ms, by the clock that all instances share where there is one.
func (p *Proxy) sharedTime(now int64) int64 {
	if p.shelf != nil {
		return p.shelf.Time(now)
	}
	return p.prover.wall().UnixMilli()
}

// wantsTicket reports a question for the token of an order beside the stock.
func (p *Proxy) wantsTicket(query []byte) bool {
	for p.prover.tickets != nil && len(query) > 0 {
		var field []byte
		field, query = cut(query, '&')
		if string(field) == "token=1" {
			return true
		}
	}
	return false
}

// appendTicket appends the token for the user who asks, from the start of the sale on and to its end.
func (p *Proxy) appendTicket(dst []byte, r *request, phase Phase) []byte {
	if phase != Open && phase != Gone { // what is gone may come back
		return dst
	}
	for i := range p.routes {
		if !p.routes[i].OrderToken {
			continue
		}
		user, reason := p.routes[i].user.value(r)
		if reason != Admitted || !validUser(user) {
			return dst
		}
		dst = append(dst, `,"token":"`...)
		return append(p.prover.tickets.Append(dst, r.sku, user, p.sharedTime(r.now)), '"')
	}
	return dst
}

// claim is one of the token that the request carries; empty when it proves nothing.
func (r *request) claim(name string) ([]byte, Reason) {
	p := r.proxy.prover
	token, reason := r.look(&p.from.parts[0])
	if reason != Admitted || len(token) == 0 {
		return nil, reason
	}
	value, _ := p.jwt.Claim(token, name, p.wall())
	return value, Admitted
}

// signedValue is that of a cookie which the shop has signed; empty when it has not.
func (r *request) signedValue(name string) ([]byte, Reason) {
	signed, reason := r.cookie(name)
	if reason != Admitted || len(signed) == 0 {
		return nil, reason
	}
	if bytes.IndexByte(signed, '%') >= 0 {
		if signed, reason = r.decoded(signed, false); reason != Admitted {
			return nil, Admitted
		}
	}
	value, ok := r.proxy.prover.cookies.Value(signed)
	if !ok {
		return nil, Admitted
	}
	return value, Admitted
}

// proven reports a value that the shop has signed.
func (v *variable) proven() bool { return v.uses(jwtClaim) || v.uses(signedCookie) }

// writeTicket sends the answer in r.text, which is for this user alone: no cache may keep it, and no page of another
// origin may read it.
func (p *Proxy) writeTicket(r *request, at int64) {
	out := r.answer(200, "application/json")
	out.add("Cache-Control", "private, no-store")
	out.add("Sluice-Time", strconv.FormatInt(at, 10))
	out.sayBytes(r.text)
}
