package proxy

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice/internal/octets"
	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// Route says which requests these are, which gate they pass, and where SKU, user and quantity are found.
type Route struct {
	Name     string
	Match    string // METHOD [HOST]/PATH
	Gate     route.Gate
	SKU      string // a variable; needed where the gate looks at stock
	User     string // a variable; "" = users are not told apart
	Quantity string // a variable or a number, used where the gate takes stock; "" = 1
	// OneSource leaves the query out of account beside $form_x and $json_x, and bodies beside $arg_x, for SKU, user and
	// quantity.
	OneSource  bool
	DigitsOnly bool     // a SKU is a whole number in digits without leading zeros, at most that of an int64
	Require    []string // conditions like "$jwt_level>=2" that a request must meet; not on pass
	// OrderToken demands the token that the proxy gives to a user from the start of the sale on.
	OrderToken  bool
	Room        string             // of Options.Rooms, whose pass orders need; "" = none
	Queue       bool               // orders wait until they are delivered; with the gate Reserve
	Concurrency ConcurrencyLimiter // of this route; nil = that of Options
	Bound       string             // how large it is, for the access log

	// Timeout is the time for the header of the response; 0 = that of the upstream.
	Timeout time.Duration

	Cache time.Duration // how long a response to GET serves other clients; 0 = not at all. For pass and limit
}

// guard is what another spelling of the route's path must not lead around.
func (rt *Route) guard() route.Guard {
	switch {
	case rt.Gate.GuardsStock():
		return route.GuardsStock
	case rt.Room != "" || len(rt.Require) > 0 || rt.OrderToken:
		return route.GuardsEntry
	}
	return route.Unguarded
}

// boundRoute is a Route made ready.
type boundRoute struct {
	Route
	counters metrics.Route
	checks   []check
	asked    []check // of them, those for requests that another proxy forwards
	pattern  route.Pattern
	sku      param.Variable
	user     param.Variable
	quantity param.Variable
	priority *param.Condition // requests that meet it go first in the queue for a slot; nil = none
	require  []param.Condition
	shape    string      // the path with the names of its pattern
	rates    []boundRate // the keyed rates that count here
	inFlight []boundInFlight
	room     *boundRoom // nil = none
	internal bool       // it is of addresses below internalPath: those of a Sluice behind this one
	readBody bool       // a variable looks into the body
	readForm bool       // SKU, user or quantity stand in the query, and a body could contradict it
}

// variables are all that the proxy looks up in a request of the route, with the limits and the room that are attached
// to it. This list alone says what is read of tokens, which keys are needed, and which header fields no hop may remove.
func (rt *boundRoute) variables() []*param.Variable {
	all := []*param.Variable{&rt.sku, &rt.user, &rt.quantity}
	if rt.priority != nil {
		all = append(all, rt.priority.Variable())
	}
	for i := range rt.require {
		all = append(all, rt.require[i].Variable())
	}
	for i := range rt.rates {
		all = append(all, rt.rates[i].Key.Variable())
	}
	for i := range rt.inFlight {
		all = append(all, rt.inFlight[i].Key.Variable())
	}
	if rt.room != nil {
		all = append(all, rt.room.Bypass().Variables()...)
	}
	return all
}

// needsBody reports whether a variable looks into the body. It allocates.
func (rt *boundRoute) needsBody() bool {
	return slices.ContainsFunc(rt.variables(), (*param.Variable).NeedsBody)
}

// needsForm reports whether a body could contradict SKU, user or quantity.
func (rt *boundRoute) needsForm() bool {
	return !rt.OneSource && (rt.sku.Uses(param.Query) || rt.user.Uses(param.Query) || rt.quantity.Uses(param.Query))
}

// limited reports whether more than the keyed rates applies to the route.
func (rt *boundRoute) limited() bool { return rt.Gate != route.Pass }

