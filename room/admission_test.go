package room

import (
	"testing"
	"time"
)

func rules() Rules {
	return Rules{Name: "r", Opens: time.Minute, ClaimWithin: 90 * time.Second, Overshoot: 1.3,
		PollFloor: time.Second, PollCeiling: 20 * time.Second}
}

// stocked is an open room of 1,000 people at 1,000 s, for so many free units.
func stocked(free, held int64) State {
	return State{Phase: Open, At: 1_000_000, Issued: 1000, Stocked: true, Known: true, Free: free, Held: held}
}

func TestMove_FollowsTheFreeUnits(t *testing.T) {
	r := rules()
	for _, c := range []struct {
		name   string
		change func(*State)
		most   int64
		want   int64
	}{
		{"ten units", func(*State) {}, 1000, 13},
		{"nothing free", func(s *State) { s.Free = 0 }, 1000, 0},
		{"stock unknown", func(s *State) { s.Known = false }, 1000, 0},
		{"on hold", func(s *State) { s.Phase = Hold }, 1000, 0},
		{"no more wait", func(s *State) { s.Serving = 998 }, 1000, 2},
		{"the pace of the shop", func(*State) {}, 4, 4},
		{"all have a pass", func(s *State) { s.Inside = 13 }, 1000, 0},
		{"called, and may still come", func(s *State) {
			s.Called, s.Steps = 13, []Step{{At: s.At - 1000, Called: 13, Serving: 13}}
		}, 1000, 0},
		{"half of them came", func(s *State) {
			s.Called, s.Claimed, s.Inside, s.Steps = 13, 6, 6, []Step{{At: s.At - 97_000, Called: 13, Serving: 13}}
		}, 1000, 14}, // (13 - 6) / (7/14)
		{"claims of those called before are not of those called last", func(s *State) {
			s.Free, s.Called, s.Claimed, s.Used, s.Lately = 3, 46, 37, 37, 2
			s.Steps = []Step{{At: s.At - 96_500, Called: 40, Serving: 40}, {At: s.At - 500, Called: 46, Serving: 46}}
		}, 1000, 1},
		{"half of the passes ended without an order", func(s *State) { s.Used, s.Expired = 9, 10 }, 1000, 26},
		{"drain", func(s *State) { s.Phase = Drain }, 1000, 13},
		{"no stock to follow", func(s *State) { s.Stocked = false }, 50, 50},
	} {
		s := stocked(10, 0)
		c.change(&s)
		m := r.Move(&s, c.most)
		if m.Calls != c.want || m.Serving != s.Serving+c.want {
			t.Errorf("%s: %+v, want %d calls", c.name, m, c.want)
		}
	}
}

func TestMove_DrawsTheEarlyAndThenCallsTheLate(t *testing.T) {
	r := rules()
	s := stocked(1, 0)
	s.Draw = true
	s.Stocked, s.Early, s.Issued, s.Lottery.Seed = false, 10, 15, "drawn"
	last := int64(-1)
	for range 10 {
		m := r.Move(&s, 1)
		if m.Threshold <= last || m.Serving != 0 {
			t.Fatalf("%+v after %d", m, last)
		}
		s.Threshold, last = m.Threshold, m.Threshold
	}
	if s.Threshold < ScoreEnd { // rounding may leave one
		s.Threshold = r.Move(&s, 1).Threshold
	}
	if s.Threshold != ScoreEnd {
		t.Fatalf("threshold %d of %d after all ten", s.Threshold, ScoreEnd)
	}
	if m := r.Move(&s, 2); m.Serving != 12 || m.Threshold != ScoreEnd {
		t.Errorf("the late: %+v", m)
	}
	s.Serving = 12
	if m := r.Move(&s, 100); m.Serving != 15 || m.Calls != 3 {
		t.Errorf("the last: %+v", m)
	}
}

