package proxy

import (
	"errors"
	"fmt"
	"slices"
)

// RateError names the keyed rate and the key of it that cannot be compiled.
type RateError struct {
	Rate, Key string
	Err       error
}

func (e *RateError) Error() string { return fmt.Sprintf("rate %q: %s: %v", e.Rate, e.Key, e.Err) }
func (e *RateError) Unwrap() error { return e.Err }

// CompileRates reports everything that is wrong with rates on routes, once nothing is wrong with these; each error is a
// *RateError.
func CompileRates(rates []KeyedRate, routes []Route) (errs []error) {
	compiled, errs := compileRoutes(routes)
	if len(errs) > 0 {
		return nil
	}
	return attachRates(rates, compiled)
}

// attachRates gives each route the rates that count on it, in their order.
func attachRates(rates []KeyedRate, routes []route) (errs []error) {
	for i := range rates {
		if err := attach(&rates[i], routes); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// attach finds the routes of one rate. One that counts on all but pass skips those whose path lacks a name in its key:
// no request there has the key.
func attach(in *KeyedRate, routes []route) error {
	for _, name := range in.Routes {
		if !slices.ContainsFunc(routes, func(r route) bool { return r.Name == name }) {
			return &RateError{in.Name, "routes", errors.New("there is no such route")}
		}
	}
	attached, fault := 0, errors.New("every route is pass: name the routes that it shall count on")
	for i := range routes {
		named := slices.Contains(in.Routes, routes[i].Name)
		if !named && (len(in.Routes) > 0 || !routes[i].gated()) {
			continue
		}
		m, err := newMeter(in, &routes[i])
		if err == nil {
			routes[i].meters = append(routes[i].meters, m)
			attached++
			continue
		}
		fault = fmt.Errorf("on route %q: %w", routes[i].Name, err)
		if named {
			return &RateError{in.Name, "key", fault}
		}
	}
	if attached == 0 {
		return &RateError{in.Name, "key", fault}
	}
	return nil
}

// boundOf names a rate and how large it is.
func boundOf(in *KeyedRate) string {
	return fmt.Sprintf("limits.rate %s: %.3g/s, burst %d", in.Name, in.PerSecond, in.Burst)
}

func newMeter(in *KeyedRate, on *route) (m meter, err error) {
	m = meter{KeyedRate: in, policy: policyOf(in), quota: []byte(`"` + in.Name + `";r=`), bound: boundOf(in)}
	if m.key, err = compileVariable(in.Key, &on.pattern); err != nil {
		return m, err
	}
	if !slices.ContainsFunc(m.key.parts, func(p part) bool { return p.source != literal }) {
		return m, fmt.Errorf("%q is the same for everybody", in.Key)
	}
	if (m.key.uses(formField) || m.key.uses(jsonField)) && !on.gated() {
		return m, errors.New("the bodies of a pass route are not looked into")
	}
	return m, nil
}
