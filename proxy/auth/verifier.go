package auth

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// VerifierOptions say by what keys users and orders prove what they say. The zero value proves nothing.
type VerifierOptions struct {
	JWT           JWTOptions    // of $jwt_x; Algorithm "" = none is verified. Claims are those that routes use
	From          string        // a variable: where the token is
	CookieKey     string        // of $signed_x; "" = none is verified
	OrderTokenKey string        // of routes with OrderToken; "" = there are none
	Slot          time.Duration // of order tokens
}

// Verifier is VerifierOptions made ready. Nothing unverified has a value. It implements param.Tokens.
type Verifier struct {
	Orders  *OrderTokens // nil = there are none
	in      VerifierOptions
	jwt     *JWT
	from    param.Variable
	cookies *Cookies
	wall    func() time.Time
}

// Route is what the keys need to know of a route.
type Route struct {
	Name       string
	Variables  []*param.Variable // that are looked up in its requests
	SKU, User  *param.Variable
	UserText   string // as configured
	OrderToken bool
	Pass       bool
}

// NewVerifier reads the keys, or takes over from a Verifier of the same keys, which remembers who was verified.
func NewVerifier(in VerifierOptions, routes []Route, before *Verifier) (*Verifier, error) {
	in.JWT.Claims = claimsUsed(routes)
	if before != nil && reflect.DeepEqual(before.in, in) {
		return before, before.serves(routes)
	}
	v := &Verifier{in: in, wall: time.Now}
	if err := v.readKeys(); err != nil {
		return nil, err
	}
	return v, v.serves(routes)
}

func (v *Verifier) readKeys() (err error) {
	if v.in.JWT.Algorithm != "" {
		if v.jwt, err = newJWT(v.in.JWT); err != nil {
			return fmt.Errorf("jwt_key_file: %w", err)
		}
		if v.from, err = param.Compile(v.in.From, nil); err != nil {
			return fmt.Errorf("jwt_from: %w", err)
		}
		if !v.from.Uses(param.Header) && !v.from.Uses(param.Cookie) || len(v.from.Parts()) != 1 {
			return fmt.Errorf("jwt_from: %q is neither a header nor a cookie; write it like \"$http_authorization\" or "+
				"\"$cookie_token\"", v.in.From)
		}
	}
	if v.in.CookieKey != "" {
		if v.cookies, err = newCookies([]byte(v.in.CookieKey)); err != nil {
			return fmt.Errorf("cookie_key_file: %w", err)
		}
	}
	if v.in.OrderTokenKey != "" {
		if v.Orders, err = newOrderTokens([]byte(v.in.OrderTokenKey), v.in.Slot); err != nil {
			return fmt.Errorf("order_token_key_file: %w", err)
		}
	}
	return nil
}

// Headers are the header fields in which tokens come.
func (v *Verifier) Headers() []string { return v.from.Names(param.Header) }

// claimsUsed are the claims of the token that routes look at, with the limits and rooms on them.
func claimsUsed(routes []Route) (names []string) {
	for i := range routes {
		for _, v := range routes[i].Variables {
			names = append(names, v.Names(param.Claim)...)
		}
	}
	return names
}

// serves wants every route to find the keys that it needs.
func (v *Verifier) serves(routes []Route) error {
	user := ""
	for i := range routes {
		rt := &routes[i]
		for _, variable := range rt.Variables {
			if variable.Uses(param.Claim) && v.jwt == nil {
				return route.Fault(rt.Name, "user",
					fmt.Errorf("$jwt_… needs auth.jwt_algorithm and auth.jwt_key_file: no token is verified without"))
			}
			if variable.Uses(param.SignedCookie) && v.cookies == nil {
				return route.Fault(rt.Name, "user",
					fmt.Errorf("$signed_… needs auth.cookie_key_file: no cookie is verified without"))
			}
		}
		if !rt.OrderToken {
			continue
		}
		if err := v.givesTokens(rt, user); err != nil {
			return route.Fault(rt.Name, "order_token", err)
		}
		user = rt.UserText
	}
	return nil
}

// givesTokens wants the user of a route with order tokens to be known where the token is given out. other is the user
// of another such route; "" = none.
func (v *Verifier) givesTokens(rt *Route, other string) error {
	if v.Orders == nil {
		return fmt.Errorf("needs auth.order_token_key_file, the same on all instances")
	}
	if rt.User.Empty() || rt.SKU.Empty() || rt.Pass {
		return fmt.Errorf("is of a user and a SKU: write user, sku, and another gate than \"pass\"")
	}
	if err := rt.KnownWithoutRoute("the token"); err != nil {
		return err
	}
	if other != "" && rt.UserText != other {
		return fmt.Errorf("user = %q, but another route with order_token has %q; write the same", rt.UserText, other)
	}
	return nil
}

// KnownWithoutRoute wants the user to be known where something is given out, which no route is asked for.
func (r *Route) KnownWithoutRoute(what string) error {
	if slices.ContainsFunc([]param.Kind{param.Path, param.Form, param.JSON, param.RequestID, param.Literal}, r.User.Uses) {
		return fmt.Errorf("user = %q is not known where %s is given out: it must be of a cookie, a header, the "+
			"query, or proven", r.UserText, what)
	}
	return nil
}

// Claim implements param.Tokens: a claim of the token that the request carries; empty when it proves nothing, with the
// cause in the fault's detail.
func (v *Verifier) Claim(s *param.Source, name string) ([]byte, param.Fault) {
	if v.jwt == nil {
		return nil, param.Fault{}
	}
	from := v.from.Parts()
	token, fault := from[0].Lookup(s)
	if fault.Reason != reject.Admitted {
		return nil, fault
	}
	value, cause := v.jwt.Claim(token, name, v.wall())
	return value, param.Fault{Detail: reject.Detail{Cause: cause}}
}

// SignedCookie implements param.Tokens: the value of a cookie that the shop has signed; empty when it has not.
func (v *Verifier) SignedCookie(s *param.Source, name string) ([]byte, param.Fault) {
	signed, fault := s.Cookie(name)
	if v.cookies == nil || fault.Reason != reject.Admitted || len(signed) == 0 {
		return nil, fault
	}
	value, ok := []byte(nil), false
	if signed, ok = s.Decode(signed); ok {
		value, ok = v.cookies.Value(signed)
	}
	if !ok {
		return nil, param.Fault{Detail: reject.Detail{Cause: reject.TokenSignature}}
	}
	return value, param.Fault{}
}

// Now is the time by which tokens end.
func (v *Verifier) Now() time.Time { return v.wall() }
