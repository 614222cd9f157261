package room

import (
	"testing"
	"time"
)

// Who may be called soon has heard of a call when its people may claim: no pause of them is longer than the notice.
func TestNextPoll_NoneOfThoseWhoMayBeCalledSoonSleepsThroughTheNotice(t *testing.T) {
	r := rules()
	r.PerSecond = 1
	for _, c := range []struct {
		name   string
		change func(*State)
		number int64
		soon   bool
	}{
		{"before a draw", func(s *State) { s.Draw, s.Phase, s.Starts = true, PreQueue, s.At+20_000 }, 900, true},
		{"long before a draw", func(s *State) { s.Draw, s.Phase, s.Starts = true, PreQueue, s.At+20_001 }, 1, false},
		{"while the draw waits", func(s *State) { s.Draw, s.Phase = true, Drawing }, 900, true},
		{"one of the first, before the start", func(s *State) { s.Phase, s.Starts = PreQueue, s.At+20_000 }, 26, true},
		{"one of the last, before the start", func(s *State) { s.Phase, s.Starts = PreQueue, s.At+20_000 }, 27, false},
		{"next, and no one was called lately", func(s *State) { s.Free, s.Held = 2, 8 }, 26, true},
		{"not soon, and no one was called lately", func(s *State) { s.Free, s.Held = 2, 8 }, 27, false},
		{"next, on hold", func(s *State) { s.Phase = Hold }, 26, true},
		{"stock unknown", func(s *State) { s.Known = false }, 900, true},
		{"without stock, and no one was called lately", func(s *State) { s.Stocked = false }, 20, true},
		{"not soon, without stock", func(s *State) { s.Stocked = false }, 21, false},
		{"all units are reserved", func(s *State) { s.Phase, s.Free, s.Held = LastChance, 0, 1 }, 900, true},
	} {
		s := stocked(10, 0)
		c.change(&s)
		notice, least, most := r.shortCeiling()+stepLength, time.Hour, time.Duration(0)
		for range 1000 {
			s.At++
			if s.Phase == PreQueue {
				s.Starts++
			}
			pos := r.Position(&s, nil, Place{Number: c.number, Joined: 1, Flags: Early}, []byte("u"))
			pause := r.NextPoll(&s, &pos)
			least, most = min(least, pause), max(most, pause)
		}
		if short := most <= notice-stepLength; short != c.soon || most > r.Ceiling(&s) || least > most*3/4 {
			t.Errorf("%s: pauses of %v to %v, a notice of %v", c.name, least, most, notice)
		}
	}
}

// All people of a call may claim at one moment, and come then.
func TestNextPoll_AllWhoAreCalledComeAtOneMoment(t *testing.T) {
	r, s := rules(), stocked(10, 0)
	called := s.At
	s.Serving, s.Called, s.Steps = 13, 13, []Step{{At: called, Serving: 13, Called: 13}}
	from := called + r.Notice(&s).Milliseconds()
	for _, at := range []int64{called, called + 17, from - 1} {
		for _, number := range []int64{1, 13} {
			s.At = at
			pos := r.Position(&s, nil, Place{Number: number, Joined: 1}, nil)
			if pos.State != IsWaiting || at+r.NextPoll(&s, &pos).Milliseconds() != from {
				t.Errorf("at %d: %+v, and polls after %v", at-called, pos, r.NextPoll(&s, &pos))
			}
		}
	}
	s.At = from
	if pos := r.Position(&s, nil, Place{Number: 13, Joined: 1}, nil); pos.State != IsCalled {
		t.Errorf("when the notice is over: %+v", pos)
	}
	s.Stocked = false // its people do not compete for units
	if r.Notice(&s) != 0 {
		t.Error("a room without a stock gives a notice")
	}
}
