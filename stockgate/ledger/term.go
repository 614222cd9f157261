package ledger

import (
	"context"
	"time"
)

// term is the time that the calls have which begin within a little while of each other. Among many SKUs an order is two calls: a
// context with a timer for each would cost more than most of what the desk does for it.
type term struct {
	ctx  context.Context
	end  context.CancelFunc
	last time.Time // no call begins with it later
}

// sooner is the part of Timeout by which a call may have less than others.
const sooner = 64

// term is the time of a call that begins now: Timeout, or a little less. It ends by itself, or with the desk.
func (d *Desk) term() context.Context {
	now := time.Now()
	if t := d.terms.Load(); t != nil && !now.After(t.last) {
		return t.ctx
	}
	ctx, end := context.WithTimeout(d.ctx, d.o.Timeout)
	d.terms.Store(&term{ctx, end, now.Add(d.o.Timeout / sooner)})
	return ctx
}
