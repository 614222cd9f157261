//go:build linux && !noeventloop

package eventloop

import "iter"

// coroutine is a goroutine that serves connections on behalf of the goroutine that leads a loop. The leader switches to
// it and back without the scheduler, on the same thread (iter.Pull): a served request that waits for its upstream costs
// two switches, and wakes no thread.
//
// It runs either on behalf of a leader, or, after StepAside, on its own: then it may block, and the goroutine that
// switched to it waits for its end.
type coroutine struct {
	resume func() (struct{}, bool) // runs it until it parks, or has nothing to serve
	stop   func()                  // ends it while it is idle
	yield  func(struct{}) bool     // the way back

	conn       *Conn      // to be served
	leadership leadership // on whose behalf it runs; none = on its own

	// What it switched back for; nil = it has nothing to serve.
	parkedOn  *Conn
	direction *direction
	err       error // of the park
}

func newCoroutine(serve func(*Conn)) *coroutine {
	co := new(coroutine)
	co.resume, co.stop = iter.Pull(func(yield func(struct{}) bool) {
		co.yield = yield
		for {
			serve(co.conn)
			if co.conn = co.nextConn(); co.conn == nil && !yield(struct{}{}) {
				return
			}
		}
	})
	return co
}

// nextConn returns another connection that co may serve without a switch to the leader and back; nil = none.
func (co *coroutine) nextConn() *Conn {
	t := co.leadership
	if t.loop == nil {
		return nil
	}
	l := t.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader != t.number || len(l.resumed) > 0 || l.closed {
		return nil
	}
	c := l.nextReadable()
	if c != nil {
		c.server = co
		l.served++
	}
	return c
}

// park switches back to the leader, until the leader of any loop resumes the coroutine. The error is that of beginPark.
func (co *coroutine) park(c *Conn, d *direction) error {
	co.parkedOn, co.direction = c, d
	co.yield(struct{}{})
	co.parkedOn = nil
	return co.err
}

// run lets co serve on behalf of t's leader, until it parks or has served its connection. Only the leader records that
// co is parked, after the switch: from then on the leader of another loop may resume it.
func (t leadership) run(co *coroutine) {
	co.leadership, co.err = t, nil
	for {
		co.resume()
		c := co.parkedOn
		if c == nil {
			t.loop.recycle(co)
			return
		}
		parked, err := c.beginPark(co.direction, co)
		if parked { // from here on co may be resumed elsewhere
			return
		}
		co.err = err
	}
}

// maxIdleCoroutines bounds the stacks that a loop keeps for later, which have up to 32 KiB each.
const maxIdleCoroutines = 256

// recycle puts co, which has served its connection, aside for the next one.
func (l *loop) recycle(co *coroutine) {
	l.mu.Lock()
	kept := !l.closed && len(l.idle) < maxIdleCoroutines
	if kept {
		l.idle = append(l.idle, co)
	}
	l.mu.Unlock()
	if !kept {
		co.stop()
	}
}
