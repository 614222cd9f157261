package upstream

import (
	"context"
	"slices"
	"time"
)

// dial is the opening of a connection for a request. An upstream whose accept queue is full drops the first packet,
// which is sent again after a whole second (RFC 6298, section 2), and serves existing connections meanwhile. So after
// half of the connect timeout the request takes a returned connection as well. The target's mutex guards a dial.
type dial struct {
	cancel context.CancelFunc
	ended  bool
	given  *conn // the returned connection; nil = none
}

// connect opens the connection that pop has counted, or takes a returned one where that lasts; a fresh one is opened in
// any case.
func (t *target) connect(order, fresh bool) (*conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := &dial{cancel: cancel}
	if !fresh {
		defer time.AfterFunc(t.connectTimeout/2, func() { t.takeReturned(d) }).Stop()
	}
	c, err := t.dial(ctx, t.connectTimeout)
	given := t.endDial(d, order, err)
	switch {
	case err == nil:
		t.noteReached()
		if given != nil { // both came at the same time
			given.Close()
		}
		c.order = order
		return c, nil
	case given != nil:
		given.order, given.returnedAt = order, t.clock.now()
		return given, nil
	}
	t.noteUnreached(err)
	return nil, err
}

// takeReturned gives d, which is slow, an idle connection or the next that is put back.
func (t *target) takeReturned(d *dial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	switch {
	case d.ended:
	case n > 0 && t.clock.now()-t.idle[n-1].returnedAt < t.maxIdle:
		d.give(t.popLast(false))
	default:
		t.waiting = append(t.waiting, d)
	}
}

// give ends the dial with a connection that was put back. The target's mutex is held.
func (d *dial) give(c *conn) {
	d.given = c
	d.cancel()
}

// endDial counts the result of d, whose error is err: of two connections that are there now one is closed.
func (t *target) endDial(d *dial, order bool, err error) (given *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.ended = true
	if i := slices.Index(t.waiting, d); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	if err != nil || d.given != nil {
		t.open--
	}
	if err != nil && d.given == nil {
		*t.inUse(order)--
	}
	return d.given
}