func TestPosition_OfNumbers(t *testing.T) {
	r := rules()
	s := stocked(10, 0)
	s.Serving, s.Called, s.Count = 22, 22, 3
	s.Steps = []Step{{At: s.At - 100_000, Serving: 5, Called: 5}, {At: s.At - 6000, Serving: 20, Called: 20},
		{At: s.At - 2000, Serving: 22, Called: 22}}
	for _, c := range []struct {
		number int64
		want   Position
	}{
		{3, Position{State: IsMissed, Score: -1, CalledAt: 900_000, From: 906_000, Until: 996_000}},
		{20, Position{State: IsCalled, Score: -1, CalledAt: 994_000, From: 1_000_000, Until: 1_090_000}},
		{22, Position{State: IsWaiting, Score: -1, ETA: 4000, CalledAt: 998_000, From: 1_004_000, Until: 1_094_000}},
		{23, Position{State: IsWaiting, Score: -1, ETA: 588}}, // 17 in the last ten seconds
		{192, Position{State: IsWaiting, Score: -1, Ahead: 169, ETA: 100_000}},
		{400, Position{State: IsWaiting, Score: -1, Ahead: 377, ETA: 222_352, Chance: NoChance}},
	} {
		if got := r.Position(&s, nil, Place{Number: c.number, Joined: 1}, nil); got != c.want {
			t.Errorf("%d: %+v, want %+v", c.number, got, c.want)
		}
	}
	s.Opened = 5000
	if got := r.Position(&s, nil, Place{Number: 30, Joined: 4}, nil); got.State != IsInvalid {
		t.Errorf("of an earlier sale: %+v", got)
	}
	s.Phase, s.Opened = Hold, 0
	if got := r.Position(&s, nil, Place{Number: 30, Joined: 4}, nil); got.ETA != -1 {
		t.Errorf("no number is shown that is not known: %+v", got)
	}
}

func TestPhaseAt_FollowsTimeStockAndOperators(t *testing.T) {
	r := rules()
	sale := Sale{Starts: 2_000_000, Ends: 3_000_000}
	for _, c := range []struct {
		name       string
		at         int64
		free, held int64
		word       string
		change     func(*State, *Sale)
		want       Phase
	}{
		{"long before", 1_000_000, 10, 0, "", nil, Closed},
		{"a minute before", 1_940_000, 10, 0, "", nil, PreQueue},
		{"before, though nothing is there yet", 1_950_000, 0, 0, "", nil, PreQueue},
		{"on", 2_000_000, 10, 0, "", nil, Open},
		{"stock unknown", 2_000_000, 0, 0, "", func(s *State, _ *Sale) { s.Known = false }, Open},
		{"reserved", 2_000_000, 0, 3, "", nil, LastChance},
		{"sold", 2_000_000, 0, 0, "", nil, Over},
		{"units came back", 2_000_000, 1, 0, "", nil, Open},
		{"held", 2_000_000, 10, 0, OverrideHold, nil, Hold},
		{"held and sold", 2_000_000, 0, 0, OverrideHold, nil, Over},
		{"paused", 2_000_000, 10, 0, "", func(_ *State, s *Sale) { s.Paused = true }, Hold},
		{"drained", 2_000_000, 10, 0, OverrideDrain, nil, Drain},
		{"off", 1_000_000, 0, 0, OverrideOff, nil, Off},
		{"ended", 2_000_000, 10, 0, "", func(_ *State, s *Sale) { s.Ended = true }, Over},
		{"past its end", 3_000_000, 10, 0, "", nil, Over},
	} {
		s, its := stocked(c.free, c.held), sale
		s.At = c.at
		if c.change != nil {
			c.change(&s, &its)
		}
		if got := r.PhaseAt(&s, c.word, its); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	s := stocked(10, 0)
	s.Draw = true
	s.At = 2_000_000
	if got := r.PhaseAt(&s, "", sale); got != Drawing {
		t.Errorf("before the draw: %s", got)
	}
	if got := r.PhaseAt(&s, "", Sale{}); got != Drawing {
		t.Errorf("without a sale: %s", got)
	}
}
