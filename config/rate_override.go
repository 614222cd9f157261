package config

import (
	"maps"
	"math"
	"slices"
	"sluice/config/position"
	"sluice/config/report"
)

// RateOverride is another rate for the keys whose value matches a pattern.
type RateOverride struct {
	Pattern string
	Rate    PerSecond // 0 = off: they are not counted
	Burst   int       // takes as long to earn as that of the rate, and is at least 1
}

// RateOverrides are the overrides of l, by their patterns.
func (l *Rate) RateOverrides() (all []RateOverride) {
	for _, pattern := range slices.Sorted(maps.Keys(l.Overrides)) {
		o := RateOverride{Pattern: pattern}
		if rate, err := parseRate(l.Overrides[pattern]); err == nil && l.Rate > 0 {
			o.Rate = rate
			o.Burst = int(min(max(math.Ceil(float64(l.Burst)*float64(rate/l.Rate)-1e-9), 1), most))
		}
		all = append(all, o)
	}
	return all
}

// maxRateOverrides bounds what each request of a rate is compared with.
const maxRateOverrides = 32

func (l *Rate) checkOverrides(r *report.Report, at string) {
	r.Rule(at, `patterns with a rate or "off"`)
	if len(l.Overrides) > maxRateOverrides {
		r.Fail(at, "%d patterns are too many; write at most %d", len(l.Overrides), maxRateOverrides)
	}
	for _, pattern := range slices.Sorted(maps.Keys(l.Overrides)) {
		if value := l.Overrides[pattern]; value != "off" {
			if _, err := parseRate(value); err != nil {
				r.Fail(position.Join(at, pattern), "%v, or \"off\"", err)
			}
		}
	}
}
