package room

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

func TestRoom_DrainAdmitsNoOneNew(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.set(0, 1)
	s.inPhase(t, LastChance)
	if err := s.Set(t.Context(), FieldOverride, OverrideDrain); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the word is known", func() bool { return s.view.Load().word == OverrideDrain })
	if m, a := (&person{user: "late"}).ask(t, s, true, "join", ""); a.Rejection != reject.Paused {
		t.Errorf("in %s: %d %+v", s.view.Load().state.Phase, a.Status, m)
	}
}

func TestRoom_OperatorsWordIsObeyed(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.inPhase(t, Open)
	for word, want := range map[string]Phase{OverrideHold: Hold, OverrideDrain: Drain,
		OverrideOff: Off} {
		if err := s.Set(t.Context(), FieldOverride, word); err != nil {
			t.Fatal(err)
		}
		s.inPhase(t, want)
		if got := admits(s.Room, 0, nil, []byte("u"), nil); got != (want == Off) {
			t.Errorf("%s: admits %v", want, got)
		}
	}
	if err := s.Set(t.Context(), FieldOverride, ""); err != nil {
		t.Fatal(err)
	}
	s.inPhase(t, Open)
}

func TestRoom_RateBoundsTheCalls(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), func(o *Options) { o.Rules.PerSecond, o.Stock = 4, nil })
	s.inPhase(t, Open)
	began := time.Now() // the first is called while others join
	for i := range 30 {
		(&person{user: fmt.Sprint(i)}).ask(t, s, true, "join", "")
	}
	testkit.Eventually(t, "eight are called", func() bool { return s.view.Load().state.Called >= 8 })
	if called, most := s.view.Load().state.Called, 4*(time.Since(began).Seconds()+2)+1; float64(called) > most {
		t.Errorf("%d were called, more than %.1f", called, most)
	}
}

// A sale that replaces one which is on has its room, as an operator has left it: the log says so.
func TestRoom_WarnsOfAnOperatorsStateThatIsInForce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first := open(t, server, nil)
	first.inPhase(t, Open)
	if err := first.Set(t.Context(), FieldOverride, OverrideOff); err != nil {
		t.Fatal(err)
	}
	first.inPhase(t, Off)
	const warning = "to end it: sluice room resume r"
	if strings.Contains(first.log.String(), warning) {
		t.Error("it warns of what an operator has just said")
	}
	later := open(t, server, nil)
	testkit.Eventually(t, "an instance that starts warns", func() bool {
		return strings.Contains(later.log.String(), warning) && strings.Contains(later.log.String(), "state=off")
	})
}

// With less than one call a second, those who wait are called in a room that takes no one in any more, too.
func TestRoom_DrainCallsPeopleAtASlowRate(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), func(o *Options) { o.Stock = nil })
	set := func(field, value string) { testkit.Check(t, s.Set(t.Context(), field, value)) }
	set(FieldOverride, OverrideHold)
	s.inPhase(t, Hold)
	for _, user := range []string{"a", "b"} {
		(&person{user: user}).ask(t, s, true, "join", "")
	}
	set(FieldRate, "0.9")
	set(FieldOverride, OverrideDrain)
	testkit.Eventually(t, "both are called", func() bool { return s.view.Load().state.Serving == 2 })
}
