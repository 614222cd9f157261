package loadtest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"sluice/internal/load"
)

// Crowd is who comes, and when.
type Crowd struct {
	Buyers      int
	Addresses   int           // that they come from; 0 = one each
	Shape       string        // Spike or Ramp
	Spread      time.Duration // Spike: half of them have come by then; Ramp: all of them; 0 = usual
	GiveUpAfter time.Duration // after the last of them has come, all go home
	Tries       int           // orders of one buyer at most
	Connections int           // that they share; of a SandboxOptions 0 = as many as the gateway can keep waiting
}

// Shapes of a crowd, with their usual spread.
const (
	Spike = "spike" // all want it at once, and people take a while to press
	Ramp  = "ramp"  // as many in each second
)

var usualSpread = map[string]time.Duration{Spike: 300 * time.Millisecond, Ramp: time.Minute}

// Check reports what is out of range, by the name of its flag.
func (c *Crowd) Check() error {
	const mostBuyers = 5_000_000
	switch {
	case usualSpread[c.Shape] == 0:
		return fmt.Errorf("--shape %q: it is %s or %s", c.Shape, Spike, Ramp)
	case c.Buyers < 1 || c.Buyers > mostBuyers:
		return fmt.Errorf("--buyers %d: it takes 1 to %d", c.Buyers, mostBuyers)
	case c.Spread < 0 || c.Spread > 5*time.Minute:
		return fmt.Errorf("--over %s: it takes up to 5m", c.Spread)
	case c.GiveUpAfter <= 0 || c.GiveUpAfter > 15*time.Minute:
		return fmt.Errorf("--patience %s: it takes up to 15m", c.GiveUpAfter)
	case c.Tries < 1 || c.Tries > 255:
		return fmt.Errorf("--tries %d: it takes 1 to 255", c.Tries)
	case c.Addresses < 0 || c.Connections < 0 || c.Connections > 20_000:
		return fmt.Errorf("--addresses and --connections must not be negative, nor --connections above 20000")
	}
	return nil
}

func (c *Crowd) spread() time.Duration { return cmp.Or(c.Spread, usualSpread[c.Shape]) }

// The spread of reaction times: their logarithm is normal, as it is found for people who wait for a signal. With 0.5 a
// tenth of them press within half of the median, and one of a hundred takes three times as long.
const spread = 0.5

// arrivals tells when each buyer comes first, in no order of rank. The same plan makes the same crowd.
func (c *Crowd) arrivals() []time.Duration {
	dice := rand.New(rand.NewPCG(uint64(c.Buyers), 0x5eed))
	all := make([]time.Duration, c.Buyers)
	for i := range all {
		if c.Shape == Ramp {
			all[i] = time.Duration(float64(c.spread()) * (float64(i) + dice.Float64()) / float64(c.Buyers))
			continue
		}
		at := time.Duration(float64(c.spread()) * math.Exp(spread*dice.NormFloat64()))
		all[i] = min(at, c.comesWithin())
	}
	return all
}

// comesWithin is by when everybody has come once. Who of a spike takes longer comes then.
func (c *Crowd) comesWithin() time.Duration {
	if c.Shape == Ramp {
		return c.spread()
	}
	return min(12*c.spread(), c.spread()+10*time.Minute)
}

// longest is how long a load test may take, with its beginning and its end.
func (c *Crowd) longest() time.Duration {
	return c.comesWithin() + c.GiveUpAfter + 2*load.AnswerTimeout + 2*settleWithin
}
