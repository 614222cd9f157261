package sale

import "time"

// maxSkew is how far this machine's clock and Redis' may be apart where a sale begins.
const maxSkew = 2 * time.Second

// useLocalClock takes this machine's clock for the shared one: when no Redis is asked, or none has answered yet.
func (b *Schedule) useLocalClock() {
	b.ahead.Store(b.o.Wall().UnixNano() - b.o.Now())
}

// updateClock takes in what Redis' clock said between two moments. mu is held.
func (b *Schedule) updateClock(unix, began, ended int64) {
	by, doubt := unix-(began+ended)/2, (ended-began)/2
	skew := ended + by - b.o.Wall().UnixNano()
	b.skew.Store(skew)
	wrong := max(skew, -skew) > int64(maxSkew)+doubt
	if !wrong || b.clock.Error == 0 {
		b.clock.Update(by, doubt) // while they agree; a clock that jumps away is not followed
		b.ahead.Store(b.clock.By)
	}
	if was := b.wrong.Swap(wrong); was != wrong {
		if wrong {
			b.o.Log.Error("this machine's clock and Redis' are too far apart: no sale begins here until they agree",
				"redis_is_ahead_by", time.Duration(skew).String(), "max_skew", maxSkew.String())
			return
		}
		b.o.Log.Info("this machine's clock and Redis' agree again: sales may begin", "redis_is_ahead_by",
			time.Duration(skew).String())
	}
}

// Skew is by how much Redis' clock is ahead of this machine's, and whether that is too much for a sale to begin.
func (b *Schedule) Skew() (skew time.Duration, wrong bool) {
	return time.Duration(b.skew.Load()), b.wrong.Load()
}
