package proxy

import (
	"fmt"
	"strings"
	"time"
)

// Route says which requests these are, which gate they pass, and where SKU, user and quantity are found.
type Route struct {
	Name     string
	Match    string // METHOD [HOST]/PATH
	Gate     Gate
	SKU      string // a variable; needed where the gate looks at stock
	User     string // a variable; "" = nobody is identified
	Quantity string // a variable or a number, looked at where the gate takes stock; "" = 1
	// OrderToken wants orders to carry the token that the gate tells their user from the start of the sale on.
	OrderToken bool
	Places     Places // of this route; nil = those of Options
	Bound      string // how large they are, for the journal

	Cache time.Duration // how long an answer to GET is given to others as well; 0 = not at all. For Pass and Limit
}

// route is a Route made ready.
type route struct {
	Route
	tallies []tally // by shard
	pattern pattern
	sku     variable
	user    variable
	amount  variable // the quantity
	shape   []byte   // the path with the names of its pattern
	meters  []meter  // the keyed rates that count here
}

// variables are all that the gate looks up in a request of the route.
func (r *route) variables() []*variable {
	all := []*variable{&r.sku, &r.user, &r.amount}
	for i := range r.meters {
		all = append(all, &r.meters[i].key)
	}
	return all
}

// noRouteName is the label of requests that no route takes. A route of that name would make each of its metrics stand
// twice, and the whole page of metrics an error.
const noRouteName = "none"

// gated reports whether the gate judges what is in the request, so that the shop must read the same.
func (r *route) gated() bool { return r.Gate != Pass }

func (r *route) stocked() bool { return r.Gate >= Check }

// higher reports whether the gate of r looks at more than other's. Those that look at stock are of one height.
func (r *route) higher(other *route) bool { return min(r.Gate, Check) > min(other.Gate, Check) }

// needsBody reports whether a variable looks into the body.
func (r *route) needsBody() bool { return r.uses(formField) || r.uses(jsonField) }

// uses reports whether a variable looks there.
func (r *route) uses(s source) bool {
	if r.sku.uses(s) || r.user.uses(s) || r.amount.uses(s) {
		return true
	}
	for i := range r.meters {
		if r.meters[i].key.uses(s) {
			return true
		}
	}
	return false
}

func compileRoute(in Route) (route, error) {
	r := route{Route: in, shape: []byte(in.Match[strings.IndexByte(in.Match, ' ')+1:])}
	if in.Name == noRouteName {
		return r, &RouteError{in.Name, "name", fmt.Errorf("%q is what metrics call requests that no route takes; choose another name", in.Name)}
	}
	var err error
	if r.pattern, err = parsePattern(in.Match); err != nil {
		return r, &RouteError{in.Name, "match", err}
	}
	if r.sku, err = compileVariable(in.SKU, &r.pattern); err != nil {
		return r, &RouteError{in.Name, "sku", err}
	}
	if r.user, err = compileVariable(in.User, &r.pattern); err != nil {
		return r, &RouteError{in.Name, "user", err}
	}
	r.sku.judge()
	r.user.judge()
	if in.Gate != Reserve {
		return r, nil
	}
	if in.Quantity == "" {
		in.Quantity = "1"
	}
	if r.amount, err = compileVariable(in.Quantity, &r.pattern); err != nil {
		return r, &RouteError{in.Name, "quantity", err}
	}
	if r.amount.fixed() {
		if _, ok := readQuantity([]byte(in.Quantity), 0); !ok {
			return r, &RouteError{in.Name, "quantity", fmt.Errorf("%q is neither a number from 1 to %d nor a variable such as $json_qty", in.Quantity, maxQuantity)}
		}
	}
	return r, nil
}

// CompileRoutes reports everything that is wrong with routes; each error is a *RouteError.
func CompileRoutes(routes []Route) (errs []error) {
	_, errs = compileRoutes(routes)
	return errs
}

func compileRoutes(in []Route) (routes []route, errs []error) {
	for i := range in {
		r, err := compileRoute(in[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for j := range routes {
			if routes[j].pattern.covers(&r.pattern) {
				errs = append(errs, &RouteError{r.Name, "match", fmt.Errorf("can never match: route %q before it takes every such request", routes[j].Name)})
				break
			}
		}
		routes = append(routes, r)
	}
	return routes, errs
}

// preflight reports a CORS preflight, which is never counted and never judged (Fetch, section 3.2.2). Browsers never send
// one that names another method or path.
func preflight(r *request) bool {
	return string(r.method) == "OPTIONS" && !r.asked.Override && len(r.asked.Peek("Access-Control-Request-Method")) > 0
}
