package sale

import "time"

// clock is how far another clock is ahead of ours, found by asking it: what it says is of some instant during the
// question, so that a slow answer leaves more doubt.
type clock struct {
	by, doubt int64 // ns; doubt 0 = never asked
}

// update takes in that the other clock is ahead by so much, plus or minus the doubt. What is known stays, unless this
// is twice as sharp, or proves that the clocks have drifted apart.
func (c *clock) update(by, doubt int64) {
	doubt = max(doubt, int64(time.Microsecond))
	if off := max(by-c.by, c.by-by); c.doubt == 0 || doubt*2 <= c.doubt || off > doubt+c.doubt {
		*c = clock{by, doubt}
	}
}

// useLocalClock takes this machine's clock for the shared one: when no Redis is asked, or none has answered yet.
func (b *Schedule) useLocalClock() {
	b.ahead.Store(b.o.Wall().UnixNano() - b.o.Now())
}

// updateClock takes in what Redis' clock said between two moments. mu is held.
func (b *Schedule) updateClock(unix, began, ended int64) {
	by, doubt := unix-(began+ended)/2, (ended-began)/2
	skew := ended + by - b.o.Wall().UnixNano()
	b.skew.Store(skew)
	wrong := max(skew, -skew) > int64(b.o.MaxSkew)+doubt
	if !wrong || b.clock.doubt == 0 {
		b.clock.update(by, doubt) // while they agree; a clock that jumps away is not followed
		b.ahead.Store(b.clock.by)
	}
	if was := b.wrong.Swap(wrong); was != wrong {
		if wrong {
			b.o.Log.Error("this machine's clock and Redis' are too far apart: no sale begins here until they agree",
				"redis_is_ahead_by", time.Duration(skew).String(), "max_skew", b.o.MaxSkew.String())
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
