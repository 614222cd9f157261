package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"sluice/config"
	"sluice/internal/listener"
	"sluice/proxy"
	"sluice/proxy/param"
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
	errs = append(errs, routesCompile(c)...)
	errs = append(errs, pagesCompile(c)...)
	if _, err := param.CompilePriority(c.Limits.Concurrency.Priority); err != nil {
		errs = append(errs, c.Errorf("limits.concurrency.priority", "%v", err))
	}
	return append(errs, checkRooms(c)...)
}

// routesCompile is the rule that routes can be understood, and the limits, keys and rooms on them. What config, or the
// check of the rooms, has found is not told twice.
func routesCompile(c *config.Config) (errs []error) {
	o := proxy.Options{Routes: routes(c)}
	o.Rates, o.InFlight = keyedRates(c), inFlightLimits(c)
	if p := &c.Auth; (p.JWTAlgorithm == "" || p.JWTKey != "") && (p.CookieKeyFile == "" || len(p.CookieKey) >= 16) &&
		(p.OrderTokenKeyFile == "" || len(p.OrderTokenKey) >= 16) {
		o.Auth = proofs(p)
	}
	for _, err := range proxy.Faults(o) {
		switch text := err.Error(); {
		case strings.Contains(text, "needs auth."), strings.Contains(text, "is of a user"),
			strings.Contains(text, "routes: there is no such route"):
		default:
			errs = append(errs, located(c, err))
		}
	}
	return errs
}

// located is a fault of the proxy's options with its place in the file.
func located(c *config.Config, err error) error {
	var ofRoute *route.Error
	var ofLimit *proxy.LimitError
	switch {
	case errors.As(err, &ofRoute):
		for i := range slices.Backward(c.Routes) { // of two with one name the later one is at fault
			if c.Routes[i].Name == ofRoute.Route {
				return c.Errorf(fmt.Sprintf("route[%d].%s", i+1, ofRoute.Key), "%v", ofRoute.Err)
			}
		}
		return err
	case errors.As(err, &ofLimit):
		i := slices.IndexFunc(c.Limits.Rates, func(r config.Rate) bool { return r.Name == ofLimit.Name })
		if ofLimit.Table == "in_flight" {
			i = slices.IndexFunc(c.Limits.InFlight, func(l config.InFlight) bool { return l.Name == ofLimit.Name })
		}
		return c.Errorf(fmt.Sprintf("limits.%s[%d].%s", ofLimit.Table, i+1, ofLimit.Key), "%v", ofLimit.Err)
	}
	key, cause, _ := strings.Cut(err.Error(), ": ")
	return c.Errorf("auth."+key, "%s", cause)
}

// forwardsToItself is the rule that no target is an address at which the gate listens itself: each request would come
// back until no connection is left.
func forwardsToItself(c *config.Config) (errs []error) {
	own := map[string]string{"admin.listen": c.Admin.Listen, "ops.listen": c.Ops.Listen}
	for i, address := range c.Server.Listen {
		own[fmt.Sprintf("server.listen[%d]", i+1)] = address
	}
	for i := range c.Decide {
		own[fmt.Sprintf("decide[%d].listen", i+1)] = c.Decide[i].Listen
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
