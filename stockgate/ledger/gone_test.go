package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// calledAgo has the mark of r say that its last call was so long ago.
func calledAgo(t *testing.T, s *redistest.Server, r *Store, ago time.Duration) {
	t.Helper()
	mark := strings.Split(s.Client.HGet(t.Context(), hashOf1001, "m:"+r.instance).Val(), "|")
	testkit.Want(t, "parts of a mark", len(mark), 3)
	mark[1] = fmt.Sprint(time.Now().Add(-ago).UnixMilli())
	testkit.Check(t, s.Client.HSet(t.Context(), hashOf1001, "m:"+r.instance, strings.Join(mark, "|")).Err())
}

// Redis was away for two minutes, and has lost its tail. An instance that was cut off some minutes earlier is the first
// that calls. Those who sold until Redis went are waited for.
func TestRestart_FirstCallerThatWasCutOffBeforeMakesNoneLookAsIfItWereGone(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	kept := snapshotOf(t, server, "1001")
	code, _ := takes(t, b, "sold, and lost")
	testkit.Want(t, "the last unit of b", code, Held)
	kept.restore(t, server)
	calledAgo(t, server, a, 5*time.Minute)
	calledAgo(t, server, b, 2*time.Minute)
	restart(t, server)
	code, h := takes(t, a, "new")
	testkit.Want(t, "code", code, NotOnSale)
	testkit.Want(t, "state", h.State, Verifying)
	testkit.Want(t, "free", stockIn(t, a).Free, 3)
}

// As before, without another server: the first caller finds that the ledger has lost something.
func TestRecover_FirstCallerThatWasCutOffBeforeCallsTheRollOfAll(t *testing.T) {
	t.Parallel()
	server, a := onRedis(t)
	b := connect(t, server, texts())
	a.Settle = 0
	takes(t, a, "a")
	takes(t, b, "b")
	calledAgo(t, server, a, 5*time.Minute)
	calledAgo(t, server, b, 2*time.Minute)
	testkit.Check(t, server.Client.HIncrBy(t.Context(), hashOf1001, "ver", -1).Err())
	takes(t, a, "new")
	takes(t, a, "new")
	for range 3 {
		s := tells(t, a)
		testkit.Want(t, "state", s.State, Frozen)
		testkit.Want(t, "waits", fmt.Sprint(s.Waits), fmt.Sprint([]string{b.instance}))
	}
}

// Two instances were cut off, or killed, at about the same time. One of them comes back while others run: the clock has
// not jumped, and the other one is as long gone as before.
func TestRestart_InstanceThatComesBackMakesNoOtherLookAsIfItWereThere(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b, gone := single(t, server), connect(t, server, texts())
	for i, r := range []*Store{a, b, gone} {
		takes(t, r, fmt.Sprint(i))
	}
	calledAgo(t, server, b, 5*time.Minute)
	calledAgo(t, server, gone, 5*time.Minute)
	takes(t, a, "0")
	takes(t, b, "1") // it is back
	takes(t, a, "0")
	restart(t, server)
	takes(t, a, "0")
	takes(t, b, "1")
	code, h := takes(t, a, "new")
	testkit.Want(t, "code", code, Held)
	testkit.Want(t, "state", h.State, On)
}

// An instance that has told all that it knows is asked once more: the SKU has frozen again meanwhile, on a server that
// lost what was told. The call by which it finds that out told nothing of the epoch that begins with it, so others
// still wait for it: what they did to its orders comes after these.
func TestRecover_CallThatFreezesTheSKUAgainHasToldNothing(t *testing.T) {
	t.Parallel()
	server, a := onRedis(t)
	b := connect(t, server, texts())
	a.Settle, b.Settle = 0, 0
	takes(t, a, "a")
	takes(t, b, "b")
	kept := snapshotOf(t, server, "1001")
	takes(t, b, "lost")
	testkit.Want(t, "sold", finishOne(t, b, Confirm, "lost"), Changed)
	testkit.Want(t, "given back", finishOne(t, a, Refund, "lost"), Changed)
	kept.restore(t, server)
	takes(t, a, "new") // it freezes
	kept = snapshotOf(t, server, "1001")
	tells(t, b) // it hears of the epoch
	tells(t, b)
	kept.restore(t, server) // what b has told is lost
	tells(t, b)
	for _, r := range []*Store{a, a, a, b, b, a, b, a} {
		tells(t, r)
	}
	testkit.Want(t, "state", stockIn(t, a).State, On)
	testkit.Want(t, "given back", statusOf(t, a, "lost"), "R")
}

// Redis is restarted twice, and no instance misses anything. One that was killed an hour ago is not waited for.
func TestRestart_TwiceWaitsForNoInstanceThatWasGoneBefore(t *testing.T) {
	server, a := durable(t)
	b, gone := single(t, server), single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	takes(t, gone, "c")
	calledAgo(t, server, gone, time.Hour)
	restart(t, server)
	_, h := takes(t, a, "new")
	testkit.Want(t, "state", h.State, Verifying)
	restart(t, server)
	takes(t, a, "new")
	takes(t, b, "new")
	_, h = takes(t, a, "new")
	testkit.Want(t, "state", h.State, On)
}

// The first server waits for an instance when Redis is restarted again, and the second one has lost something. By then
// the instance looks as if it were gone for long. It is waited for all the same.
func TestRestart_TwiceWaitsForWhomTheFirstServerHasWaitedFor(t *testing.T) {
	for name, lost := range map[string]bool{"of which nothing is lost": false, "of which something is lost": true} {
		t.Run(name, func(t *testing.T) {
			server, a := durable(t)
			b := single(t, server)
			a.Settle = 0
			takes(t, a, "a")
			takes(t, b, "b")
			restart(t, server)
			_, h := takes(t, a, "new")
			testkit.Want(t, "state", h.State, Verifying)
			calledAgo(t, server, b, 2*time.Minute)
			if lost {
				testkit.Check(t, server.Client.HIncrBy(t.Context(), hashOf1001, "ver", -1).Err())
			}
			restart(t, server)
			takes(t, a, "new")
			for range 3 {
				if len(a.Pending()) > 0 {
					tells(t, a)
				}
				code, _ := takes(t, a, "new")
				testkit.Want(t, "code", code, NotOnSale)
			}
		})
	}
}

// Two calls of an instance overtake each other on their way. Redis fails over, and has the later one alone. Another
// instance sells an order that it holds before the first one calls: the ledger has as many changes as that one has
// seen. So it is when Redis fails over twice.
func TestRestart_ChangeOfAnotherInstanceHidesNoLostOne(t *testing.T) {
	for _, restarts := range []int{1, 2} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) { lostBehindAChange(t, restarts) })
	}
}

func lostBehindAChange(t *testing.T, restarts int) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	n := a.calls.Load()
	a.calls.Store(n + 10)
	takes(t, a, "a") // a replay, that was sent later
	kept := snapshotOf(t, server, "1001")
	a.calls.Store(n)
	code, _ := takes(t, a, "lost")
	testkit.Want(t, "code", code, Held)
	a.calls.Store(n + 20)
	kept.restore(t, server)
	restart(t, server)
	testkit.Want(t, "sold", finishOne(t, b, Confirm, "b"), Changed)
	if restarts > 1 {
		restart(t, server)
		takes(t, b, "more")
	}
	code, h := takes(t, a, "new")
	testkit.Want(t, "code", code, NotOnSale)
	testkit.Want(t, "state", h.State, Frozen)
}
