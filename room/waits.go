package room

import (
	"math"
	"time"
)

// WaitClasses is how many classes a wait is counted in: class k is of waits up to 2^(k/2) seconds, the last of all that
// are longer.
const WaitClasses = 30

// Waits counts people by how long they had waited until they could claim a pass: from joining or from the start,
// whichever was later.
type Waits [WaitClasses]int64

// waitClass is the class of a wait.
func waitClass(wait time.Duration) int {
	if wait <= time.Second {
		return 0
	}
	return min(int(math.Ceil(2*math.Log2(wait.Seconds())-1e-9)), WaitClasses-1)
}

// Quantile is the upper bound of the class in which the wait of that share of people is, at most 41 % too much. ok is
// false while there are none.
func (w *Waits) Quantile(share float64) (wait time.Duration, ok bool) {
	all := int64(0)
	for _, n := range w {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	rank := max(int64(math.Ceil(share*float64(all))), 1)
	for k, n := range w {
		if rank -= n; rank <= 0 {
			wait = time.Duration(math.Pow(2, float64(k)/2) * float64(time.Second))
			break
		}
	}
	return wait.Round(100 * time.Millisecond), true
}

// waited is how long a person had waited who joined at joined and could claim a pass from then on (Unix ms), in a room
// whose start is starts.
func waited(joined, from, starts int64) time.Duration {
	return time.Duration(max(from-max(joined, starts), 0)) * time.Millisecond
}
