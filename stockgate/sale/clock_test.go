package sale

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

// apart is by how much two boards differ about the time.
func apart(a, b *Schedule) time.Duration {
	x, now, y := a.Wall(), time.Now(), b.Wall()
	return y.Sub(x) - time.Since(now)
}

func TestClock_InstancesWhoseClocksDifferOpenTogether(t *testing.T) {
	r := redistest.Start(t)
	at, err := r.Client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	s := Sale{Name: "soon", SKUs: []string{"1001"}, Starts: at.Add(2 * time.Second), Ends: at.Add(time.Hour)}
	late, early := instance(t, r, -200*time.Millisecond, s), instance(t, r, 200*time.Millisecond, s)
	testkit.Eventually(t, "they agree about the time, whose clocks are 400 ms apart", func() bool {
		d := apart(late, early)
		return d < 100*time.Millisecond && d > -100*time.Millisecond
	})
	var opened [2]time.Time
	testkit.Eventually(t, "both are open", func() bool {
		for i, b := range []*Schedule{late, early} {
			if reason, _ := b.Closed(b.o.Now(), []byte("1001"), true); reason == reject.Admitted && opened[i].IsZero() {
				opened[i] = time.Now()
			}
		}
		return !opened[0].IsZero() && !opened[1].IsZero()
	})
	t.Logf("clocks 400 ms apart, opened %v apart, agree within %v", opened[1].Sub(opened[0]).Abs(),
		apart(late, early).Abs())
	if skew, wrong := late.Skew(); wrong || skew < 100*time.Millisecond {
		t.Errorf("skew %v, wrong %v", skew, wrong)
	}
}

func TestClock_NoSaleBeginsWhileTheClocksAreTooFarApart(t *testing.T) {
	r := redistest.Start(t)
	s := Sale{Name: "on", SKUs: []string{"1001"}, Starts: time.Now().Add(-time.Minute), Ends: time.Now().Add(time.Hour)}
	b := instance(t, r, time.Minute, s)
	if reason, _ := b.Closed(b.o.Now(), []byte("1001"), false); reason != reject.Paused {
		t.Errorf("a minute apart: %v", reason)
	}
	if skew, wrong := b.Skew(); !wrong || skew > -50*time.Second {
		t.Errorf("skew %v, wrong %v", skew, wrong)
	}
	right := instance(t, r, 0, s)
	if reason, _ := right.Closed(right.o.Now(), []byte("1001"), false); reason != reject.Admitted {
		t.Errorf("the right one: %v", reason)
	}
}

func TestClock_SaleThatHasBegunGoesOnWhenAClockJumps(t *testing.T) {
	b, j := still(t, begins.Add(time.Minute), eleven())
	wall := begins.Add(time.Minute)
	b.clock = redisconn.Clock{}
	for range 3 {
		b.updateClock(wall.UnixNano(), 0, 0)
	}
	b.logTransitions(b.plan.Load())
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour} {
		b.updateClock(wall.Add(jump).UnixNano(), 0, 0)
		b.logTransitions(b.plan.Load())
		if reason, _ := b.Closed(0, []byte("1001"), false); reason != reject.Admitted {
			t.Errorf("Redis' clock is %v ahead: %v", jump, reason)
		}
		if _, wrong := b.Skew(); !wrong {
			t.Errorf("%v ahead is not too far", jump)
		}
	}
	b.updateClock(wall.UnixNano(), 0, 0)
	if _, wrong := b.Skew(); wrong {
		t.Error("they agree again")
	}
	if n := j.Count("too far apart"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// No operator has paused the sale: the clocks differ. What operators are told tells the two apart, since a resume changes
// nothing then.
func TestAll_SaleThatIsHeldByTheClocksIsNotToldAsPausedByAnOperator(t *testing.T) {
	b := instance(t, redistest.Start(t), time.Minute, running("a")...)
	if _, wrong := b.Skew(); !wrong {
		t.Fatal("the clocks agree")
	}
	if got := b.All()[0]; got.State != Paused || !got.Doubt {
		t.Errorf("held by the clocks: %+v", got)
	}
	testkit.Check(t, b.Set(t.Context(), "a", Paused))
	if got := b.All()[0]; got.State != Paused || got.Doubt {
		t.Errorf("paused by an operator: %+v", got)
	}
}
