package limiter

import (
	"testing"
	"time"
)

// slowdowns are the ways in which a shop's latency triples: each request takes longer, or fewer are served at a time.
var slowdowns = []struct {
	name    string
	workers int
	serving time.Duration
	jitter  float64 // 0 = all requests take as long; 1 = their times are distributed exponentially
	least   float64 // goodput
}{
	{"slower", 64, 60 * time.Millisecond, 0, 0.9},
	{"slower, times vary", 64, 60 * time.Millisecond, 0.5, 0.85},
	{"slower, times vary much", 64, 60 * time.Millisecond, 1, 0.8},
	{"fewer workers", 21, 20 * time.Millisecond, 0, 0.9},
	{"fewer workers, times vary", 21, 20 * time.Millisecond, 0.5, 0.85},
}

func TestAdaptive_ShopThatGetsSlowerIsKeptBusyAndNotCrowded(t *testing.T) {
	for _, c := range slowdowns {
		t.Run(c.name, func(t *testing.T) {
			p := NewConcurrencyLimiter(256, 512)
			a := NewAdaptive(p)
			a.SetBounds(8, 256)
			seconds := tripled(t, a, p, c.workers, c.serving, c.jitter)
			for i, s := range seconds {
				t.Logf("%d s: limit %d, in flight %.1f, goodput %.0f%%", i+1, s.limit, s.inFlight, 100*s.goodput)
			}
			slow := mean(seconds[10:20])
			if slow.goodput < c.least {
				t.Errorf("while the shop is slow: goodput %.1f%%, want %.0f%%", 100*slow.goodput, 100*c.least)
			}
			relieved := mean(seconds[11:20])
			if relieved.inFlight > 1.05*float64(c.workers) { // each search looks above them for a moment
				t.Errorf("one second after the shop became slow: %.1f in flight at %d workers", relieved.inFlight, c.workers)
			}
			if again := mean(seconds[23:]); again.goodput < c.least || again.inFlight > 1.15*usualWorkers {
				t.Errorf("three seconds after the shop recovered: goodput %.1f%%, %.1f in flight",
					100*again.goodput, again.inFlight)
			}
		})
	}
}

func TestAdaptive_TheLimitStaysWithinItsBounds(t *testing.T) {
	p := NewConcurrencyLimiter(256, 0)
	a := NewAdaptive(p)
	a.SetBounds(10, 40)
	if p.Max() != 10 {
		t.Errorf("limit %d at the start, want the floor", p.Max())
	}
	now := int64(0)
	for range 200 { // a shop that has room for everybody
		for p.Acquire(false, 0, nil) == Admitted {
		}
		now += 100 * ms
		for range 1000 {
			a.Answered(now, time.Millisecond)
		}
		a.Tick(now)
	}
	if p.Max() != 40 {
		t.Errorf("limit %d of a shop that has room, want the ceiling", p.Max())
	}
	for range 200 { // no request is answered
		now += 100 * ms
		a.Tick(now)
	}
	if p.Max() != 10 {
		t.Errorf("limit %d of a shop that is silent, want the floor", p.Max())
	}
	a.SetBounds(20, 30)
	if p.Max() != 20 {
		t.Errorf("limit %d, want the new floor", p.Max())
	}
}

func TestAdaptive_WithoutShoppersTheLimitStays(t *testing.T) {
	p := NewConcurrencyLimiter(0, 0)
	a := NewAdaptive(p)
	a.SetBounds(5, 100)
	now := int64(0)
	for range 1000 {
		now += 20 * ms
		a.Answered(now, time.Millisecond)
		a.Tick(now)
	}
	if p.Max() != 5 {
		t.Errorf("limit %d, want 5: a shop that is not full tells nothing", p.Max())
	}
}

func TestAdaptive_ThatIsOffChangesNothing(t *testing.T) {
	p := NewConcurrencyLimiter(7, 0)
	a := NewAdaptive(p)
	for range 7 {
		p.Acquire(false, 0, nil)
	}
	for now := int64(0); now < int64(time.Minute); now += 20 * ms {
		a.Tick(now)
	}
	a.SetBounds(3, 5)
	a.SetBounds(0, 0)
	a.Tick(int64(time.Hour))
	if p.Max() != 3 {
		t.Errorf("limit %d, want 3: the last one", p.Max())
	}
}

func TestAdaptive_ThatIsOffNotesNoAnswer(t *testing.T) {
	a := NewAdaptive(NewConcurrencyLimiter(7, 0))
	for i, most := range []int{0, 5, 0, 5} {
		if i > 0 {
			a.SetBounds(min(3, most), most)
		}
		before := a.count.Load()
		a.Answered(int64(time.Second), time.Millisecond)
		if noted := a.count.Load() > before; noted != (most > 0) {
			t.Errorf("bounds for the %dth time, up to %d: noted %t", i, most, noted)
		}
	}
}

func TestAdaptive_WhoEnteredBeforeTheLimitChangedSaysNothingAboutIt(t *testing.T) {
	a := NewAdaptive(NewConcurrencyLimiter(0, 0))
	a.since.Store(int64(time.Second))
	a.Answered(int64(time.Second)+5, 6)
	a.Answered(int64(time.Second)+5, 5)
	if a.count.Load() != 1 || a.sum.Load() != 5 {
		t.Errorf("%d answers of %d ns are counted, want the one that entered later", a.count.Load(), a.sum.Load())
	}
}

func TestAdaptive_AllocatesNothing(t *testing.T) {
	p := NewConcurrencyLimiter(0, 0)
	a := NewAdaptive(p)
	a.SetBounds(1, 10)
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() { now += 1e9; a.Answered(now, 1); a.Tick(now) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkAdaptiveAnswered(b *testing.B) {
	a := NewAdaptive(NewConcurrencyLimiter(256, 0))
	a.SetBounds(1, 256)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Answered(int64(time.Second), time.Millisecond)
		}
	})
}

// A request in the shop when the limit begins to adapt has said nothing of it yet, however late that is.
func TestAdaptive_ThatHasJustBegunJudgesNothing(t *testing.T) {
	a := NewAdaptive(NewConcurrencyLimiter(7, 0))
	a.SetBounds(3, 5)
	a.pressed, a.ticks = 1, 1 // it was full
	before, now := a.climb, int64(time.Hour)
	if a.Tick(now); a.climb != before || a.since.Load() != now {
		t.Errorf("%+v after %+v, since %d", a.climb, before, a.since.Load())
	}
	if a.Tick(now + 1); a.since.Load() != now {
		t.Errorf("since %d", a.since.Load())
	}
}
