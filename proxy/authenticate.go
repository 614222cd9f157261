package proxy

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"sluice/internal/octets"
	"sluice/proxy/auth"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/stockstatus"
)

// Auth is by what keys users and orders prove what they say. The zero value proves nothing.
type Auth struct {
	JWT           auth.JWTOptions // of $jwt_x; Algorithm "" = none is verified. Claims are those that routes and rates use
	From          string          // a variable: where the token is
	CookieKey     string          // of $signed_x; "" = none is verified
	OrderTokenKey string          // of routes with OrderToken; "" = there are none
	Slot          time.Duration   // of order tokens
}

// authenticator is Auth made ready. It implements param.Tokens.
type authenticator struct {
	in      Auth
	jwt     *auth.JWT
	from    param.Variable
	cookies *auth.Cookies
	orders  *auth.OrderTokens
	wall    func() time.Time
}

// newAuthenticator reads the keys, or takes over from one of the same keys, which remembers who was verified.
func newAuthenticator(in Auth, routes []boundRoute, before *authenticator) (*authenticator, error) {
	in.JWT.Claims = claimsUsed(routes)
	if before != nil && reflect.DeepEqual(before.in, in) {
		return before, before.serves(routes)
	}
	a := &authenticator{in: in, wall: time.Now}
	if err := a.readKeys(); err != nil {
		return nil, err
	}
	return a, a.serves(routes)
}

func (a *authenticator) readKeys() (err error) {
	if a.in.JWT.Algorithm != "" {
		if a.jwt, err = auth.NewJWT(a.in.JWT); err != nil {
			return fmt.Errorf("jwt_key_file: %w", err)
		}
		if a.from, err = param.Compile(a.in.From, nil); err != nil {
			return fmt.Errorf("jwt_from: %w", err)
		}
		if !a.from.Uses(param.Header) && !a.from.Uses(param.Cookie) || len(a.from.Parts()) != 1 {
			return fmt.Errorf("jwt_from: %q is neither a header nor a cookie; write it like \"$http_authorization\" or "+
				"\"$cookie_token\"", a.in.From)
		}
	}
	if a.in.CookieKey != "" {
		if a.cookies, err = auth.NewCookies([]byte(a.in.CookieKey)); err != nil {
			return fmt.Errorf("cookie_key_file: %w", err)
		}
	}
	if a.in.OrderTokenKey != "" {
		if a.orders, err = auth.NewOrderTokens([]byte(a.in.OrderTokenKey), a.in.Slot); err != nil {
			return fmt.Errorf("order_token_key_file: %w", err)
		}
	}
	return nil
}

// CompileAuth reports what New would find wrong with in, beside routes that need it. Errors begin with the key of
// [auth], or are *RouteError.
func CompileAuth(in Auth, routes []Route) error {
	bound, _, errs := bindRoutes(routes)
	if len(errs) > 0 {
		return nil // reported elsewhere
	}
	_, err := newAuthenticator(in, bound, nil)
	return err
}

// claimsUsed are the claims of the token that routes and rates look at.
func claimsUsed(routes []boundRoute) (names []string) {
	for i := range routes {
		for _, v := range routes[i].variables() {
			names = append(names, v.Names(param.Claim)...)
		}
	}
	return names
}

// serves wants every route to find the keys that it needs.
func (a *authenticator) serves(routes []boundRoute) error {
	user := ""
	for i := range routes {
		rt := &routes[i]
		for _, v := range rt.variables() {
			if v.Uses(param.Claim) && a.jwt == nil {
				return &RouteError{rt.Name, "user",
					fmt.Errorf("$jwt_… needs auth.jwt_algorithm and auth.jwt_key_file: no token is verified without")}
			}
			if v.Uses(param.SignedCookie) && a.cookies == nil {
				return &RouteError{rt.Name, "user",
					fmt.Errorf("$signed_… needs auth.cookie_key_file: no cookie is verified without")}
			}
		}
		if !rt.OrderToken {
			continue
		}
		if err := a.givesTokens(rt, user); err != nil {
			return &RouteError{rt.Name, "order_token", err}
		}
		user = rt.User
	}
	return nil
}

