package upstream

import (
	"context"
	"slices"
	"time"
)

// dial is the opening of a connection for a request. A shop that has no room for newcomers drops what they send first, which is sent
// again after a whole second (RFC 6298, section 2), and serves those whom it knows meanwhile. So once half of the time for it is
// over, the request takes what others put back as well.
type dial struct {
	end  context.CancelFunc
	over bool
	got  *conn // what was put back; nil = nothing
}

// connect opens the connection that pop has counted, or takes one that is put back where that takes its time; a fresh one
// is opened in any case.
func (t *target) connect(order, fresh bool) (*conn, error) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	d := &dial{end: end}
	if !fresh {
		defer time.AfterFunc(t.timeout/2, func() { t.hope(d) }).Stop()
	}
	c, err := t.dial(ctx, t.timeout)
	got := t.dialed(d, order, err)
	switch {
	case err == nil:
		t.noteReached()
		if got != nil { // both came at the same time
			got.Close()
		}
		c.order = order
		return c, nil
	case got != nil:
		got.order, got.idle = order, t.clock.now()
		return got, nil
	}
	t.noteUnreached(err)
	return nil, err
}

// hope takes what is idle for d, or what is put back next: d takes its time.
func (t *target) hope(d *dial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	switch {
	case d.over:
	case n > 0 && t.clock.now()-t.idle[n-1].idle < t.maxIdle:
		d.take(t.last(false))
	default:
		t.slow = append(t.slow, d)
	}
}

// take ends the dial, since c will do. The mutex of the target is held.
func (d *dial) take(c *conn) {
	d.got = c
	d.end()
}

// dialed counts what came of d, whose error is err: of two connections that are there now one alone is.
func (t *target) dialed(d *dial, order bool, err error) (got *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.over = true
	if i := slices.Index(t.slow, d); i >= 0 {
		t.slow = slices.Delete(t.slow, i, i+1)
	}
	if err != nil || d.got != nil {
		t.open--
	}
	if err != nil && d.got == nil {
		t.ended(order)
	}
	return d.got
}
