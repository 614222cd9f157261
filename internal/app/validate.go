package app

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"sluice/config"
	"sluice/internal/app/limits"
	"sluice/internal/app/rooms"
	"sluice/internal/app/stores"
	"sluice/internal/listener"
	"sluice/proxy"
	"sluice/proxy/keyed"
	"sluice/proxy/limitkey"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// Validate is the rule that every route's pattern and variables can be understood, and the certificate read.
func Validate(c *config.Config) (errs []error) {
	if c.Server.TLS != nil && c.Server.TLS.CertFile != "" && c.Server.TLS.KeyFile != "" {
		if _, err := tlsConfig(c.Server.TLS, slog.Default()); err != nil {
			errs = append(errs, c.Errorf("server.tls", "%v", err))
		}
	}
	errs = append(errs, forwardsToItself(c)...)
	errs = append(errs, scriptCompiles(c)...)
	for _, err := range proxy.CompileRoutes(routes(c)) {
		var at *route.Error
		if !errors.As(err, &at) {
			errs = append(errs, err)
			continue
		}
		for i := range slices.Backward(c.Routes) { // of two with one name the later one is at fault
			if c.Routes[i].Name == at.Route {
				errs = append(errs, c.Errorf(fmt.Sprintf("route[%d].%s", i+1, at.Key), "%v", at.Err))
				break
			}
		}
	}
	errs = append(errs, pagesCompile(c)...)
	errs = append(errs, proofCompiles(c)...)
	if _, err := limitkey.CompilePriority(c.Limits.Concurrency.Priority); err != nil {
		errs = append(errs, c.Errorf("limits.concurrency.priority", "%v", err))
	}
	errs = append(errs, roomsCompile(c)...)
	errs = append(errs, ratesCompile(c)...)
	return append(errs, inFlightCompile(c)...)
}

// forwardsToItself is the rule that no target is an address at which the gate listens itself: each request would come
// back until no connection is left.
func forwardsToItself(c *config.Config) (errs []error) {
	own := map[string]string{"admin.listen": c.Admin.Listen, "ops.listen": c.Ops.Listen}
	for i, address := range c.Server.Listen {
		own[fmt.Sprintf("server.listen[%d]", i+1)] = address
	}
	for i, target := range c.Upstream.Targets {
		for _, key := range slices.Sorted(maps.Keys(own)) {
			if listener.Reaches(target, own[key]) {
				errs = append(errs, c.Errorf(fmt.Sprintf("upstream.targets[%d]", i+1),
					"%q is the gateway's own address (%s = %q); write the address of the shop", target, key, own[key]))
				break
			}
		}
	}
	return errs
}

// scriptCompiles is the rule that [stock.script] can be understood.
func scriptCompiles(c *config.Config) []error {
	if !c.Stock.Script.Used() {
		return nil
	}
	_, errs := stores.CompileScript(c)
	return errs
}

// pagesCompile is the rule that own pages and languages can be used.
func pagesCompile(c *config.Config) []error {
	if len(c.Responses.Pages) == 0 {
		return nil
	}
	_, err := reject.New(responses(&c.Responses))
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "languages: "):
		return []error{c.Errorf("responses.languages", "%s", strings.TrimPrefix(err.Error(), "languages: "))}
	}
	return []error{c.Errorf("responses.template_dir", "%v", err)}
}

// proofCompiles is the rule that keys can be used, and that routes find what they want proven. What config has found
// missing is not told twice.
func proofCompiles(c *config.Config) []error {
	p := &c.Auth
	if p.JWTAlgorithm != "" && p.JWTKey == "" || p.CookieKeyFile != "" && len(p.CookieKey) < 16 ||
		p.OrderTokenKeyFile != "" && len(p.OrderTokenKey) < 16 {
		return nil
	}
	err := proxy.CompileAuth(proofs(p), routes(c))
	var at *route.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &at):
		key, cause, _ := strings.Cut(err.Error(), ": ")
		return []error{c.Errorf("auth."+key, "%s", cause)}
	case strings.Contains(at.Error(), "needs auth."), strings.Contains(at.Error(), "is of a user and a SKU"):
		return nil // told by config
	}
	for i := range c.Routes {
		if c.Routes[i].Name == at.Route {
			return []error{c.Errorf(fmt.Sprintf("route[%d].%s", i+1, at.Key), "%v", at.Err)}
		}
	}
	return []error{err}
}

// roomsCompile is the rule that rooms fit their sales, routes and keys.
func roomsCompile(c *config.Config) []error {
	errs := rooms.Check(c)
	var at *route.Error
	if len(errs) > 0 || !errors.As(proxy.CompileRooms(routes(c)), &at) {
		return errs
	}
	for i := range c.Routes {
		if c.Routes[i].Name == at.Route {
			return []error{c.Errorf(fmt.Sprintf("route[%d].%s", i+1, at.Key), "%v", at.Err)}
		}
	}
	return []error{at}
}

// ratesCompile is the rule that every keyed rate's key can be understood on its routes.
func ratesCompile(c *config.Config) (errs []error) {
	for _, err := range proxy.CompileRates(limits.KeyedRates(c), routes(c)) {
		var at *keyed.Error
		if !errors.As(err, &at) {
			errs = append(errs, err)
			continue
		}
		i := slices.IndexFunc(c.Limits.Rates, func(r config.Rate) bool { return r.Name == at.Name })
		errs = append(errs, c.Errorf(fmt.Sprintf("limits.rate[%d].%s", i+1, at.Key), "%v", at.Err))
	}
	return errs
}

// inFlightCompile is the same rule for the keys of limits in flight.
func inFlightCompile(c *config.Config) (errs []error) {
	for _, err := range proxy.CompileInFlight(limits.KeyedInFlight(c), routes(c)) {
		var at *keyed.Error
		if !errors.As(err, &at) {
			errs = append(errs, err)
			continue
		}
		i := slices.IndexFunc(c.Limits.InFlight, func(l config.InFlight) bool { return l.Name == at.Name })
		errs = append(errs, c.Errorf(fmt.Sprintf("limits.in_flight[%d].%s", i+1, at.Key), "%v", at.Err))
	}
	return errs
}
