package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// told is one instance, and what it heard.
type told struct {
	*Fleet
	mu     sync.Mutex
	shares []Share
	holds  []Change // those that were not removed
	again  int      // how often what follows from them was to be done again
	did    []string
}

func (t *told) names() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.holds {
		names = append(names, c.Name+"="+c.Text)
	}
	return names
}

func (t *told) tasksDone() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.did)
}

func (t *told) ofs() (ofs []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shares {
		ofs = append(ofs, s.Of)
	}
	return ofs
}

// turn is one heartbeat, and what follows from it.
func (t *told) turn(ctx context.Context) {
	h, _ := t.beat(ctx)
	t.handle(ctx, h)
}

// instanceOf is an instance that has not joined yet.
func instanceOf(t *testing.T, address, name, secret string) *told {
	t.Helper()
	link, err := redisconn.New(redisconn.Options{Addresses: []string{address}, PoolSize: 2,
		ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second, BreakerErrors: 100,
		BreakerPause: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	to, start := &told{}, time.Now()
	f, err := New(Options{
		Link: link, Name: "shop", Instance: name, Secret: []byte(secret), Now: func() int64 { return int64(time.Since(start)) },
		Summary: func() string { return `{"of":"` + name + `"}` },
		Tell: func(s Share) {
			to.mu.Lock()
			defer to.mu.Unlock()
			to.shares = append(to.shares, s)
		},
		Changed: func(all []Change, again bool) {
			to.mu.Lock()
			defer to.mu.Unlock()
			to.holds = slices.DeleteFunc(all, func(c Change) bool { return c.Removed })
			if again {
				to.again++
			}
		},
		Do: func(text string) string {
			to.mu.Lock()
			defer to.mu.Unlock()
			to.did = append(to.did, text)
			return name + " did " + text
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	to.Fleet = f
	t.Cleanup(f.Close)
	return to
}

func join(t *testing.T, address, name string) *told {
	t.Helper()
	to := instanceOf(t, address, name, "")
	to.Start()
	testkit.Eventually(t, "it is listed", func() bool {
		all, err := to.Instances(t.Context())
		return err == nil && slices.ContainsFunc(all, func(i Instance) bool { return i.ID == to.ID() })
	})
	return to
}

func TestFleet_AChangeReachesAllAndLateStarters(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := join(t, server.Addr, "a"), join(t, server.Addr, "b")
	first := testkit.Must[Change](t)(a.Put(t.Context(), "key mode", "observe", time.Hour, 0))
	testkit.Must[Change](t)(b.Put(t.Context(), "key limits.window.max", "5", time.Hour, 0))
	c := join(t, server.Addr, "c")
	want := []string{"key mode=observe", "key limits.window.max=5"}
	for _, one := range []*told{a, b, c} {
		testkit.Eventually(t, "it knows both", func() bool { return slices.Equal(one.names(), want) })
	}
	again := testkit.Must[Change](t)(b.Put(t.Context(), "key mode", "enforce", time.Hour, 0))
	if err := a.Remove(t.Context(), "key mode", first.Number); !errors.Is(err, ErrReplaced) {
		t.Errorf("%v: a change was removed that another one has taken the place of", err)
	}
	for range 2 {
		if err := c.Remove(t.Context(), "key mode", again.Number); err != nil {
			t.Errorf("it was not removed: %v", err)
		}
	}
	for _, one := range []*told{a, b, c} {
		testkit.Eventually(t, "one is left", func() bool { return slices.Equal(one.names(), want[1:]) })
	}
}

func TestFleet_KnownChangesOutliveRedisAndItsData(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := join(t, server.Addr, "a"), join(t, server.Addr, "b")
	testkit.Must[Change](t)(a.Put(t.Context(), "sku 1001", "paused", time.Hour, time.Hour))
	want := []string{"sku 1001=paused"}
	testkit.Eventually(t, "both know it", func() bool {
		return slices.Equal(a.names(), want) && slices.Equal(b.names(),
			want)
	})
	server.Kill()
	testkit.Eventually(t, "both notice", func() bool { return a.beats.Away() && b.beats.Away() })
	if _, err := a.Put(t.Context(), "key mode", "observe", time.Hour, 0); err == nil {
		t.Error("a change was made while Redis was away")
	}
	server.Restart() // empty
	c := join(t, server.Addr, "c")
	testkit.Eventually(t, "a late starter knows it", func() bool { return slices.Equal(c.names(), want) })
	if !slices.Equal(a.names(), want) || !slices.Equal(b.names(), want) {
		t.Errorf("%q, %q, want %q", a.names(), b.names(), want)
	}
}

// One instance hears the list of a Redis that was emptied, and another one puts back what it lacked before the first
// can: the changes hold on meanwhile. Those that are over by Redis' clock are let go with the next beat.
func TestFleet_ChangesHoldWhileAnotherInstancePutsThemBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := join(t, server.Addr, "a")
	testkit.Must[Change](t)(a.Put(t.Context(), "sku 1001", "paused", time.Hour, time.Hour))
	want := []string{"sku 1001=paused"}
	testkit.Eventually(t, "it knows it", func() bool { return slices.Equal(a.names(), want) })
	b := instanceOf(t, server.Addr, "b", "")
	b.turn(t.Context())
	if got := b.names(); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	emptied := heard{version: "another"}
	if b.learn(t.Context(), emptied); !slices.Equal(b.names(), want) {
		t.Errorf("%q in between, want %q", b.names(), want)
	}
	if b.learn(t.Context(), emptied); len(b.names()) != 0 {
		t.Errorf("%q, although it cannot be put back", b.names())
	}
	if b.turn(t.Context()); !slices.Equal(b.names(), want) {
		t.Errorf("%q, want %q: Redis has it", b.names(), want)
	}
	b.over = true
	if b.turn(t.Context()); b.over {
		t.Error("a beat that lacks nothing does not end what the one before lacked")
	}
}

// A Redis that was emptied is seen, also where it is asked something, or has another change, before the next beat.
func TestFleet_AnEmptiedRedisIsSeen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, meanwhile := range map[string]func(a *told){
		"a task": func(a *told) {
			bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			_, _, _ = a.Ask(bounded, "show") // what it comes to is no matter
		},
		"a change": func(a *told) { testkit.Must[Change](t)(a.Put(ctx, "key b", "2", time.Hour, 0)) },
	} {
		server := redistest.Start(t)
		a, b := join(t, server.Addr, "a"), join(t, server.Addr, "b")
		removed := testkit.Must[Change](t)(a.Put(ctx, "key removed", "0", time.Hour, 0))
		testkit.Must[Change](t)(a.Put(ctx, "key a", "1", time.Hour, 0))
		testkit.Eventually(t, "all is known", func() bool { return len(a.names()) == 2 && len(b.names()) == 2 })
		if err := b.Remove(ctx, "key removed", removed.Number); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "one is left", func() bool { return len(a.names()) == 1 && len(b.names()) == 1 })
		server.Client.FlushAll(ctx)
		meanwhile(a)
		testkit.Eventually(t, "the loss is seen", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			b.mu.Lock()
			defer b.mu.Unlock()
			return a.again+b.again > 0
		})
		c := join(t, server.Addr, "c")
		for _, one := range []*told{a, b, c} {
			testkit.Eventually(t, name+": what was known is there", func() bool {
				return slices.Contains(one.names(), "key a=1") && !slices.Contains(one.names(), "key removed=0")
			})
		}
	}
}

// An entry that cannot be read is passed over: the instance lives, hears the others, and puts back what the entry was.
func TestFleet_EntryThatCannotBeReadStopsNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, secret := range []string{"", "secret"} {
		a, b := instanceOf(t, server.Addr, "a", secret), instanceOf(t, server.Addr, "b", secret)
		testkit.Must[Change](t)(a.Put(t.Context(), "key a", "1", time.Hour, 0))
		a.turn(t.Context())
		server.Client.HSet(t.Context(), a.tasks, "9", "junk", "#version", "9 x "+secret)
		testkit.Must[Change](t)(b.Put(t.Context(), "key c", "3", time.Hour, 0))
		server.Client.HSet(t.Context(), a.changes, "key a", "junk", "key b", "junk", "#version", "9 y "+secret)
		for range 2 { // the first one puts back what it lacks
			h, _ := a.beat(t.Context())
			if a.handle(t.Context(), h); h.err != nil {
				t.Fatal(h.err)
			}
		}
		if got := a.names(); !slices.Equal(got, []string{"key a=1", "key c=3"}) {
			t.Errorf("secret %q: %q hold", secret, got)
		}
		server.Client.FlushAll(t.Context())
	}
}

