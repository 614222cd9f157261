package sale

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

func running(names ...string) (sales []Sale) {
	for _, name := range names {
		sales = append(sales, Sale{Name: name, SKUs: []string{"sku-" + name}, Starts: time.Now().Add(-time.Minute),
			Ends: time.Now().Add(time.Hour)})
	}
	return sales
}

func is(b *Schedule, sku string, want reject.Reason) bool {
	reason, _ := b.Closed(b.o.Now(), []byte(sku), false)
	return reason == want
}

// said is the one word that Redis has.
func said(t *testing.T, r *redistest.Server) string {
	t.Helper()
	return strings.Join(r.Client.HVals(t.Context(), "sluice:shop:sales").Val(), ", ")
}

func TestOverride_OperatorsWordReachesEveryInstance(t *testing.T) {
	r := redistest.Start(t)
	sales := running("a", "b")
	all := []*Schedule{instance(t, r, 0, sales...), instance(t, r, 0, sales...), instance(t, r, 0, sales...)}
	for i, step := range []struct {
		to   State
		want reject.Reason
	}{{Paused, reject.Paused}, {On, reject.Admitted}, {Ended, reject.Ended}} {
		if err := all[i].Set(t.Context(), "a", step.to); err != nil {
			t.Fatal(err)
		}
		if !is(all[i], "sku-a", step.want) {
			t.Errorf("%v is not known here at once", step.to)
		}
		said := time.Now()
		for _, b := range all {
			testkit.Eventually(t, "every instance knows", func() bool { return is(b, "sku-a", step.want) })
			if !is(b, "sku-b", reject.Admitted) {
				t.Error("another sale heard it too")
			}
		}
		t.Logf("%v was known to all after %v", step.to, time.Since(said))
	}
	late := instance(t, r, 0, sales...)
	if !is(late, "sku-a", reject.Ended) {
		t.Error("who comes later does not know it from the beginning")
	}
	again := sales[0]
	again.Starts = time.Now()
	if next := instance(t, r, 0, again); !is(next, "sku-a", reject.Admitted) {
		t.Error("another sale of the same name is ended too")
	}
}

func TestOverride_LastWordAndScheduleDecideWithoutRedis(t *testing.T) {
	r := redistest.Start(t)
	sales := running("paused", "on")
	sales = append(sales, Sale{Name: "next", SKUs: []string{"sku-next"}, Starts: time.Now().Add(1500 * time.Millisecond),
		Ends: time.Now().Add(time.Hour)})
	b := instance(t, r, 0, sales...)
	if err := b.Set(t.Context(), "paused", Paused); err != nil {
		t.Fatal(err)
	}
	r.Kill()
	testkit.Eventually(t, "the next one begins", func() bool { return is(b, "sku-next", reject.Admitted) })
	if !is(b, "sku-paused", reject.Paused) || !is(b, "sku-on", reject.Admitted) {
		t.Error("what was known is forgotten")
	}
	alone := instance(t, r, 0, sales...)
	if !is(alone, "sku-on", reject.Admitted) {
		t.Error("an instance that never reached Redis does not keep to the schedule")
	}
}

// An operator whose word did not arrive does not read that it did.
func TestOverride_ErrorSaysWhatWasAsked(t *testing.T) {
	r := redistest.Start(t)
	b := instance(t, r, 0, running("a")...)
	r.Kill()
	err := b.Set(t.Context(), "a", Paused)
	if err == nil || !strings.HasPrefix(err.Error(), `set sale "a" paused: `) {
		t.Error(err)
	}
}

func TestOverride_RedisThatForgotIsReminded(t *testing.T) {
	r := redistest.Start(t)
	sales := running("a")
	b := instance(t, r, 0, sales...)
	if err := b.Set(t.Context(), "a", Paused); err != nil {
		t.Fatal(err)
	}
	r.Client.FlushAll(t.Context())
	testkit.Eventually(t, "it is told again",
		func() bool {
			return strings.HasPrefix(said(t, r), "paused ")
		})
	if late := instance(t, r, 0, sales...); !is(late, "sku-a", reject.Paused) || !is(b, "sku-a", reject.Paused) {
		t.Error("the pause is forgotten")
	}
}

