package main

import (
	"errors"
	"fmt"
	"slices"

	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// rateSpecs are the tables that c's keyed rates count in.
func rateSpecs(c *config.Config) (specs []limiter.RateSpec) {
	for _, r := range c.Limits.Rates {
		specs = append(specs, limiter.RateSpec{
			Name: r.Name, Of: fmt.Sprintf("%s /%d /%d", r.Key, r.IPv4Prefix, r.IPv6Prefix),
			PerSecond: float64(r.Rate), Burst: r.Burst, MaxKeys: r.MaxKeys,
		})
	}
	return specs
}

// keyedRates are c's keyed rates, without anything to count in.
func keyedRates(c *config.Config) (rates []proxy.KeyedRate) {
	for _, r := range c.Limits.Rates {
		rates = append(rates, proxy.KeyedRate{
			Name: r.Name, Key: r.Key, Routes: r.Routes, IPv4Prefix: r.IPv4Prefix, IPv6Prefix: r.IPv6Prefix,
			Observe: !r.Enforce, Burst: r.Burst, PerSecond: float64(r.Rate),
		})
	}
	return rates
}

// observeOnly are the reasons of the limits that are only observed.
func observeOnly(c *config.Config) (reasons []reject.Reason) {
	if !c.Limits.Connection.Enforce {
		reasons = append(reasons, reject.ConnOpen, reject.IPConns, reject.ConnRate)
	}
	if !c.Limits.Window.Enforce {
		reasons = append(reasons, reject.Window)
	}
	if !c.Limits.Concurrency.Enforce {
		reasons = append(reasons, reject.Concurrency, reject.QueueTimeout)
	}
	return reasons
}

// ratesCompile is the rule that every keyed rate's key can be understood on its routes.
func ratesCompile(c *config.Config) (errs []error) {
	for _, err := range proxy.CompileRates(keyedRates(c), routes(c)) {
		var at *proxy.RateError
		if !errors.As(err, &at) {
			errs = append(errs, err)
			continue
		}
		i := slices.IndexFunc(c.Limits.Rates, func(r config.Rate) bool { return r.Name == at.Rate })
		errs = append(errs, c.Errorf(fmt.Sprintf("limits.rate[%d].%s", i+1, at.Key), "%v", at.Err))
	}
	return errs
}

// sayRates says in numbers what the keyed rates amount to.
func sayRates(r *config.Rate) string {
	text := fmt.Sprintf("%s: %.3g/s of each %s, burst %d; %d keys in %.1f MiB",
		r.Name, float64(r.Rate), r.Key, r.Burst, r.MaxKeys, float64(r.MaxKeys)*16/(1<<20))
	if !r.Enforce {
		text += "; only observed"
	}
	return text
}
