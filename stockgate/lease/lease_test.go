package lease

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// fleet is some instances on one clock, which the test moves. Redis is a real one.
type fleet struct {
	t      *testing.T
	server *redistest.Server
	now    int64
	all    []*instance
}

type instance struct {
	*Keeper
	rate *limiter.RateLimiter
	next int64
}

const (
	perSecond = 100
	burst     = 20
)

func (f *fleet) add() *instance {
	f.t.Helper()
	k, err := New(Options{Name: "shop", Instance: "test", Now: func() int64 { return f.now },
		Redis: redisconn.Options{Addresses: []string{f.server.Addr}, PoolSize: 1, ConnectTimeout: 5 * time.Second,
			Timeout: 5 * time.Second, BreakerErrors: 1000, BreakerPause: time.Millisecond}})
	if err != nil {
		f.t.Fatal(err)
	}
	i := &instance{Keeper: k, next: f.now, rate: limiter.NewRateLimiter(limiter.RateSpec{PerSecond: perSecond,
		Burst:   burst,
		MaxKeys: 1 << 10, Fleet: true})}
	k.Use(map[string]Budget{"rate:r": i.rate.Fleet()})
	f.t.Cleanup(k.Close)
	f.all = append(f.all, i)
	return i
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{t: t, server: redistest.Start(t), now: int64(time.Hour)}
	for range n {
		f.add()
	}
	f.pass(2*time.Second, nil)
	return f
}

// pass lets time go by. ask has requests come in each millisecond.
func (f *fleet) pass(d time.Duration, ask func()) {
	for end := f.now + int64(d); f.now < end; f.now += int64(time.Millisecond) {
		for n, i := range f.all {
			if i.next <= f.now {
				i.turn(context.Background())
				i.next = f.now + int64(every) + int64(n)*int64(time.Millisecond) // not all at the same time
			}
		}
		if ask != nil {
			ask()
		}
	}
}

// load is who is asked how often for a key: per second, at each instance.
type load map[string][]float64

// admitted is how many requests of each key are admitted in that time.
func (f *fleet) admitted(d time.Duration, l load) map[string]int {
	n, random := map[string]int{}, rand.New(rand.NewPCG(1, 2))
	f.pass(d, func() {
		for key, asked := range l {
			for i, rate := range asked {
				if i >= len(f.all) {
					continue
				}
				for expected := rate / 1000; random.Float64() < expected; expected-- {
					if _, ok := f.all[i].rate.Acquire(f.now, []byte(key)); ok {
						n[key]++
					}
				}
			}
		}
	})
	return n
}

// turns has Redis' clock go on until it shows enough, in Unix ms. Those who live say so meanwhile.
func (f *fleet) turns(enough func(now int64) bool) {
	f.t.Helper()
	testkit.Eventually(f.t, "Redis' clock goes on", func() bool {
		for _, i := range f.all {
			i.turn(f.t.Context())
		}
		return enough(f.server.Client.Time(f.t.Context()).Val().UnixMilli())
	})
}

// sum is what all instances have of a key that is not busy.
func (f *fleet) sum() (all float64) {
	for _, i := range f.all {
		all += i.rate.Fleet().Base()
	}
	return all
}

// skewed are loads of four times the rate: by one instance, by another, by one alone, and even.
func skewed(n int) load {
	l := load{"first": {}, "last": {}, "alone": {}, "even": {}}
	for i := range n {
		l["first"] = append(l["first"], 400*math.Pow(0.3, float64(i)))
		l["last"] = append(l["last"], 400*math.Pow(0.3, float64(n-1-i)))
		l["alone"] = append(l["alone"], 0)
		l["even"] = append(l["even"], 400/float64(n))
	}
	l["alone"][n/2] = 400
	return l
}