// The list is repeated from time to time: a server that has lost what followed from it may have the list still.
func TestFleet_RepeatsTheList(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := join(t, server.Addr, "a")
	testkit.Must[Change](t)(a.Put(t.Context(), "sku 1001", "paused", time.Hour, 0))
	b := instanceOf(t, server.Addr, "b", "")
	b.turns = repeatBeats - 3
	b.Start()
	testkit.Eventually(t, "it is repeated", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.again == 1 && len(b.holds) == 1 && b.holds[0].Text == "paused"
	})
}

// An instance that has not heard of a removal does not put the change back.
func TestFleet_ARemovalOutlivesThoseWhoMissedIt(t *testing.T) {
	known := []Change{{Name: "a", Number: 7, gone: time.Unix(100, 0)}}
	for _, c := range []struct {
		list []Change
		at   int64
		want int
	}{
		{nil, 99, 1}, {nil, 100, 0},
		{[]Change{{Name: "a", Number: 7, Removed: true}}, 99, 0},
		{[]Change{{Name: "a", Number: 8}}, 99, 0},
		{[]Change{{Name: "a", Number: 6}}, 99, 1}, // the server that took over is older
		{[]Change{{Name: "b", Number: 9}}, 99, 1},
	} {
		if lost := lacking(c.list, known, time.Unix(c.at, 0)); len(lost) != c.want {
			t.Errorf("%+v at %d lacks %+v, want %d", c.list, c.at, lost, c.want)
		}
	}
	known[0].Removed = true
	if lost := lacking([]Change{{Name: "a", Number: 7}}, known, time.Unix(99, 0)); len(lost) != 1 {
		t.Error("a removal that the list lacks is not put back")
	}
}

