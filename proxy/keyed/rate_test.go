package keyed

import "testing"

func TestRate_PolicyIsTheBurstAndTheTimeThatEarnsIt(t *testing.T) {
	for _, c := range []struct {
		burst     int
		perSecond float64
		want      string
	}{{40, 20, `"r";q=40;w=2`}, {10, 3, `"r";q=10;w=4`}, {5, 1000, `"r";q=5;w=1`}, {1 << 30, 1e-9, `"r";q=1073741824`}} {
		if got := string(policyOf("r", c.perSecond, c.burst)); got != c.want {
			t.Errorf("burst %d, %v/s: %s, want %s", c.burst, c.perSecond, got, c.want)
		}
	}
}