func TestOverride_WithoutSalesRedisIsNotAsked(t *testing.T) {
	r := redistest.Start(t)
	b := instance(t, r, 0)
	b.beat(t.Context())
	if b.beats.Up() || b.beats.Away() {
		t.Error("it was asked")
	}
	b.Use(running("a"), false)
	testkit.Eventually(t, "the new sale has Redis asked", func() bool { return b.beats.Up() })
}

func TestOverride_OlderWordIsNotHeardAgain(t *testing.T) {
	r := redistest.Start(t)
	sales := running("a")
	b := instance(t, r, 0, sales...)
	for _, steps := range [][2]State{{On, Paused}, {Paused, On}, {Paused, Ended}} {
		for _, to := range steps {
			if err := b.Set(t.Context(), "a", to); err != nil {
				t.Fatal(err)
			}
			if to == steps[0] {
				r.Client.Rename(t.Context(), "sluice:shop:sales", "before")
				testkit.Eventually(t, "it is told again", func() bool {
					return r.Client.Exists(t.Context(),
						"sluice:shop:sales").Val() == 1
				})
			}
		}
		last := said(t, r)
		r.Client.Rename(t.Context(), "before", "sluice:shop:sales") // a fail-over has lost the last word
		testkit.Eventually(t, "it is told again",
			func() bool { return said(t, r) == last })
		if got := b.All()[0].State; got != steps[1] {
			t.Errorf("%v, then %v: %v", steps[0], steps[1], got)
		}
	}
}

func TestOverride_SaleIsNotToldOfBeforeItsWordIsRead(t *testing.T) {
	r := redistest.Start(t)
	sales := running("a")
	if err := instance(t, r, 0, sales...).Set(t.Context(), "a", Paused); err != nil {
		t.Fatal(err)
	}
	b := instance(t, r, time.Minute)
	b.Use(sales, false)
	if !is(b, "sku-a", reject.Paused) {
		t.Error("a sale that is paused was open for a moment")
	}
	if _, wrong := b.Skew(); !wrong {
		t.Error("it was not read at the clock")
	}
}

// The start of a sale is corrected, and one instance has the former file. What is said within the hours that both have
// reaches both, and an end is final.
func TestOverride_ReachesInstancesWithAnotherStart(t *testing.T) {
	r := redistest.Start(t)
	sales, other := running("a"), running("a")
	other[0].Starts = other[0].Starts.Add(time.Second)
	first, second := instance(t, r, 0, sales...), instance(t, r, 0, other...)
	beat := func() {
		for range 3 {
			second.beat(t.Context())
			first.beat(t.Context())
		}
	}
	for i, to := range []State{Paused, On, Paused, Ended} {
		if err := []*Schedule{first, second}[i%2].Set(t.Context(), "a", to); err != nil {
			t.Fatal(err)
		}
		beat()
		for _, b := range []*Schedule{first, second, instance(t, r, 0, sales...), instance(t, r, 0, other...)} {
			if got := b.All()[0].State; got != to {
				t.Errorf("%v was said: %v", to, got)
			}
		}
	}
	writes := r.Calls("hset")
	if beat(); r.Calls("hset") != writes {
		t.Errorf("words were written %d times more", r.Calls("hset")-writes)
	}
	for _, b := range []*Schedule{first, second} {
		if err := b.Set(t.Context(), "a", On); !errors.Is(err, ErrEnded) {
			t.Errorf("an ended sale was resumed: %v", err)
		}
	}
}

