package proxy

import (
	"errors"
	"fmt"
	"slices"

	"sluice/proxy/metrics"
	"sluice/proxy/param"
)

// keyedRoute is what a limit needs to know of a route.
type keyedRoute struct {
	Name  string
	Names []string // the {names} of its pattern
	Pass  bool     // no limit counts there unless it names the route
}

// keyedLimit is what both kinds of limits are on one route.
type keyedLimit struct {
	Name     string
	Observe  bool // count its rejections, and go on
	Key      param.LimitKey
	Counters metrics.Rate
}

// key compiles the key of a limit on the route.
func (k *keyedRoute) key(text string, ipv4Prefix, ipv6Prefix int) (key param.LimitKey, err error) {
	key, err = param.CompileLimitKey(text, k.Names, ipv4Prefix, ipv6Prefix)
	if err == nil && k.Pass && key.Variable().NeedsBody() {
		err = errors.New("the bodies of a pass route are not read")
	}
	return key, err
}

// LimitError names the limit that cannot count, and the key of its table that is wrong.
type LimitError struct {
	Table string // "rate" or "in_flight"
	Name  string
	Key   string
	Err   error
}

func (l *LimitError) Error() string {
	return fmt.Sprintf("%s %q: %s: %v", l.Table, l.Name, l.Key, l.Err)
}

func (l *LimitError) Unwrap() error { return l.Err }

// overrideError is wrong in Overrides, and not in the key.
type overrideError struct{ error }

// bindLimit binds a limit to the routes on which it counts, or says why it never could; key is the key of it that is
// wrong. A limit that counts on all routes but pass skips those whose path lacks a name in its key: no request there
// has the key.
func bindLimit(names []string, routes []keyedRoute, to func(at int) error) (key string, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(routes, func(rt keyedRoute) bool { return rt.Name == name }) {
			return "routes", errors.New("there is no such route")
		}
	}
	attached, fault := 0, errors.New("every route is pass: name the routes that it shall count on")
	for i := range routes {
		named := slices.Contains(names, routes[i].Name)
		if !named && (len(names) > 0 || routes[i].Pass) {
			continue
		}
		err := to(i)
		if err == nil {
			attached++
			continue
		}
		if wrong := (*overrideError)(nil); errors.As(err, &wrong) {
			return "overrides", wrong.error
		}
		fault = fmt.Errorf("on route %q: %w", routes[i].Name, err)
		if named {
			return "key", fault
		}
	}
	if attached == 0 {
		return "key", fault
	}
	return "", nil
}
