package redisconn

import "time"

// Clock is how far Redis' clock is ahead of ours, found by asking it: what it says is of some instant during the
// question, so that a slow answer leaves a greater error. Its zero value was never asked.
type Clock struct {
	By, Error int64 // ns; Error 0 = never asked
}

// Update takes in that Redis' clock is ahead by so much, plus or minus the error. What is known stays, unless this is
// twice as sharp, or proves that the clocks have drifted apart.
func (c *Clock) Update(by, doubt int64) {
	doubt = max(doubt, int64(time.Microsecond))
	if off := max(by-c.By, c.By-by); c.Error == 0 || doubt*2 <= c.Error || off > doubt+c.Error {
		*c = Clock{by, doubt}
	}
}
