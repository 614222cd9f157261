package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// RoomCounts are what the crowd did and heard in a waiting room.
type RoomCounts struct {
	Joined int64 `json:"joined"` // shoppers who got a number; who comes too late gets another, and counts once
	Polls  int64 `json:"polls"`  // requests at the room but for joins
	Passes int64 `json:"passes"`
	Ended  int64 `json:"told_of_the_end"` // shoppers who were told that the room is over, and never called
}

// RoomOutcome is what one shopper heard in a waiting room.
type RoomOutcome struct {
	Called bool
	Home   Ending // how the shopper went home, in the end
	Joined int64  // Unix ms by the gateway, when it told the shopper's number; 0 = it did not
	Over   int64  // Unix ms, when the room was over for the shopper; 0 = the shopper did not hear of it
}

// RoomOutcome is that of a shopper, once the crowd has run. The first shopper is 0.
func (c *Crowd) RoomOutcome(shopper int) RoomOutcome { return c.outcomes[shopper] }

// seat is what a shopper has of a waiting room.
type seat struct {
	ticket, pass string
	called       bool
}

// passOf is the shopper's pass; "" = none.
func (c *Crowd) passOf(shopper int32) string {
	stored, _ := c.seats.Load(shopper)
	s, _ := stored.(seat)
	return s.pass
}

// wait makes one request at the waiting room: a shopper joins, polls as told, and claims a pass once called, with which
// an order follows.
func (c *Crowd) wait(ctx context.Context, l *connection, v due) {
	stored, _ := c.seats.Load(v.shopper)
	s, _ := stored.(seat)
	method, action := "POST", "join"
	switch {
	case s.called:
		action = "pass"
	case s.ticket != "":
		method, action = "GET", "me"
	}
	if action != "join" {
		c.count(func(n *Counts) { n.Room.Polls++ })
	}
	number := c.plan.First + int(v.shopper)
	l.out = c.form.appendRoomRequest(l.out[:0], method, action, s.ticket, number, c.address(number))
	switch a, ok := l.exchange(ctx); {
	case ok:
		c.hear(v.shopper, s, a)
	case ctx.Err() == nil:
		c.count(func(n *Counts) { n.Broken++ })
		c.waitAgain(v.shopper, time.Second)
	}
}

// hear has a shopper in seat s do what an answer of the room says.
func (c *Crowd) hear(shopper int32, s seat, a answer) {
	outcome := &c.outcomes[shopper]
	outcome.Called = outcome.Called || a.claimFrom != 0
	how, final := a.ends()
	switch {
	case a.reason != "":
		c.count(func(n *Counts) { n.add(a) })
		if !final {
			c.waitAgain(shopper, max(a.wait, time.Second))
			return
		}
		outcome.Over = time.Now().UnixMilli()
		c.leaveRoom(shopper, how)
		return
	case a.phase == "over":
		outcome.Over = a.clock
		c.leaveRoom(shopper, SoldOut)
		return
	case a.pass != "":
		c.count(func(n *Counts) { n.Room.Passes++ })
		s.pass = a.pass
		c.seats.Store(shopper, s)
		c.visitAgain(visit{shopper: shopper}, rand.N(time.Second)) // people take a while to press
		return
	case a.state == "called" && c.plan.Absent != nil && c.plan.Absent(c.plan.First+int(shopper)):
		c.goHome(shopper, GaveUp)
		return
	case a.state == "called":
		s.called, a.poll = true, 0
	case a.ticket != "":
		s = seat{ticket: a.ticket}
		if outcome.Joined == 0 {
			outcome.Joined = a.clock
			c.count(func(n *Counts) { n.Room.Joined++ })
		}
	case a.state != "waiting": // it was called and came too late
		s = seat{}
	}
	c.seats.Store(shopper, s)
	c.waitAgain(shopper, a.poll)
}

// leaveRoom has a shopper go home because the room is over.
func (c *Crowd) leaveRoom(shopper int32, how Ending) {
	if how == SoldOut && !c.outcomes[shopper].Called {
		c.count(func(n *Counts) { n.Room.Ended++ })
	}
	c.goHome(shopper, how)
}

func (c *Crowd) waitAgain(shopper int32, pause time.Duration) {
	c.visitAgain(visit{shopper: shopper, waits: true}, pause)
}

// appendRoomRequest appends a request at one of the addresses of the waiting room.
func (f *form) appendRoomRequest(dst []byte, method, action, ticket string, buyer, address int) []byte {
	dst = append(append(append(append(dst, method...), ' '), f.room...), action...)
	dst = appendAddress(appendPieces(dst, f.waits, buyer), address)
	if ticket != "" {
		dst = append(append(dst, "\r\nSluice-Ticket: "...), ticket...)
	}
	return append(dst, "\r\n\r\n"...)
}
