package room

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// follows opens an instance by the hours of a file, which the test may change.
func follows(t *testing.T, r *redistest.Server, hours Sale, draw bool) (s *stand, file *atomic.Pointer[Sale]) {
	t.Helper()
	file = new(atomic.Pointer[Sale])
	file.Store(&hours)
	return open(t, r, func(o *Options) {
		o.Rules.Draw, o.Rules.Opens = draw, 2*time.Hour
		o.Sale = func() Sale { return *file.Load() }
	}), file
}

// has waits until s has read the hours of sale.
func (s *stand) has(t *testing.T, sale Sale) {
	t.Helper()
	testkit.Eventually(t, "the room has the hours", func() bool {
		state := s.view.Load().state
		return state.Starts == sale.Starts && state.Ends == sale.Ends
	})
}

// waits reports whether p has its first number.
func (p *person) waits(t *testing.T, s *stand) {
	t.Helper()
	if m, a := p.ask(t, s, false, "me", ""); m.State != "waiting" || m.Number != 1 {
		t.Errorf("%s, who had joined, hears %+v %v; log: %s", p.user, m, a.Rejection, s.log.String())
	}
}

// hours is a sale that begins and ends after so many seconds.
func hours(starts, ends int64) Sale {
	now := time.Now().UnixMilli()
	return Sale{Starts: now + 1000*starts, Ends: now + 1000*ends}
}

// Redis comes back with data of before the sale was postponed.
func TestRoom_HoursOutlastTheTailOfRedis(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	former, later := hours(600, 1200), hours(3600, 7200)
	s, file := follows(t, r, former, false)
	s.inPhase(t, PreQueue)
	if err := r.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	file.Store(&later)
	s.has(t, later)
	r.Kill()
	r.Restart()
	testkit.Eventually(t, "they are told again", func() bool {
		got := r.Client.HMGet(t.Context(), s.o.Store.keys.room, "starts", "ends").Val()
		return len(got) == 2 && whole(got[0]) == later.Starts && whole(got[1]) == later.Ends
	})
	s.has(t, later)
}

