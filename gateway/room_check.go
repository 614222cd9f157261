package gateway

import (
	"fmt"
	"slices"
	"time"

	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/room"
)

// checkRooms is the rule that rooms, their sales, routes, keys and stock fit each other.
func checkRooms(c *config.Config) (errs []error) {
	fail := func(key, format string, args ...any) { errs = append(errs, c.Errorf(key, format, args...)) }
	for i := range c.Routes {
		t, at := &c.Routes[i], fmt.Sprintf("route[%d].room", i+1)
		switch {
		case t.Room == "":
		case !slices.ContainsFunc(c.Rooms, func(m config.Room) bool { return m.Name == t.Room }):
			fail(at, "%q is no [[room]]; write the name of one", t.Room)
		case t.User == "" || t.Gate == "pass":
			fail(at, "is of a user; write user, and another gate than \"pass\"")
		}
	}
	if len(c.Rooms) == 0 {
		return errs
	}
	if c.Auth.RoomKeyFile == "" { // what is wrong with a file is reported where it is read
		fail("auth.room_key_file", "is missing: tickets and passes are signed with a key that all instances share; make "+
			"one: openssl rand -hex 32 > room.key; chmod 600 room.key")
	}
	if c.Stock.Source != "redis" {
		fail("room[1]", "instances share a room through Redis, but stock.source is %q; write \"redis\", or drop the room",
			c.Stock.Source)
	}
	for i := range c.Rooms {
		checkRoom(c, &c.Rooms[i], fmt.Sprintf("room[%d]", i+1), fail)
	}
	return errs
}

// beaconOf is the key of m's beacon, and when its rounds are published; "" = it has none.
func beaconOf(m *config.Room) (key string, rounds room.BeaconSchedule) {
	switch {
	case !m.Beacon:
		return "", rounds
	case m.BeaconChain == "":
		return room.Quicknet, room.QuicknetSchedule()
	}
	key, genesis, period, _ := m.Chain() // checked by config
	return key, room.BeaconSchedule{Genesis: genesis.UnixMilli(), Period: period.Milliseconds()}
}

// checkBeacon is the rule that the draw's round is published while its sale lasts. It is after the start by itself.
func checkBeacon(c *config.Config, m *config.Room, at string, fail func(key, format string, args ...any)) {
	if own, _, _, ok := m.Chain(); ok {
		if _, err := room.ParseBeaconKey(own); err != nil {
			fail(at+".beacon_chain", "%v", err)
			return
		}
	}
	key, rounds := beaconOf(m)
	i := slices.IndexFunc(c.Sales, func(s config.Sale) bool { return s.Name == m.Sale })
	if key == "" || i < 0 {
		return
	}
	sale := &c.Sales[i]
	if round, due := rounds.After(sale.Starts.UnixMilli()); due >= sale.Ends.UnixMilli() {
		published := time.UnixMilli(due).In(sale.Starts.Location()).Format(time.RFC3339)
		fail(at+".beacon", "round %d, the first one after the start of sale %q, is published at %s, and the sale ends "+
			"before; let it end later, or write another beacon", round, sale.Name, published)
	}
}

func checkRoom(c *config.Config, m *config.Room, at string, fail func(key, format string, args ...any)) {
	if _, err := proxy.NewRoomBypass(m.Bypass); err != nil {
		fail(at+".bypass", "%v", err)
	}
	checkBeacon(c, m, at, fail)
	uses := func(t config.Route) bool { return t.Room == m.Name }
	if !slices.ContainsFunc(c.Routes, uses) {
		fail(at+".name", "no route has room = %q, so no order needs its pass; write it into a [[route]], or drop the room",
			m.Name)
	}
	if m.Sale == "" {
		if m.Order == "draw" {
			fail(at+".order", "\"draw\" is among those who came before a start; write sale, or order = \"fifo\"")
		}
		if m.PerSecond == 0 {
			fail(at+".per_second", "is 0, and without a sale nothing else bounds how many are called; write a number, or sale")
		}
		return
	}
	if !slices.ContainsFunc(c.Sales, func(s config.Sale) bool { return s.Name == m.Sale }) {
		fail(at+".sale", "%q is no [[sale]]; write the name of one", m.Sale)
	}
	if slices.ContainsFunc(c.Routes, func(t config.Route) bool { return uses(t) && t.Gate != "reserve" }) {
		fail(at+".sale", "the room follows the units of stock ledgers; write gate = \"reserve\" on its routes, or "+
			"drop sale")
	}
}

// explainedRooms are the rooms of c for an explanation, which asks no Redis: an order needs a pass, and each one is
// wrong.
func explainedRooms(c *config.Config) map[string]proxy.Room {
	all := map[string]proxy.Room{}
	for i := range c.Rooms {
		bypass, _ := proxy.NewRoomBypass(c.Rooms[i].Bypass) // Check tells the error
		all[c.Rooms[i].Name] = explainedRoom{bypass}
	}
	return all
}

type explainedRoom struct{ bypass *proxy.RoomBypass }

func (explainedRoom) Admits(int64, []byte, []byte, []byte) (reject.Reason, reject.Cause) {
	return reject.Room, reject.PassWrong
}

func (explainedRoom) Joinable([]byte) bool { return false }

func (e explainedRoom) Bypass() *proxy.RoomBypass { return e.bypass }

func (explainedRoom) Used([]byte) {}

func (explainedRoom) Answer(*proxy.RoomQuestion) proxy.RoomAnswer {
	return proxy.RoomAnswer{Rejection: reject.NoRoute}
}