// What the documentation promises: once the parts have followed the demand, of each key no more than 1.1 times its rate
// is admitted by all, and no less than 0.9 times.
func TestFleet_AdmitsTheRateOfEachKeyHoweverItsRequestsAreSpread(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		f := newFleet(t, n)
		first := f.admitted(3*time.Second, skewed(n))
		then := f.admitted(10*time.Second, skewed(n))
		for key := range skewed(n) {
			if most := 3*perSecond*1.1 + burst + float64(n); float64(first[key]) > most {
				t.Errorf("%d instances, %s: %d in the first 3 s, want %v at most", n, key, first[key], most)
			}
			if got := float64(then[key]) / (10 * perSecond); got < 0.9 || got > 1.1 {
				t.Errorf("%d instances, %s: %.2f of the rate, want 0.9 to 1.1", n, key, got)
			}
		}
		row(t, fmt.Sprintf("%d instances", n), first, then)
	}
}

// row prints a row of the table in docs/limits.md where it is asked for.
func row(t *testing.T, name string, first, then map[string]int) {
	if os.Getenv("SLUICE_TABLE") == "" {
		return
	}
	line := "| " + name
	for _, key := range []string{"even", "first", "last", "alone", "k"} {
		if first[key] > 0 {
			line += fmt.Sprintf(" | %.2f, %.2f", float64(first[key])/(3*perSecond), float64(then[key])/(10*perSecond))
		}
	}
	t.Log(line + " |")
}

// One is killed: its part is free after 2.5 s of Redis' clock. One is added.
func TestFleet_PartOfADeadInstanceIsFreed(t *testing.T) {
	t.Parallel()
	f, asked := newFleet(t, 3), load{"k": {200, 200, 200}}
	f.admitted(3*time.Second, asked)
	f.all = f.all[:2]
	missed := f.admitted(3*time.Second, asked)
	killed := f.server.Client.Time(t.Context()).Val().UnixMilli()
	f.turns(func(now int64) bool { return now > killed+alive.Milliseconds() })
	then := f.admitted(10*time.Second, asked)
	if n := float64(then["k"]) / (10 * perSecond); n < 0.9 || n > 1.1 {
		t.Errorf("%.2f of the rate by two of three", n)
	}
	row(t, "one of three killed", missed, then)
	f.add()
	joins := f.admitted(3*time.Second, asked)
	then = f.admitted(10*time.Second, asked)
	if n := float64(then["k"]) / (10 * perSecond); n < 0.9 || n > 1.1 {
		t.Errorf("%.2f of the rate by three again", n)
	}
	row(t, "one added", joins, then)
}

func TestFleet_ADemandThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.admitted(3*time.Second, load{"k": {400, 0}})
	moving := f.admitted(3*time.Second, load{"k": {0, 400}})
	then := f.admitted(10*time.Second, load{"k": {0, 400}})
	if n := moving["k"]; n > 3*perSecond*1.1+burst {
		t.Errorf("%d while it moves", n)
	}
	if n := float64(then["k"]) / (10 * perSecond); n < 0.9 || n > 1.1 {
		t.Errorf("%.2f of the rate after it has moved", n)
	}
	row(t, "moved", moving, then)
}

func TestFleet_PartsNeverSumUpToMoreThanTheWhole(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	for range 3 {
		f.add()
		f.pass(time.Second, func() {
			if sum := f.sum(); sum > 1+1e-9 {
				t.Fatalf("the parts sum up to %v", sum)
			}
		})
	}
	if sum := f.sum(); sum < 1-1e-9 {
		t.Errorf("the parts of four sum up to %v, want 1", sum)
	}
	gone := f.all[3]
	f.all = f.all[:3]
	gone.Start() // for Close, which gives its part back
	gone.Close()
	f.pass(time.Second, nil)
	if sum := f.sum(); math.Abs(sum-1) > 1e-9 {
		t.Errorf("after one has left the parts sum up to %v, want 1", sum)
	}
}

