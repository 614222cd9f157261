package upstream

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// timed notes the deadlines that are set, and never waits.
type timed struct {
	net.Conn
	set []time.Time
}

func (c *timed) SetDeadline(t time.Time) error     { c.set = append(c.set, t); return nil }
func (c *timed) SetReadDeadline(t time.Time) error { c.set = append(c.set, t); return nil }

func (c *timed) last() time.Duration { return time.Until(c.set[len(c.set)-1]) }

func TestTransport_ExchangeEndsNeverEarlyAndHardlyLate(t *testing.T) {
	const d = 320 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		timer := &timed{}
		c := &conn{Conn: timer}
		for range 1000 {
			if err := c.setExchangeDeadline(time.Now(), d); err != nil {
				t.Fatal(err)
			}
			if left := timer.last(); left < d || left > d+d/deadlineSlack {
				t.Fatalf("%v are left of %v", left, d)
			}
			time.Sleep(time.Millisecond) // of the bubble
		}
		if n := len(timer.set); n > 60 {
			t.Errorf("%d deadlines for 1000 exchanges within a second", n)
		}
	})
}

func TestTransport_DeadlineOfAnotherExchangeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := &timed{}
		c := &conn{Conn: timer}
		for _, d := range []time.Duration{time.Minute, time.Second, time.Minute} {
			_ = c.setExchangeDeadline(time.Now(), d)
			if left := timer.last(); left < d || left > d+d/deadlineSlack {
				t.Errorf("%v are left of %v", left, d)
			}
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Hour))
		_ = c.setExchangeDeadline(time.Now(), time.Minute)
		if left := timer.last(); left > 2*time.Minute {
			t.Errorf("%v are left of a minute", left)
		}
		c.in = responseReader{src: timer, bound: time.Now()} // a stream's
		c.socket = &socket{}
		c.reset()
		if !c.until.IsZero() {
			t.Error("the deadline of a stream is taken for one of the exchange before it")
		}
	})
}