// bindRoutes compiles routes and the table that finds them; each error is a *route.Error.
func bindRoutes(in []Route) (routes []boundRoute, table *route.Table, errs []error) {
	var patterns []route.Pattern
	var guards []route.Guard
	for i := range in {
		rt, faults := bindRoute(in[i])
		if len(faults) > 0 {
			errs = append(errs, faults...)
			continue
		}
		routes, patterns, guards = append(routes, rt), append(patterns, rt.pattern), append(guards, in[i].guard())
	}
	table = route.NewTable(patterns, guards)
	for i := range patterns {
		switch j := table.CoveredBy(i); {
		case j >= 0 && routes[j].Match == routes[i].Match:
			errs = append(errs, route.Fault(routes[i].Name, "match", fmt.Errorf("can never match: it is the same as that of "+
				"route %q; drop one", routes[j].Name)))
		case j >= 0:
			errs = append(errs, route.Fault(routes[i].Name, "match", fmt.Errorf("can never match: route %q before it "+
				"takes every such request; write the narrow route first", routes[j].Name)))
		}
	}
	return routes, table, errs
}

// bindRoute compiles a route. What is wrong with one of its keys does not hide what is wrong with another; only a match
// that cannot be read does, which says what names the others may use.
func bindRoute(in Route) (rt boundRoute, errs []error) {
	rt = boundRoute{Route: in, internal: strings.Contains(in.Match, internalPath)}
	fault := func(key string, err error) {
		if err != nil {
			errs = append(errs, route.Fault(in.Name, key, err))
		}
	}
	if in.Name == noRouteName {
		fault("name", fmt.Errorf("%q is what metrics call requests that no route takes; choose another name", in.Name))
	}
	var err error
	if rt.pattern, err = route.ParsePattern(in.Match); err != nil {
		fault("match", err)
		return rt, errs
	}
	rt.shape = rt.pattern.Path()
	names := rt.pattern.Names()
	lines := param.IsList(in.SKU) || param.IsList(in.Quantity)
	if lines {
		rt.sku, rt.quantity, err = param.CompileLines(in.SKU, in.Quantity)
	} else {
		rt.sku, err = param.Compile(in.SKU, names)
	}
	fault("sku", err)
	rt.user, err = param.Compile(in.User, names)
	if err == nil && rt.user.Fixed() {
		err = fmt.Errorf("%q is the same for every request: all clients would be one user; write a variable like "+
			"$cookie_uid", in.User)
	}
	fault("user", err)
	rt.require, err = param.CompileConditions(in.Require, names)
	fault(fmt.Sprintf("require[%d]", len(rt.require)+1), err)
	if in.Gate == route.Reserve && !lines {
		rt.quantity, err = compileQuantity(cmp.Or(in.Quantity, "1"), names)
		fault("quantity", err)
	}
	return rt, errs
}

func compileQuantity(text string, names []string) (v param.Variable, err error) {
	if v, err = param.Compile(text, names); err != nil || !v.Fixed() {
		return v, err
	}
	if _, ok := param.ParseQuantity([]byte(text), 0); !ok {
		err = fmt.Errorf("%q is neither a whole number nor a variable; write it like 1 or $json_qty", text)
	}
	return v, err
}

