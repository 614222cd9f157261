package loadtest

import (
	"math"
	"math/rand/v2"
	"time"

	"sluice/internal/load"
)

// The spread of reaction times: their logarithm is normal, as it is found for people who wait for a signal. With 0.5 a
// tenth of them press within half of the median, and one of a hundred takes three times as long.
const spread = 0.5

// arrivals tells when each buyer comes first, in no order of rank. The same plan makes the same crowd.
func (p *Plan) arrivals() []time.Duration {
	dice := rand.New(rand.NewPCG(uint64(p.Buyers), 0x5eed))
	all := make([]time.Duration, p.Buyers)
	for i := range all {
		if p.Shape == Ramp {
			all[i] = time.Duration(float64(p.Spread) * (float64(i) + dice.Float64()) / float64(p.Buyers))
			continue
		}
		at := time.Duration(float64(p.Spread) * math.Exp(spread*dice.NormFloat64()))
		all[i] = min(at, p.comesWithin())
	}
	return all
}

// comesWithin is by when everybody has come once. Who of a spike takes longer comes then.
func (p *Plan) comesWithin() time.Duration {
	if p.Shape == Ramp {
		return p.Spread
	}
	return min(12*p.Spread, p.Spread+10*time.Minute)
}

// Longest is how long a load test may take, with its beginning and its end.
func Longest(shape string, over, patience time.Duration) time.Duration {
	p := Plan{Shape: shape, Spread: over}
	return p.comesWithin() + patience + 2*load.AnswerTimeout + 2*settleWithin
}
