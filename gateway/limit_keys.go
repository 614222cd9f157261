package gateway

import (
	"fmt"
	"slices"

	"sluice/admin"
	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/param"
	"sluice/proxy/route"
)

// Key tells how one key of the limit by key of this name stands, after it was reset where reset is true. Errors are
// admin.ErrInvalid.
func (in *limiters) Key(c *config.Config, name string, values []string, reset bool) (admin.KeyState, error) {
	for i := range c.Limits.Rates {
		if r := &c.Limits.Rates[i]; r.Name == name {
			return in.rateKey(c, r, values, reset)
		}
	}
	for _, l := range c.Limits.InFlight {
		if l.Name != name {
			continue
		}
		if reset {
			return admin.KeyState{}, fmt.Errorf("limit %q: %w: it counts requests in flight, which end by themselves; "+
				"raise its max: sluice override set limits.in_flight[%s].max", name, admin.ErrInvalid, name)
		}
		_, key, err := keyOf(c, l.Key, proxy.ClientIPv4Bits, proxy.ClientIPv6Bits, values)
		if err != nil {
			return admin.KeyState{}, invalidKey(name, err)
		}
		held, most := in.inFlight.limiters.Named(name).Usage(key)
		return admin.KeyState{InFlight: held, Max: most, Left: max(most-held, 0)}, nil
	}
	known := c.Limits.KeyedNames()
	if len(known) == 0 {
		return admin.KeyState{}, fmt.Errorf("limit %.80q: %w: no limit counts by key; write [[limits.rate]] or "+
			"[[limits.in_flight]] for one", name, admin.ErrInvalid)
	}
	return admin.KeyState{}, fmt.Errorf("limit %.80q: %w: no limit by key has this name; %s", name, admin.ErrInvalid,
		config.Meant(name, known))
}

// rateKey is Key of a rate.
func (in *limiters) rateKey(c *config.Config, r *config.Rate, values []string, reset bool) (s admin.KeyState,
	err error,
) {
	k, key, err := keyOf(c, r.Key, r.IPv4Prefix, r.IPv6Prefix, values)
	if err != nil {
		return s, invalidKey(r.Name, err)
	}
	overrides, patterns := r.RateOverrides(), []string{}
	for _, o := range overrides {
		patterns = append(patterns, o.Pattern)
	}
	compiled, err := k.Overrides(patterns)
	if err != nil {
		return s, invalidKey(r.Name, err)
	}
	of, rate, burst := r.Name, r.Rate, r.Burst
	switch at := compiled.Of(key); {
	case at == param.ValueTooLong:
		return s, invalidKey(r.Name, fmt.Errorf("the value is longer than what is compared with its overrides"))
	case at >= 0:
		if s.Override = overrides[at].Pattern; overrides[at].Rate == 0 {
			s.Off = true
			return s, nil
		}
		of, rate, burst = fmt.Sprintf("%s[%s]", r.Name, s.Override), overrides[at].Rate, overrides[at].Burst
	}
	limiter := in.rates.Named(of)
	if limiter == nil {
		return s, invalidKey(r.Name, fmt.Errorf("it is not in force"))
	}
	if reset {
		limiter.Reset(key)
	}
	left, wait, whole := limiter.Peek(in.now(), key)
	s.Max, s.Left, s.PerSecond = burst, left, float64(rate)
	s.WaitMS, s.WholeMS = wait.Milliseconds(), whole.Milliseconds()
	return s, nil
}

func invalidKey(name string, err error) error {
	return fmt.Errorf("limit %q: %w: %w", name, admin.ErrInvalid, err)
}

// keyOf is the key of a request with these values. The names of all routes may stand in it.
func keyOf(c *config.Config, text string, ipv4, ipv6 int, values []string) (k param.LimitKey, key []byte, err error) {
	var names []string
	for i := range c.Routes {
		if p, err := route.ParsePattern(c.Routes[i].Match); err == nil {
			names = append(names, p.Names()...)
		}
	}
	slices.Sort(names)
	if k, err = param.CompileLimitKey(text, slices.Compact(names), ipv4, ipv6); err == nil {
		key, err = k.FromValues(values)
	}
	return k, key, err
}