func TestFleet_ATaskIsDoneOnceByThoseThatRun(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, _ := join(t, server.Addr, "a"), join(t, server.Addr, "b")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answers, missing, err := a.Ask(ctx, "reset")
	if err != nil || len(missing) != 0 || len(answers) != 2 || answers[0].Text != "a did reset" ||
		answers[1].Text != "b did reset" {
		t.Errorf("%+v, missing %q, %v", answers, missing, err)
	}
	late := join(t, server.Addr, "late")
	if answers, _, err = late.Ask(ctx, "show"); err != nil || len(answers) != 3 {
		t.Errorf("%+v, %v", answers, err)
	}
	if did := late.tasksDone(); !slices.Equal(did, []string{"show"}) {
		t.Errorf("the late starter did %q, want only what was asked after its start", did)
	}
	if did := a.tasksDone(); !slices.Equal(did, []string{"reset", "show"}) {
		t.Errorf("it did %q", did)
	}
}

func TestFleet_ClosedInstanceDoesNoFurtherTask(t *testing.T) {
	t.Parallel()
	a := instanceOf(t, redistest.Start(t).Addr, "a", "")
	a.turn(t.Context())
	for _, text := range []string{"first", "second"} {
		testkit.Must[int64](t)(a.put(t.Context(), a.tasks, "", text, taskTime, 0))
	}
	ctx, cancel := context.WithCancel(t.Context())
	do := a.options.Do
	a.options.Do = func(text string) string {
		cancel()
		return do(text)
	}
	h, _ := a.beat(t.Context())
	if a.handle(ctx, h); !slices.Equal(a.tasksDone(), []string{"first"}) {
		t.Errorf("%q were done, want what was begun", a.tasksDone())
	}
}

func TestFleet_AskNamesThoseWhoDoNotAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := join(t, server.Addr, "a")
	now := testkit.Must[time.Time](t)(server.Client.Time(t.Context()).Result())
	server.Client.HSet(t.Context(), a.instances, "hangs", fmt.Sprintf("%d {}", now.UnixMilli()))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // for those who answer
	defer cancel()
	answers, missing, err := a.Ask(ctx, "show")
	if err != nil || len(answers) != 1 || !slices.Equal(missing, []string{"hangs"}) {
		t.Errorf("%+v, missing %q, %v", answers, missing, err)
	}
}