// What is said of a sale counts where its hours are corrected, by a reload or by a restart of all instances with the new
// file, and reaches instances with the former one. A sale behind the former hours is another one.
func TestOverride_CountsForTheSaleWhoseHoursAreCorrected(t *testing.T) {
	for _, tt := range []struct {
		what              string
		starts, ends      time.Duration // when it is said
		to                State
		nextStarts, lasts time.Duration
		want              State
	}{
		{"paused and corrected", -time.Minute, time.Hour, Paused, -30 * time.Second, time.Hour, Paused},
		{"paused and postponed", -time.Minute, time.Hour, Paused, 10 * time.Minute, 2 * time.Hour, Paused},
		{"paused before its start", time.Minute, time.Hour, Paused, 10 * time.Minute, time.Hour, Paused},
		{"paused, and the next one", -time.Minute, time.Hour, Paused, 2 * time.Hour, time.Hour, Waiting},
		{"ended and corrected", -time.Minute, time.Hour, Ended, -30 * time.Second, time.Hour, Ended},
		{"ended, and the next one", -time.Minute, time.Hour, Ended, 10 * time.Minute, time.Hour, Waiting},
		{"ended before its start", time.Minute, time.Hour, Ended, 2 * time.Minute, time.Hour, Ended},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r, now := redistest.Start(t), time.Now()
			sales, next := running("a"), running("a")
			sales[0].Starts, sales[0].Ends = now.Add(tt.starts), now.Add(tt.ends)
			next[0].Starts, next[0].Ends = now.Add(tt.nextStarts), now.Add(tt.nextStarts+tt.lasts)
			b, former := instance(t, r, 0, sales...), instance(t, r, 0, next...)
			testkit.Check(t, b.Set(t.Context(), "a", tt.to))
			former.beat(t.Context())
			b.Use(next, false)
			for who, one := range map[string]*Schedule{"with the former file": former, "reloaded": b,
				"restarted": instance(t, r, 0, next...)} {
				got := one.All()[0]
				if got.Shut {
					got.State = Paused
				}
				if got.State != tt.want {
					t.Errorf("the instance %s says %v, want %v", who, got.State, tt.want)
				}
			}
		})
	}
}

// A sale that is paused is moved or extended twice, each time by a restart of all instances, and its last hours are
// behind the first ones.
func TestOverride_PauseFollowsASaleThatIsMovedAgain(t *testing.T) {
	for what, hours := range map[string][][2]time.Duration{
		"moved":    {{60, 120}, {90, 150}, {130, 190}},
		"extended": {{60, 120}, {60, 180}, {130, 180}},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := redistest.Start(t), time.Now()
			for i, at := range hours {
				b := instance(t, r, 0, from(now, at))
				if i == 0 {
					testkit.Check(t, b.Set(t.Context(), "a", Paused))
				}
				if !b.All()[0].Shut {
					t.Errorf("%s %d times, it is not paused", what, i)
				}
				b.Close()
			}
		})
	}
}

// from is a sale of some minutes.
func from(now time.Time, at [2]time.Duration) Sale {
	s := running("a")[0]
	s.Starts, s.Ends = now.Add(at[0]*time.Minute), now.Add(at[1]*time.Minute)
	return s
}

// A sale is paused, and moved on some instances; the file of the one who resumes it has the former hours. Then it is
// moved again, by a restart of all instances.
func TestOverride_ResumeFollowsASaleThatIsMovedAgain(t *testing.T) {
	r, now := redistest.Start(t), time.Now()
	former := instance(t, r, 0, from(now, [2]time.Duration{60, 120}))
	testkit.Check(t, former.Set(t.Context(), "a", Paused))
	moved := instance(t, r, 0, from(now, [2]time.Duration{90, 150}))
	testkit.Check(t, former.Set(t.Context(), "a", On))
	testkit.Eventually(t, "it is resumed", func() bool { return !moved.All()[0].Shut })
	moved.Close()
	former.Close()
	if instance(t, r, 0, from(now, [2]time.Duration{130, 190})).All()[0].Shut {
		t.Error("it is paused again")
	}
}