// A sale is postponed after its draw had begun, and Redis has lost that. The draw of the former start is none.
func TestStore_DrawOfAStartThatRedisHasLostIsMadeAnew(t *testing.T) {
	t.Parallel()
	r, rules := redistest.Start(t), Rules{Draw: true}
	was, later := in(-time.Second), in(time.Minute)
	s := made(t, r, was)
	if _, err := s.Join(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	known := s.read(t, rules, was, nil, nil).State
	if err := r.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	known = s.read(t, rules, later, nil, known).State
	r.Kill()
	r.Restart()
	got := s.read(t, rules, later, nil, known).State
	if got.Starts != later.Starts || got.Early != 0 || got.Lottery.DrawnBy != "" || got.Lottery.Redrawn != 1 {
		t.Errorf("%+v", got)
	}
}

// Redis has lost all. The first instance that comes has another file than the one which has told the hours last.
func TestRoom_HoursThatWereToldLastOutlastAnEmptyRedis(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	told := hours(3600, 7200)
	s, _ := follows(t, r, hours(600, 1200), false)
	s.inPhase(t, PreQueue)
	other, _ := follows(t, r, told, false)
	s.has(t, told)
	other.Close()
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the room is back", func() bool { return s.log.Count("Redis has lost the room") == 1 })
	back := time.Now().UnixMilli()
	testkit.Eventually(t, "it is read", func() bool { return s.view.Load().state.At > back })
	s.has(t, told)
}

// A sale is postponed. An instance with the former file starts, and is replaced. At the former end another instance
// keeps the room of its sale.
func TestRoom_EarlierEndOfAnotherFileCostsNoPlace(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	former, later := hours(1, 3), hours(3600, 7200)
	s, _ := follows(t, r, later, false)
	s.inPhase(t, PreQueue)
	p := &person{user: "a"}
	p.ask(t, s, true, "join", "")
	other, _ := follows(t, r, former, false)
	s.has(t, former)
	other.Close()
	testkit.Eventually(t, "the former end is over", func() bool { return s.view.Load().state.At > former.Ends })
	s.has(t, later)
	p.waits(t, s)
}

// Redis comes back with the room of the sale before, which is over.
func TestRoom_OfThisSaleOutlastsThatOfTheSaleBefore(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	before := hours(-10, 2)
	s, file := follows(t, r, before, false)
	s.inPhase(t, Open)
	if err := r.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.inPhase(t, Over)
	next := hours(3600, 7200)
	file.Store(&next)
	s.has(t, next)
	p := &person{user: "a"}
	p.ask(t, s, true, "join", "")
	opened := s.view.Load().state.Opened
	r.Kill()
	r.Restart()
	testkit.Eventually(t, "the room is back", func() bool { return s.log.Count("Redis has lost the room") == 1 })
	if got := s.view.Load().state.Opened; got != opened {
		t.Errorf("the room was opened at %d, and is of %d", opened, got)
	}
	p.waits(t, s)
}

// The sale is on. An instance with a later start in its file starts, and the draw is made anew. The one with the right
// file says so, and is restarted: the room goes on.
func TestRoom_SaysThatAnotherInstanceHasToldOtherHours(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	right, old := hours(1, 3600), hours(1800, 3600)
	s, _ := follows(t, r, right, true)
	s.inPhase(t, PreQueue)
	p := &person{user: "a"}
	p.ask(t, s, true, "join", "")
	s.inPhase(t, Open)
	other, _ := follows(t, r, old, true)
	defer other.Close()
	testkit.Eventually(t, "it is said", func() bool { return s.OtherHours() != "" })
	for _, what := range []string{HoursText(right.Starts, right.Ends), HoursText(old.Starts, right.Ends),
		"another instance has told it other hours: make the files the same, and restart this instance"} {
		if !strings.Contains(s.OtherHours(), what) {
			t.Errorf("%q is not in %q", what, s.OtherHours())
		}
	}
	if n := s.log.Count("another instance has told it other hours"); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	s.Close()
	again, _ := follows(t, r, right, true)
	again.inPhase(t, Open)
	testkit.Eventually(t, "people are called again", func() bool { return again.view.Load().state.Called > 0 })
	if text := again.OtherHours(); text != "" {
		t.Errorf("it says %s", text)
	}
	testkit.Eventually(t, "the one with the old file says so", func() bool { return other.OtherHours() != "" })
}

// Hours that are over, or a start that a draw has kept, make no difference.
func TestRoom_HoursThatAreOverAreNotCompared(t *testing.T) {
	r := &Room{}
	for name, c := range map[string]struct {
		has, own Sale
		same     bool
	}{
		"the same":             {Sale{Starts: 5, Ends: 90}, Sale{Starts: 5, Ends: 90}, true},
		"another start, over":  {Sale{Starts: 5, Ends: 90}, Sale{Starts: 9, Ends: 90}, true},
		"another start, ahead": {Sale{Starts: 5, Ends: 90}, Sale{Starts: 60, Ends: 90}, false},
		"another end, over":    {Sale{Starts: 5, Ends: 40}, Sale{Starts: 5, Ends: 30}, true},
		"another end, ahead":   {Sale{Starts: 5, Ends: 40}, Sale{Starts: 5, Ends: 60}, false},
	} {
		r.since = time.Time{}
		r.compareHours(&State{At: 50, Starts: c.has.Starts, Ends: c.has.Ends}, c.own)
		if r.since.IsZero() != c.same {
			t.Errorf("%s: they differ", name)
		}
	}
}

// The end of another file passes while the instance cannot read the room, and then a reload replaces the room: its people
// stay, and the room is put right once.
func TestRoom_EarlierEndThatIsMetByTheNextRoomCostsNoPlace(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	former, later := hours(1, 2), hours(3600, 7200)
	s, _ := follows(t, r, later, false)
	s.inPhase(t, PreQueue)
	p := &person{user: "a"}
	p.ask(t, s, true, "join", "")
	other, _ := follows(t, r, former, false)
	s.has(t, former)
	other.Close()
	s.Retire()
	testkit.Eventually(t, "the former end has passed", func() bool { return time.Now().UnixMilli() > former.Ends+300 })
	n := open(t, r, func(o *Options) {
		o.Rules.Opens = 2 * time.Hour
		o.Sale = func() Sale { return later }
		o.Before = s.Room
	})
	n.has(t, later)
	if m, a := p.ask(t, n, false, "me", ""); m.State != "waiting" || m.Number != 1 {
		t.Errorf("who had joined hears %+v, %+v", m, a)
	}
}

// A sale that is on is moved: who was called before has the first place at the new start.
func TestRoom_AStartThatIsMovedCostsNoPlace(t *testing.T) {
	t.Parallel()
	var sale atomic.Pointer[Sale]
	now := time.Now().UnixMilli()
	sale.Store(&Sale{Starts: now - 60_000, Ends: now + 3_600_000})
	s := open(t, redistest.Start(t), func(o *Options) { o.Sale = func() Sale { return *sale.Load() } })
	s.set(1, 0)
	s.inPhase(t, Open)
	first, second := &person{user: "a"}, &person{user: "b"}
	is := func(p *person, want string) bool {
		m, _ := p.ask(t, s, false, "me", "")
		return m.State == want
	}
	first.ask(t, s, true, "join", "")
	testkit.Eventually(t, "the first one is called", func() bool { return is(first, IsCalled) })
	sale.Store(&Sale{Starts: time.Now().Add(3 * time.Second).UnixMilli(), Ends: now + 3_600_000})
	s.inPhase(t, PreQueue)
	testkit.Eventually(t, "the first one waits", func() bool { return is(first, IsWaiting) })
	second.ask(t, s, true, "join", "")
	testkit.Eventually(t, "the first one is called again", func() bool { return is(first, IsCalled) })
	testkit.Want(t, "the second one waits", is(second, IsWaiting), true)
}