func TestFleet_WhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := join(t, server.Addr, "a")
	testkit.Must[Change](t)(a.Put(t.Context(), "ended", "x", time.Millisecond, 0)) // makes room for the next
	for i := range maxChanges {
		testkit.Must[Change](t)(a.Put(t.Context(), fmt.Sprintf("key %d", i), "x", time.Hour, 0))
	}
	if _, err := a.Put(t.Context(), "one more", "x", time.Hour, 0); err == nil || !strings.Contains(err.Error(),
		"undo some") {
		t.Errorf("%v, want that there are too many", err)
	}
	testkit.Must[Change](t)(a.Put(t.Context(), "key 7", "y", time.Hour, 0)) // in its own place
	if _, err := a.Put(t.Context(), "large", strings.Repeat("x", maxText), time.Hour, 0); err == nil {
		t.Error("a large change was taken")
	}
	if n := server.Client.HLen(t.Context(), a.changes).Val(); n != maxChanges+1 {
		t.Errorf("%d fields", n)
	}
	for _, key := range []string{a.changes, a.instances} {
		if server.Client.PTTL(t.Context(), key).Val() <= 0 {
			t.Errorf("%s does not expire", key)
		}
	}
}

func TestFleet_OneThatIsGoneIsNotListed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	now := testkit.Must[time.Time](t)(server.Client.Time(t.Context()).Result())
	server.Client.HSet(t.Context(), "sluice:shop:fleet:{shop}:instances", "killed",
		fmt.Sprintf("%d {}", now.Add(-listedFor).UnixMilli()))
	a, b := join(t, server.Addr, "a"), join(t, server.Addr, "b")
	if all := testkit.Must[[]Instance](t)(a.Instances(t.Context())); len(all) != 2 || all[0].Summary != `{"of":"a"}` {
		t.Errorf("%+v", all)
	}
	b.Close()
	if all := testkit.Must[[]Instance](t)(a.Instances(t.Context())); len(all) != 1 {
		t.Errorf("%+v after one has left", all)
	}
}

func TestFleet_RepliesThatMeanNothingAreErrors(t *testing.T) {
	now, f := time.Now(), &Fleet{options: Options{Log: slog.New(slog.DiscardHandler)}}
	reply := func(parts ...any) []any { return append([]any{"1", "0", nil, []any{}}, parts...) }
	for _, reply := range [][]any{
		nil, {"1"}, reply("1", "1", nil), reply(nil, "1", nil, nil), reply("2", "3", "list", nil),
		reply("2", "3", []any{"a"}, nil),
		{"x", "2", nil, []any{}, "1", "1", nil, nil}, {"1", nil, nil, []any{}, "1", "1", nil, nil},
		{"1", "2", "-1", []any{}, "1", "1", nil, nil}, {"1", "2", nil, "list", "1", "1", nil, nil},
		{"1", "2", nil, []any{"a"}, "1", "1", nil, nil}, {"1", "2", nil, []any{"a", 7}, "1", "1", nil, nil},
		{"1", "2", nil, []any{nil, "7"}, "1", "1", nil, nil},
	} {
		if h, err := f.read(reply, now); err == nil {
			t.Errorf("%v was read as %+v", reply, h)
		}
	}
	h, err := f.read([]any{"1", "4", "2.5e+3", []any{"a", "3000"}, "8 x", "9 y",
		[]any{"#version", "8 x", "a", "8 3000 3000 on - a text", "b", "7 1 1 off ", "c", "1 x 3 on - text",
			"d", "1 2 3 4 - text", "e", "1 2 3 on text"},
		[]any{"9", "9 2000 2000 on - show", "8", "8 900 900 on - late", "7", "b"}}, now)
	if err != nil || len(h.changes) != 2 || h.changes[1].Text != "a text" || !h.changes[0].Removed ||
		!h.changes[1].Until.Equal(now.Add(2*time.Second)) || len(h.tasks) != 1 || h.tasks[0].Text != "show" {
		t.Errorf("%+v, %v", h, err)
	}
	if m := h.members; m.micros != 1_000_004 || m.before != 2500 || m.beats["a"] != 3000 {
		t.Errorf("%+v", m)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a", "8 3000 3000 on - a text", "9", "1")
	f.Fuzz(func(t *testing.T, name, raw, version, clock string) {
		for _, secret := range []string{"", "secret"} {
			of := &Fleet{options: Options{Secret: []byte(secret), Log: slog.New(slog.DiscardHandler)}}
			h, err := of.read([]any{clock, "0", nil, []any{}, version, version, []any{name, raw}, nil}, time.Unix(0, 0))
			if err == nil && len(h.changes)+len(h.tasks) > 1 {
				t.Errorf("%+v", h)
			}
		}
	})
}
