package sale

import (
	"errors"
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
	again.Starts = again.Starts.Add(time.Second)
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
			return strings.HasPrefix(r.Client.HGet(t.Context(), "sluice:shop:sales", "a").Val(), "paused ")
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
	b.Use(running("a"))
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
		last := r.Client.HGet(t.Context(), "sluice:shop:sales", "a").Val()
		r.Client.Rename(t.Context(), "before", "sluice:shop:sales") // a fail-over has lost the last word
		testkit.Eventually(t, "it is told again",
			func() bool { return r.Client.HGet(t.Context(), "sluice:shop:sales", "a").Val() == last })
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
	b.Use(sales)
	if !is(b, "sku-a", reject.Paused) {
		t.Error("a sale that is paused was open for a moment")
	}
	if _, wrong := b.Skew(); !wrong {
		t.Error("it was not read at the clock")
	}
}

// Two instances have different starts of one sale. An end of one start is final, and is neither taken back nor does it
// replace what was said of the other start.
func TestOverride_EndIsOfOneStartAndFinal(t *testing.T) {
	r := redistest.Start(t)
	sales, other := running("a"), running("a")
	other[0].Starts = other[0].Starts.Add(time.Second)
	first, second := instance(t, r, 0, sales...), instance(t, r, 0, other...)
	say := func(b *Schedule, to State) {
		t.Helper()
		if err := b.Set(t.Context(), "a", to); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			second.beat(t.Context())
			first.beat(t.Context())
		}
	}
	state := func(b *Schedule) State { return b.All()[0].State }
	say(first, Paused)
	say(second, Ended)
	if again := instance(t, r, 0, sales...); state(again) != Paused || state(first) != Paused {
		t.Errorf("paused, and the sale of another start ended: %v, a new instance %v", state(first), state(again))
	}
	say(first, Ended)
	writes := r.Calls("hset")
	for range 3 {
		second.beat(t.Context())
		first.beat(t.Context())
	}
	if n := r.Calls("hset") - writes; n != 0 {
		t.Errorf("words were written %d times more", n)
	}
	for _, b := range []*Schedule{instance(t, r, 0, sales...), instance(t, r, 0, other...), first, second} {
		if state(b) != Ended {
			t.Errorf("both were ended: %v", state(b))
		}
	}
	if err := first.Set(t.Context(), "a", On); !errors.Is(err, ErrEnded) {
		t.Errorf("an ended sale was resumed: %v", err)
	}
}

// A sale is paused and then ended, and another sale gets its name. It opens, also on an instance that starts anew.
func TestOverride_NextSaleOfANameIsNotPausedByTheLastOne(t *testing.T) {
	r := redistest.Start(t)
	b := instance(t, r, 0, running("a")...)
	for _, to := range []State{Paused, Ended} {
		if err := b.Set(t.Context(), "a", to); err != nil {
			t.Fatal(err)
		}
	}
	next := running("a")
	next[0].Starts = next[0].Starts.Add(time.Second)
	b.Use(next)
	b.beat(t.Context())
	if again := instance(t, r, 0, next...); !is(b, "sku-a", reject.Admitted) || !is(again, "sku-a", reject.Admitted) {
		t.Errorf("%v, a new instance %v", b.All()[0].State, again.All()[0].State)
	}
}
