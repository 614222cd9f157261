package room

import (
	"testing"
	"time"

	"sluice/proxy"
)

// A client that polls hears of the end within the published ceiling: no pause is longer, and not all are the same.
func TestPoll_NoPauseIsLongerThanThePublishedCeiling(t *testing.T) {
	r := standing(t)
	open := *r.view.Load().state
	user := []byte("u1")
	ticket := r.tickets.Append(nil, r.scope, user, Place{Number: 900_000, Joined: 999})
	for name, c := range map[string]struct {
		change  func(*State)
		ceiling time.Duration
	}{
		"open":   {func(*State) {}, 20 * time.Second},
		"no ETA": {func(s *State) { s.Phase = Hold }, 20 * time.Second},
		"last chance": {func(s *State) { s.Phase, s.Stocked, s.Known, s.Held = LastChance, true, true, 1 },
			5 * time.Second},
	} {
		state := open
		c.change(&state)
		r.publish(&state, "", Sale{})
		least, most := time.Hour, time.Duration(0)
		for at := range int64(1000) {
			m := r.describe(&proxy.RoomQuestion{User: user, Signed: ticket, Time: 1_000_000 + at}, r.view.Load())
			pause := time.Duration(m.Poll) * time.Millisecond
			least, most = min(least, pause), max(most, pause)
		}
		if most > c.ceiling || most < c.ceiling*9/10 || least < c.ceiling*7/10 || least > c.ceiling*8/10 {
			t.Errorf("%s: pauses of %v to %v, and a ceiling of %v", name, least, most, c.ceiling)
		}
	}
}
