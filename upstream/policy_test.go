package upstream

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// set is a set of idle targets that were never connected to.
func set(t *testing.T, policy string, n int) *targets {
	pick, err := policyNamed(policy)
	if err != nil {
		t.Fatal(err)
	}
	ts := &targets{next: new(atomic.Uint64), pick: pick}
	for i := range n {
		a, err := parseAddress(fmt.Sprintf("http://10.0.0.%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		ts.all = append(ts.all, &target{dialer: &dialer{address: a}})
	}
	return ts
}

var policies = []string{"least_conn", "round_robin", "random", "first", "client_hash"}

// Whatever the policy: a target that is out is not chosen, one that was tried is not chosen again, and
// when all are out they are chosen all the same.
func TestPolicy_ChoosesAmongTheUsable(t *testing.T) {
	for _, policy := range policies {
		ts := set(t, policy, 5)
		ts.all[0].health.down.Store(true)
		ts.all[3].ejection.until.Store(int64(time.Second))
		seen := map[int]bool{}
		for key := range uint64(200) {
			seen[ts.choose(0, key, 0)] = true
			if i := ts.choose(1<<1|1<<2, key, 0); i != 4 {
				t.Fatalf("%s: chose %d, the only one left is 4", policy, i)
			}
		}
		if seen[0] || seen[3] || seen[-1] || policy != "first" && len(seen) != 3 {
			t.Errorf("%s: chose %v", policy, seen)
		}
		for _, x := range ts.all {
			x.health.down.Store(true)
		}
		if i := ts.choose(0, 1, 0); i < 0 {
			t.Errorf("%s: all are out, and none was chosen", policy)
		}
		if i := ts.choose(1<<5-1, 1, 0); i != -1 {
			t.Errorf("%s: all were tried, and %d was chosen", policy, i)
		}
	}
}

func TestPolicy_LeastConnChoosesTheLeastLoaded(t *testing.T) {
	for _, policy := range []string{"least_conn", "random"} {
		ts := set(t, policy, 2)
		ts.all[0].counters.inFlight.Store(1)
		ts.all[0].queue.length.Store(2)
		ts.all[1].counters.inFlight.Store(2)
		for range 50 {
			if i := ts.choose(0, 0, 0); i != 1 {
				t.Fatalf("%s chose the loaded one", policy)
			}
		}
	}
}

func TestPolicy_RoundRobinIsFair(t *testing.T) {
	for _, policy := range []string{"round_robin", "least_conn"} {
		ts := set(t, policy, 3)
		var n [3]int
		for range 300 {
			n[ts.choose(0, 0, 0)]++
		}
		if n != [3]int{100, 100, 100} {
			t.Errorf("%s: %v", policy, n)
		}
	}
}

// When a target goes, only its own clients move.
func TestPolicy_ClientHashMovesOnlyTheClientsOfARemovedTarget(t *testing.T) {
	ts := set(t, "client_hash", 5)
	var n [5]int
	before := map[uint64]int{}
	for key := range uint64(5000) {
		before[key] = ts.choose(0, key, 0)
		n[before[key]]++
	}
	ts.all[2].health.down.Store(true)
	for key, was := range before {
		if now := ts.choose(0, key, 0); was != 2 && now != was {
			t.Fatalf("client %d moved from %d to %d", key, was, now)
		}
	}
	for i, k := range n {
		if k < 800 || k > 1200 {
			t.Errorf("target %d has %d of 5000 clients", i, k)
		}
	}
}

func TestEjection_LastsLongerEachTimeAndEnds(t *testing.T) {
	var e ejection
	now := time.Duration(0)
	for range ejectAfter - 1 {
		if out := e.failed(now); out != 0 || e.active(now) {
			t.Fatalf("out for %v too early", out)
		}
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		if out := e.failed(now); out != want*time.Second {
			t.Fatalf("out for %v, want %v", out, want*time.Second)
		}
		if again := e.failed(now + time.Millisecond); again != 0 {
			t.Fatal("an error of a dial that was under way counted")
		}
		if now += want * time.Second; !e.active(now - 1) {
			t.Fatal("back too early")
		}
		if e.active(now) {
			t.Fatal("not back in time")
		}
	}
	if !e.reached() || e.reached() {
		t.Error("the return is reported once")
	}
	if out := e.failed(now); out != 0 {
		t.Error("old failures count after the return")
	}
}

func TestHealth_ChangesAfterSoManyResultsInARow(t *testing.T) {
	ts := set(t, "first", 1)
	x := ts.all[0]
	x.log = quietLog
	h := Health{Fails: 3, Passes: 2}
	bad := errors.New("bad")
	for i, step := range []struct {
		err  error
		down bool
	}{
		{bad, false}, {bad, false}, {nil, false}, {bad, false}, {bad, false}, {bad, true},
		{nil, true}, {bad, true}, {nil, true}, {nil, false},
	} {
		x.recordCheck(h, step.err)
		if got := x.health.down.Load(); got != step.down {
			t.Fatalf("step %d: down is %v", i, got)
		}
	}
}
