package proxy

import (
	"fmt"
	"strings"
	"time"
)

// Gate is the rung of the ladder that a route stands on.
type Gate uint8

const (
	Pass    Gate = iota // forward
	Limit               // and every limit
	Check               // and refuse when sold out
	Reserve             // and take the units, before forwarding
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

// RouteError names the route and the key of it that cannot be compiled.
type RouteError struct {
	Route, Key string
	Err        error
}

func (e *RouteError) Error() string { return fmt.Sprintf("route %q: %s: %v", e.Route, e.Key, e.Err) }
func (e *RouteError) Unwrap() error { return e.Err }

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

// covers reports whether each request that q takes is taken by p. It errs towards false.
func (p *pattern) covers(q *pattern) bool {
	if p.method != "" && p.method != q.method || p.host != "" && p.host != q.host {
		return false
	}
	for i, s := range p.segments {
		if s.rest {
			return i < len(q.segments) || q.subtree
		}
		if i >= len(q.segments) || !s.capture && (q.segments[i].capture || s.literal != q.segments[i].literal) || q.segments[i].rest {
			return false
		}
	}
	if p.subtree {
		return len(q.segments) > len(p.segments) || q.subtree && len(q.segments) == len(p.segments)
	}
	return len(p.segments) == len(q.segments) && !q.subtree
}

// match finds the first route that takes the request, by its path as received; and refuses as ambiguous
// what a lenient shop could take for another, gated one.
func (p *Proxy) match(r *request) Reason {
	r.hostBuffer = hostName(r.hostBuffer[:0], r.asked.Host())
	r.method, r.host = r.asked.Method(), r.hostBuffer
	r.path, r.query = splitTarget(r.asked.Target())
	r.route = p.find(r.method, r.path, r, false)
	if p.gatedAny && (!plainPath(r.path) || folds(r.path) || !r.route.stocked() && (hasEnding(r.path, !reads(r.method)) || behindScript(r.path) != nil)) {
		if reason := p.matchLoose(r); reason != Admitted {
			return reason
		}
	}
	if r.route == &p.noRoute {
		return NoRoute
	}
	if p.gatedAny {
		return p.overridden(r)
	}
	return Admitted
}

// find returns the first route that takes the request, with what its names caught in r.caught; noRoute when none does.
func (p *Proxy) find(method, path []byte, r *request, fold bool) *route {
	seen := p.outlines.seen(r.host, path)
	for i, o := range p.outlines.row {
		if o.fits(seen) && p.routes[i].pattern.matches(method, r.host, path, &r.caught, fold) {
			return &p.routes[i]
		}
	}
	return &p.noRoute
}

// matchLoose looks for another route that a lenient shop could see in this path: for any at all when the request's own
// is gated, else for a gated one.
func (p *Proxy) matchLoose(r *request) Reason {
	caught, own := r.caught, r.route
	aimed := own
	known := r.eachReading(r.path, func(path []byte, decoded int) bool {
		other := p.find(r.method, path, r, true)
		if other == own && own.gated() && !r.sameCaught(&caught, decoded > 0) {
			aimed = nil
			return false
		}
		other = p.nearer(other, r.method, path, r)
		if other != own && (own.gated() || other.gated()) {
			aimed = other
		}
		return aimed == own
	})
	r.caught = caught
	if known && aimed == own {
		return Admitted
	}
	if !own.gated() && aimed != nil {
		r.route = aimed // the refusal belongs to the route that was aimed at
	}
	return Ambiguous
}

// nearer returns a route of a higher gate than found's that a lenient shop could see in a path which itself leads to found: without
// its ending, or behind a script; else found.
func (p *Proxy) nearer(found *route, method, path []byte, r *request) *route {
	if found.stocked() {
		return found
	}
	behind := behindScript(path)
	for _, near := range [...][]byte{withoutEnding(path, !reads(method)), behind, withoutEnding(behind, !reads(method))} {
		if len(near) == 0 {
			continue
		}
		if other := p.find(method, near, r, true); other.higher(found) {
			found = other
		}
	}
	return found
}

// sameCaught reports whether the names have caught the same as in the path as received, which the gate decodes once:
// /a/%31 is SKU 1 in every reading, /a/x%2f1 is not.
func (r *request) sameCaught(received *captures, decoded bool) bool {
	for i := range r.route.pattern.names {
		once := received[i]
		if decoded {
			r.value = unescape(r.value[:0], once)
			once = r.value
		}
		if string(once) != string(r.caught[i]) {
			return false
		}
	}
	return true
}

// reads reports a method that asks for nothing but to read (RFC 9110, section 9.2.1).
func reads(method []byte) bool { return string(method) == "GET" || string(method) == "HEAD" }

// splitTarget parts path and query as they were received. An absolute form loses scheme and authority.
func splitTarget(target []byte) (path, query []byte) {
	if len(target) > 0 && target[0] != '/' {
		target = afterAuthority(target)
	}
	for i, c := range target {
		if c == '?' {
			return target[:i], target[i+1:]
		}
	}
	return target, nil
}

func afterAuthority(target []byte) []byte {
	slashes := 0
	for i, c := range target {
		if c == '/' {
			if slashes++; slashes == 3 {
				return target[i:]
			}
		}
	}
	return target
}

// hostName appends host in lower case without its port and a final dot.
func hostName(dst, host []byte) []byte {
	for _, c := range host {
		if c == ':' && (len(host) == 0 || host[0] != '[') {
			break
		}
		dst = append(dst, lower(c))
	}
	if len(dst) > 0 && dst[0] == '[' {
		for i, c := range dst {
			if c == ']' {
				return dst[:i+1]
			}
		}
	}
	if n := len(dst); n > 0 && dst[n-1] == '.' {
		dst = dst[:n-1]
	}
	return dst
}

// preflight reports a CORS preflight, which is never counted and never judged (Fetch, section 3.2.2). Browsers never send
// one that names another method or path.
func preflight(r *request) bool {
	return string(r.method) == "OPTIONS" && !r.asked.Override && len(r.asked.Peek("Access-Control-Request-Method")) > 0
}