// A Redis that takes no writes, as one without its replica, is read all the same: an instance starts with a file in
// which the hours of one sale are corrected, and hears what was said of the other one.
func TestOverride_WordsAreHeardWhileRedisTakesNoWrites(t *testing.T) {
	r := redistest.Start(t)
	sales := running("a", "b")
	b := instance(t, r, 0, sales...)
	for _, name := range []string{"a", "b"} {
		testkit.Check(t, b.Set(t.Context(), name, Paused))
	}
	b.Close()
	testkit.Check(t, r.Client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	sales[0].Starts = sales[0].Starts.Add(time.Second)
	for _, s := range instance(t, r, 0, sales...).All() {
		if s.State != Paused {
			t.Errorf("%s is %v", s.Name, s.State)
		}
	}
}

// Words that are of no sale any more are removed, after a time.
func TestOverride_OldWordsAreRemoved(t *testing.T) {
	r := redistest.Start(t)
	sales := running("a")
	now, ago := time.Now(), time.Now().Add(-2*forgetAfter)
	field := func(starts time.Time, name string) string { return word{starts: starts.UnixNano(), name: name}.field() }
	value := func(to State, at, ends time.Time) string {
		return word{ends: ends.UnixNano(), override: override{to, at.UnixMilli()}}.value()
	}
	words := map[string]string{
		field(ago, "old"):              value(Ended, ago, now),
		field(now, "b"):                value(Paused, now, now.Add(time.Hour)),
		field(sales[0].Starts, "a"):    value(Paused, ago, sales[0].Ends),
		field(ago, "a"):                value(Paused, ago, ago.Add(time.Hour)),
		"what no instance has written": "stays",
	}
	r.Client.HSet(t.Context(), "sluice:shop:sales", words)
	b := instance(t, r, 0, sales...)
	if got := b.All()[0].State; got != Paused {
		t.Errorf("it was paused long ago: %v", got)
	}
	if err := b.Set(t.Context(), "a", Ended); err != nil {
		t.Fatal(err)
	}
	left := r.Client.HKeys(t.Context(), "sluice:shop:sales").Val()
	slices.Sort(left)
	want := []string{field(sales[0].Starts, "a"), field(now, "b"), "what no instance has written"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// A sale is paused, and then it ends. The next one of its name opens, also on an instance that starts anew.
func TestOverride_NextSaleOfANameIsNotPausedByTheLastOne(t *testing.T) {
	for how, end := range map[string]func(*testing.T, *Schedule, []Sale){
		"by an operator": func(t *testing.T, b *Schedule, _ []Sale) {
			testkit.Check(t, b.Set(t.Context(), "a", Ended))
		},
		"by its time": func(t *testing.T, b *Schedule, _ []Sale) {
			testkit.Eventually(t, "it ends", func() bool { return b.All()[0].State == Ended })
		},
		"after it was moved": func(t *testing.T, b *Schedule, sales []Sale) {
			sales[0].Starts = sales[0].Starts.Add(time.Second)
			b.Use(sales, false)
			testkit.Check(t, b.Set(t.Context(), "a", Ended))
		},
	} {
		t.Run(how, func(t *testing.T) {
			r := redistest.Start(t)
			sales := running("a")
			if how == "by its time" {
				sales[0].Ends = time.Now().Add(time.Second)
			}
			b := instance(t, r, 0, sales...)
			testkit.Check(t, b.Set(t.Context(), "a", Paused))
			end(t, b, sales)
			if got := b.All()[0].State; got != Ended {
				t.Fatalf("it is %v", got)
			}
			next := running("a")
			next[0].Starts = time.Now().Add(100 * time.Millisecond)
			b.Use(next, false)
			for _, one := range []*Schedule{b, instance(t, r, 0, next...)} {
				testkit.Eventually(t, "it opens", func() bool { return is(one, "sku-a", reject.Admitted) })
			}
		})
	}
}
