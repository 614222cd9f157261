package gateway

import (
	"fmt"

	"sluice/admin"
	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// rateSpecs are those of [[limits.rate]]: each rate, and then those of its overrides that count.
func rateSpecs(l *config.Limits) (specs []limiter.RateSpec) {
	for _, r := range l.Rates {
		spec := limiter.RateSpec{
			Name: r.Name, Of: fmt.Sprintf("%s /%d /%d", r.Key, r.IPv4Prefix, r.IPv6Prefix),
			PerSecond: float64(r.Rate), Burst: r.Burst, MaxDelay: r.MaxDelay, MaxKeys: r.MaxKeys,
			Fleet: r.Scope == "fleet",
		}
		specs = append(specs, spec)
		for _, o := range r.RateOverrides() {
			if o.Rate > 0 {
				spec.Name, spec.PerSecond, spec.Burst = fmt.Sprintf("%s[%s]", r.Name, o.Pattern), float64(o.Rate), o.Burst
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// countIn has rates count in the limiters of rateSpecs.
func countIn(rates []proxy.Rate, counted []*limiter.RateLimiter) {
	for i := range rates {
		rates[i].Limiter, counted = counted[0], counted[1:]
		for j := range rates[i].Overrides {
			if o := &rates[i].Overrides[j]; !o.Off {
				o.Limiter, counted = counted[0], counted[1:]
			}
		}
	}
}

// keyedRates are c's keyed rates, without anything to count in.
func keyedRates(c *config.Config) (rates []proxy.Rate) {
	for _, r := range c.Limits.Rates {
		rate := proxy.Rate{
			Name: r.Name, Key: r.Key, Routes: r.Routes, IPv4Prefix: r.IPv4Prefix, IPv6Prefix: r.IPv6Prefix,
			Observe: !c.Limits.Enforced(r.Name), Burst: r.Burst, PerSecond: float64(r.Rate), MaxDelay: r.MaxDelay,
		}
		for _, o := range r.RateOverrides() {
			rate.Overrides = append(rate.Overrides, proxy.RateOverride{Pattern: o.Pattern, Off: o.Rate == 0, Burst: o.Burst,
				PerSecond: float64(o.Rate)})
		}
		rates = append(rates, rate)
	}
	return rates
}

// inFlightLimits are c's limits in flight, without anything to count in.
func inFlightLimits(c *config.Config) (all []proxy.InFlight) {
	for _, l := range c.Limits.InFlight {
		all = append(all, proxy.InFlight{
			Name: l.Name, Key: l.Key, Routes: l.Routes, Observe: !c.Limits.Enforced(l.Name), Max: l.Max,
		})
	}
	return all
}

// inFlightLimiters are the limits of requests in flight by key.
type inFlightLimiters struct {
	limiters limiter.InFlightLimiters
	apply    func() // puts into force what prepare has made
}

func (in *inFlightLimiters) prepare(c *config.Config) []proxy.InFlight {
	var specs []limiter.InFlightSpec
	for _, l := range c.Limits.InFlight {
		specs = append(specs, limiter.InFlightSpec{Name: l.Name, Max: l.Max, Of: l.Key})
	}
	counted, use := in.limiters.Prepare(specs)
	in.apply = use
	all := inFlightLimits(c)
	for i := range all {
		all[i].Limiter = counted[i]
	}
	return all
}

// showKeyed tells the API of the limits of keys.
func (in *limiters) showKeyed(c *config.Config, number func(key string) admin.Number) (all []admin.Limit) {
	for _, r := range c.Limits.Rates {
		l := admin.Limit{Name: r.Name, ObserveOnly: !c.Limits.Enforced(r.Name),
			Reasons: []string{reject.Rate.String()}, Now: []admin.Now{}}
		for _, name := range []string{"rate", "burst"} {
			l.Numbers = append(l.Numbers, number("limits.rate["+r.Name+"]."+name))
		}
		all = append(all, l)
	}
	for _, f := range c.Limits.InFlight {
		keys, requests := in.inFlight.limiters.InFlight(f.Name)
		all = append(all, admin.Limit{Name: f.Name, ObserveOnly: !c.Limits.Enforced(f.Name),
			Reasons: []string{reject.InFlight.String()},
			Numbers: []admin.Number{number("limits.in_flight[" + f.Name + "].max")},
			Now:     []admin.Now{{Name: "in_flight", Value: float64(requests)}, {Name: "keys", Value: float64(keys)}}})
	}
	return all
}
