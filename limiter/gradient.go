package limiter

import (
	"math"
	"time"
)

// gradientSearch is the search for the limit at which a shop is busy and has no queue. It goes up while more in flight
// means more answers; where that is not so from the start, down while fewer in flight means no fewer. Then it rests a
// little below the top, and looks again from time to time. A stride counts as fruitful when at least half of it has an
// effect.
type gradientSearch struct {
	limit  float64
	stride float64 // of the last step, as a share of the limit; < 0 = downwards, 0 = at rest
	fresh  bool    // the last step was the first of its search
	skip   int     // views that are not to be compared with any, before a search begins downwards
	before view    // at the step before
	low    view    // at the lowest limit of this search
	high   view    // at the highest
	wakes  int64   // ns: when the rest ends
	bare   float64 // ns: the round trip at the lowest limit of the last search that went down; 0 = none did
}

// view is what was seen at one limit.
type view struct{ limit, trip float64 } // trip in ns; 0 = nothing was seen

// speed is the answers a nanosecond (Little's law).
func (v view) speed() float64 { return v.limit / v.trip }

const (
	stride     = 0.2
	plunge     = 0.3 // the first stride downwards: a shop in distress is relieved soon, and rest finds the way back
	longStride = 0.5
	restFor    = int64(3 * time.Second)
	restAt     = 0.93 // of what keeps the shop just busy
	suspicious = 1.1  // by this the round trip is longer than without a queue before a search looks below the limit
	startled   = 1.3  // by this the round trip changes before a rest is broken off
)

// step takes in the n answers, of sum ns in all, since the last step; room is whether the limit may rise.
func (c *gradientSearch) step(now, n, sum int64, room bool) {
	if n == 0 { // the shop says nothing at all
		c.limit = math.Floor(c.limit * (1 - longStride))
		c.pause(now)
		return
	}
	seen := view{c.limit, float64(sum) / float64(n)}
	switch {
	case c.stride != 0:
		c.evaluateStride(now, seen)
	case c.skip > 0:
		if c.skip--; c.skip == 0 {
			c.search(seen, -plunge)
		}
	case c.wakes == 0: // nothing is known of the shop
		c.search(seen, longStride)
	case c.slower(seen):
		c.skip = 1 // this view is part before and part after: it cannot be compared with the next
	case !c.faster(seen) && now < c.wakes:
		c.grow(seen)
	case room && c.faster(seen):
		c.bare = 0 // it is another shop now
		c.search(seen, stride)
	case room:
		c.search(seen, stride)
	default:
		c.search(seen, -stride)
	}
}

// idle takes in the n answers of a step in which there were too few shoppers to fill the limit.
func (c *gradientSearch) idle(now, n, sum int64) {
	if c.stride != 0 || c.skip > 0 {
		c.pause(now)
	}
	if n > 0 {
		c.grow(view{c.limit, float64(sum) / float64(n)})
	}
}

func (c *gradientSearch) slower(seen view) bool {
	return c.before.trip > 0 && seen.trip > startled*c.before.trip
}
func (c *gradientSearch) faster(seen view) bool { return c.before.trip > startled*seen.trip }

// grow has what is usual at rest follow what is seen.
func (c *gradientSearch) grow(seen view) {
	if c.before.trip > 0 {
		seen.trip = c.before.trip + (seen.trip-c.before.trip)/4
	}
	c.before = seen
}

// search begins to climb from what is seen now.
func (c *gradientSearch) search(seen view, by float64) {
	c.low, c.high = seen, seen
	c.before, c.fresh = seen, true
	c.move(by)
}

// move makes the next stride, of one request at least.
func (c *gradientSearch) move(by float64) {
	c.stride = by
	if by > 0 {
		c.limit = math.Ceil(c.limit * (1 + by))
	} else {
		c.limit = math.Floor(c.limit * (1 + by))
	}
}

// evaluateStride goes on, turns round or rests, by what the last stride has brought.
func (c *gradientSearch) evaluateStride(now int64, seen view) {
	if seen.trip > startled*c.low.trip*max(1, seen.limit/c.low.limit) { // more than a longer queue can explain
		from := c.high.limit
		if c.stride > 0 {
			from = c.low.limit
		}
		c.pause(now)
		c.limit, c.skip = from, 1 // it is not the stride's doing: undo the search
		return
	}
	before := c.before
	c.before = seen
	if seen.limit <= c.low.limit {
		c.low = seen
	}
	if seen.limit >= c.high.limit {
		c.high = seen
	}
	gain := seen.speed()/before.speed() - 1
	fruitful := gain >= (seen.limit/before.limit-1)/2
	first := c.fresh
	c.fresh = false
	switch {
	case fruitful:
		c.move(max(min(c.stride*1.5, longStride), -longStride))
	case first && c.stride > 0 && c.queued():
		c.move(-stride)
	default:
		early := first || c.wakes == 0
		c.settleLimit(now)
		if early { // on little evidence
			c.wakes = now + restFor/4
		}
	}
}

// queued reports whether requests may be waiting in the shop already at the lowest limit of this search: to look below
// it costs goodput, and is for when the round trip is longer than it was known to be without them.
func (c *gradientSearch) queued() bool { return c.bare == 0 || c.low.trip > suspicious*c.bare }

// settleLimit settles where the speed of the highest limit and the round trip of the lowest meet: the shop is as fast,
// and no request waits in it.
func (c *gradientSearch) settleLimit(now int64) {
	c.limit = max(c.low.limit, min(math.Round(restAt*c.high.speed()*c.low.trip), c.high.limit))
	usual := c.low
	if c.stride < 0 || c.low.trip < c.bare {
		c.bare = c.low.trip
	}
	c.pause(now)
	c.before = usual
}

// pause ends a search and keeps the limit.
func (c *gradientSearch) pause(now int64) {
	*c = gradientSearch{limit: c.limit, wakes: now + restFor, bare: c.bare}
}