// Faults are what New would find wrong with the routes of o and with the keys of the limits; if nothing is, with the
// limits, the keys and the waiting rooms on the routes. Each is a *route.Error, a *LimitError, or begins with a key of
// [auth].
func Faults(o Options) (errs []error) {
	routes, _, errs := bindRoutes(o.Routes)
	if len(errs) > 0 {
		return append(errs, keyFaults(o)...)
	}
	errs = append(attachRates(o.Rates, routes), attachInFlight(o.InFlight, routes)...)
	if _, err := auth.NewVerifier(o.Auth, provenOn(routes), nil); err != nil {
		errs = append(errs, err)
	}
	if err := checkRooms(routes); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// keyFaults are what is wrong with the keys of the limits on any route.
func keyFaults(o Options) (errs []error) {
	check := func(table, name, key string, ipv4, ipv6 int) {
		var names []string // those that a route may have
		for _, text := range pathName.FindAllStringSubmatch(key, -1) {
			names = append(names, text[1])
		}
		if _, err := param.CompileLimitKey(key, names, ipv4, ipv6); err != nil {
			errs = append(errs, &LimitError{Table: table, Name: name, Key: "key", Err: err})
		}
	}
	for _, r := range o.Rates {
		check("rate", r.Name, r.Key, r.IPv4Prefix, r.IPv6Prefix)
	}
	for _, l := range o.InFlight {
		check("in_flight", l.Name, l.Key, ClientIPv4Bits, ClientIPv6Bits)
	}
	return errs
}

var pathName = regexp.MustCompile(`\$path_(\w+)`)

// match finds the request's route, and with it the checks that it has to pass.
func (p *Proxy) match(r *Request) {
	head := r.head
	q := route.Query{Method: head.Method, Host: r.scratch.host, Path: head.Path}
	if head.Override {
		q.OverrideMethods, q.OverridePaths = r.overrides()
	}
	var ambiguous reject.Detail
	r.matched, ambiguous = p.table.Match(q)
	if r.matched.Index >= 0 {
		r.route = &p.routes[r.matched.Index]
	}
	switch {
	case head.Via && p.loops(r):
		r.checks = p.rejecting
		r.unmatched = rejection{Reason: reject.Loop}
	case ambiguous.Cause != reject.NoCause:
		r.checks = p.rejecting
		r.unmatched = rejection{Reason: reject.Ambiguous, Detail: ambiguous}
	case r.matched.Index < 0 || r.isInternal():
		r.route, r.checks = &p.unmatched, p.rejecting
		r.unmatched = rejection{Reason: reject.NoRoute}
	case isPreflight(r):
		r.checks = p.preflight
	default:
		if r.checks = r.route.checks; r.asked {
			r.checks = r.route.asked
		}
		r.source.Captures = r.matched.Captures[:]
	}
}

// isInternal reports an address of the proxy's own that no route names.
func (r *Request) isInternal() bool {
	return bytes.HasPrefix(r.head.Path, []byte(internalPath)) && !r.route.internal
}

// overrides are the values of the header fields that ask to take a request for one of another method or path. They are
// rare: this allocates.
func (r *Request) overrides() (methods, paths [][]byte) {
	for name, value := range r.head.Fields {
		for _, f := range [...]string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
			if octets.EqualFieldName(name, f) {
				methods = append(methods, value)
			}
		}
		for _, f := range [...]string{"X-Original-URL", "X-Rewrite-URL"} {
			if octets.EqualFieldName(name, f) {
				paths = append(paths, value)
			}
		}
	}
	return methods, paths
}

// isPreflight reports a CORS preflight, which is neither counted nor judged (Fetch, section 3.2.2). Browsers never send
// one that names another method or path, or that has credentials, a key or a body: a script of the shop that looks at
// no method could take that for an order. A question may tell of a body by its type alone.
func isPreflight(r *Request) bool {
	head := r.head
	return string(head.Method) == "OPTIONS" && len(head.Peek("Access-Control-Request-Method")) > 0 && !head.Override &&
		!r.hasBody() && head.Peek("Content-Type") == nil && head.Peek(idempotencyKey) == nil && head.Peek("Cookie") == nil &&
		head.Peek("Authorization") == nil
}

func attachRates(rates []Rate, routes []boundRoute) (errs []error) {
	bound, errs := bindRates(rates, countedOn(routes))
	for i := range routes {
		routes[i].rates = bound[i]
	}
	return errs
}

func attachInFlight(limits []InFlight, routes []boundRoute) (errs []error) {
	bound, errs := bindInFlight(limits, countedOn(routes))
	for i := range routes {
		routes[i].inFlight = bound[i]
	}
	return errs
}

// countedOn are the routes as limits by key see them.
func countedOn(routes []boundRoute) (all []keyedRoute) {
	for i := range routes {
		rt := &routes[i]
		all = append(all, keyedRoute{Name: rt.Name, Names: rt.pattern.Names(), Pass: !rt.limited()})
	}
	return all
}
