package limiter

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// arrivals gives the instants of a Poisson process of so many a window of 10 ms, for so many windows.
func arrivals(random *rand.Rand, perWindow float64, windows int) (at []int64) {
	for now := 0.0; ; {
		now += random.ExpFloat64() * float64(10*ms) / perWindow
		if now >= float64(windows)*float64(10*ms) {
			return at
		}
		at = append(at, int64(now))
	}
}

// A window rejects some of a load that fits it, since what comes is never even; carry is what that costs less with.
// What is in excess is rejected, and nothing of the budget with it.
func TestLimiter_CarryRejectsLittleAndWastesNothing(t *testing.T) {
	const most, windows = 10, 10_000
	for _, c := range []struct {
		load         float64 // of the budget
		carry        int
		above, below float64 // the share that is rejected
		used         float64 // of the budget, at least
	}{
		{load: 0.9, carry: 0, above: 0.05, below: 0.12},
		{load: 0.9, carry: 1, below: 0.015},
		{load: 0.9, carry: 2, below: 0.003},
		{load: 3, carry: 0, above: 0.66, below: 0.68, used: 0.99},
		{load: 3, carry: 1, above: 0.66, below: 0.68, used: 0.99},
		{load: 3, carry: 2, above: 0.66, below: 0.68, used: 0.99},
	} {
		for _, sku := range []string{"", "1001"} {
			t.Run(fmt.Sprintf("load %v carry %d SKU %q", c.load, c.carry, sku), func(t *testing.T) {
				grid := tenMs(c.carry)
				grid.Phase = 3 * time.Millisecond
				w := NewWindowLimiter(grid, Caps{All: most, PerSKU: most, SKUs: 64})
				all := arrivals(rand.New(rand.NewPCG(7, 11)), c.load*most, windows)
				admitted := 0
				for _, now := range all {
					wait, ok := w.Acquire(now, []byte(sku))
					if ok {
						admitted++
					}
					longest := time.Duration(c.carry+1) * grid.Size
					if wait > longest || ok && wait > time.Duration(c.carry)*grid.Size {
						t.Fatalf("at %v: %v, %v; no request waits for more than carry windows plus one", time.Duration(now), wait, ok)
					}
				}
				rejected := 1 - float64(admitted)/float64(len(all))
				used := float64(admitted) / float64(most*(windows+1+c.carry))
				t.Logf("%.3f%% rejected, %.2f%% of the budget used", 100*rejected, 100*used)
				if rejected < c.above || rejected > c.below || used < c.used {
					t.Errorf("rejected %.4f, want %.4f to %.4f; used %.4f, want at least %.4f", rejected, c.above, c.below, used,
						c.used)
				}
			})
		}
	}
}