func TestFleet_WithoutRedisEachKeepsItsPart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.admitted(3*time.Second, load{"k": {300, 100}})
	f.server.Kill()
	both := func(when string) {
		first := f.admitted(3*time.Second, load{"k": {300, 100}})
		then := f.admitted(10*time.Second, load{"k": {300, 100}})
		a, b := float64(first["k"])/(3*perSecond), float64(then["k"])/(10*perSecond)
		if min(a, b) < 0.9 || max(a, b) > 1.1 {
			t.Errorf("%s: %.2f of the rate, then %.2f", when, a, b)
		}
		row(t, when, first, then)
	}
	both("Redis is away")
	f.server.Restart() // empty
	// Parts do not grow in the first 4 s: others who have one may not have said so yet.
	f.turns(func(now int64) bool {
		born, err := f.server.Client.HGet(t.Context(), f.all[0].key("rate:r"), "#born").Int64()
		return err == nil && now > born+4000
	})
	both("Redis is back")
}

func TestKeeper_BeginsWithoutRedisAfterAWhile(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	f := &fleet{t: t, server: server, now: int64(time.Hour)}
	i := f.add()
	if i.turn(t.Context()); !i.Waiting() || i.rate.Fleet().Base() != 0 {
		t.Errorf("it has %v at once", i.rate.Fleet().Base())
	}
	f.now += int64(alive) + 1
	if i.turn(t.Context()); i.Waiting() || i.rate.Fleet().Base() != 1 {
		t.Errorf("it has %v after 2.5 s, want all", i.rate.Fleet().Base())
	}
}

func TestKeeper_DividesByItself(t *testing.T) {
	f := &fleet{t: t, server: redistest.Start(t), now: 1}
	a, b := f.add(), f.add()
	start := time.Now()
	for _, i := range f.all {
		i.options.Now = func() int64 { return int64(time.Since(start)) }
		i.Start()
	}
	testkit.Eventually(t, "both have a half", func() bool {
		return a.rate.Fleet().Base() == 0.5 && b.rate.Fleet().Base() == 0.5 && !a.Waiting() && !b.Waiting()
	})
	b.Close()
	testkit.Eventually(t, "one has all", func() bool { return a.rate.Fleet().Base() == 1 })
}

func TestKept_RejectsRepliesThatMeanNothing(t *testing.T) {
	seed := strings.Repeat("0", 32)
	for _, reply := range [][]string{nil, {seed, "1"}, {"x", "1", "1"}, {seed, "0", "1"}, {seed, "1", "2"}, {seed, "1",
		"nan"},
		{seed, "1", "1", "k"}, {seed, "1", "1", "!", "1"}, {seed, "1", "1", "k", "-1"}} {
		b := &kept{Budget: &limiter.FleetShare{}, base: -1}
		if err := b.take(reply); err == nil || b.base != -1 {
			t.Errorf("%q is understood as %v", reply, b.base)
		}
	}
}

// hungry is a budget with more busy keys than are divided.
type hungry struct{ busy int }

func (h *hungry) Demand(time.Duration) (all []limiter.FleetDemand) {
	for key := range 600 {
		all = append(all, limiter.FleetDemand{Key: uint64(key + 1), PerSecond: 5, Share: 0.1})
	}
	return all
}

func (h *hungry) SetParts(_ [2]uint64, _ float64, busy []limiter.FleetPart) { h.busy = len(busy) }

// The Redis that divides may hold the stock: what a call reads, and how many calls there are, is bounded for all.
func TestFleet_AsksLittleOfRedisHoweverManyInstances(t *testing.T) {
	t.Parallel()
	f := &fleet{t: t, server: redistest.Start(t), now: int64(time.Hour)}
	var all []*hungry
	for range 10 {
		h := &hungry{}
		all = append(all, h)
		i := f.add()
		i.Use(map[string]Budget{"rate:r": h, "rate:s": &hungry{}})
		if i.turn(t.Context()); len(all) == 1 && h.busy != 512 {
			t.Errorf("one alone has %d busy keys, want 512", h.busy)
		}
	}
	for range 2 {
		for _, i := range f.all {
			i.turn(t.Context())
		}
	}
	for i, h := range all {
		if h.busy != 200 {
			t.Errorf("instance %d of ten has %d busy keys, want 200", i, h.busy)
		}
		if pause := f.all[i].pause(); pause != 2*every {
			t.Errorf("instance %d of ten with two budgets asks each %v, want %v", i, pause, 2*every)
		}
	}
}