// givesTokens wants the user of a route with order tokens to be known where the token is given out. other is the user
// of another such route; "" = none.
func (a *authenticator) givesTokens(rt *boundRoute, other string) error {
	if a.orders == nil {
		return fmt.Errorf("needs auth.order_token_key_file, the same on all instances")
	}
	if rt.user.Empty() || rt.sku.Empty() || rt.Gate == route.Pass {
		return fmt.Errorf("is of a user and a SKU: write user, sku, and another gate than \"pass\"")
	}
	for _, k := range []param.Kind{param.Path, param.Form, param.JSON, param.RequestID, param.Literal} {
		if rt.user.Uses(k) {
			return fmt.Errorf("user = %q is not known where the token is given out: it must be of a cookie, a header, the "+
				"query, or proven", rt.User)
		}
	}
	if other != "" && rt.User != other {
		return fmt.Errorf("user = %q, but another route with order_token has %q; write the same", rt.User, other)
	}
	return nil
}

// Claim implements param.Tokens: a claim of the token that the request carries; empty when it proves nothing.
func (a *authenticator) Claim(s *param.Source, name string) ([]byte, param.Fault) {
	if a.jwt == nil {
		return nil, param.Fault{}
	}
	from := a.from.Parts()
	token, fault := from[0].Lookup(s)
	if fault.Reason != reject.Admitted || len(token) == 0 {
		return nil, fault
	}
	value, _ := a.jwt.Claim(token, name, a.wall())
	return value, param.Fault{}
}

// SignedCookie implements param.Tokens: the value of a cookie that the shop has signed; empty when it has not.
func (a *authenticator) SignedCookie(s *param.Source, name string) ([]byte, param.Fault) {
	signed, fault := s.Cookie(name)
	if a.cookies == nil || fault.Reason != reject.Admitted || len(signed) == 0 {
		return nil, fault
	}
	signed, ok := s.Decode(signed)
	if !ok {
		return nil, param.Fault{}
	}
	value, _ := a.cookies.Value(signed)
	return value, param.Fault{}
}

// orderTokenHeader is where an order carries its token. It is not passed on.
const orderTokenHeader = "Sluice-Token"

// checkOrderToken rejects an order without its token, where the route wants one.
func (p *Proxy) checkOrderToken(r *Request) rejection {
	token, fault := r.source.Header(orderTokenHeader)
	if fault.Reason != reject.Admitted {
		return rejected(fault)
	}
	if !p.auth.orders.Valid(token, r.buyer.sku, r.buyer.user, p.sharedTime(r.now)) {
		return rejection{Reason: reject.Token}
	}
	return rejection{}
}

// sharedTime is now in Unix ms, by the clock that all instances share where there is one.
func (p *Proxy) sharedTime(now int64) int64 {
	if p.Availability != nil {
		return p.Availability.Time(now)
	}
	return p.auth.wall().UnixMilli()
}

// wantsOrderToken reports a question for the token of an order beside the stock.
func (p *Proxy) wantsOrderToken(query []byte) bool {
	for p.auth.orders != nil && len(query) > 0 {
		var field []byte
		field, query = octets.Cut(query, '&')
		if string(field) == "token=1" {
			return true
		}
	}
	return false
}

// appendOrderToken appends the token for the user who asks, from the start of the sale on and to its end.
func (p *Proxy) appendOrderToken(dst []byte, r *Request, phase stockstatus.Phase) []byte {
	if phase != stockstatus.InStock && phase != stockstatus.SoldOut { // what is sold out may come back
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
		return append(p.auth.orders.Append(dst, r.buyer.sku, user, p.sharedTime(r.now)), '"')
	}
	return dst
}

// writeOrderToken sends the answer in r.scratch.text, which is for this user alone: no cache may keep it, and no page
// of another origin may read it.
func (p *Proxy) writeOrderToken(r *Request, at int64) {
	out := r.localResponse(200, "application/json")
	out.Add("Cache-Control", "private, no-store")
	out.Add("Sluice-Time", strconv.FormatInt(at, 10))
	out.Write(r.scratch.text)
}
