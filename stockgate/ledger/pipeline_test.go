package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/stockgate/link"
)

// occupied lets r believe that as many round trips are under way to a server as may be: who comes waits, until back is called.
func occupied(r *Redis, at string) (back func()) {
	r.pipes.mu.Lock()
	defer r.pipes.mu.Unlock()
	r.pipes.to[at] = pipeline{trips: mostTrips}
	return func() {
		for range mostTrips {
			r.comesBack(at)
		}
	}
}

// waits returns when n calls wait for their turn to a server.
func (r *Redis) waits(t *testing.T, at string, n int) {
	t.Helper()
	until(t, fmt.Sprint(n, " wait"), func() bool {
		r.pipes.mu.Lock()
		defer r.pipes.mu.Unlock()
		return len(r.pipes.to[at].waiting) == n
	})
}

// tried is what came of one Reserve of one unit.
type tried struct {
	sku  string
	code Code
	err  error
}

// order asks for a unit of each of some SKUs, under the serial "a", at the same time. What came of it is there when the
// function is called that it returns.
func order(ctx context.Context, r *Redis, skus []string) func() []tried {
	all, asked := make([]tried, len(skus)), sync.WaitGroup{}
	for i, sku := range skus {
		asked.Go(func() {
			codes := []Code{Unsure}
			_, err := r.Reserve(ctx, sku, 0, 1, 1_000_000, []Item{{"a", "", 1}}, codes)
			all[i] = tried{sku, codes[0], err}
		})
	}
	return func() []tried { asked.Wait(); return all }
}

// allHeld fails unless all were held.
func allHeld(t *testing.T, all []tried) {
	t.Helper()
	for _, got := range all {
		if got.err != nil || got.code != Held {
			t.Errorf("%+v", got)
		}
	}
}

func TestOrdersOfSeveralSKUsShareARoundTrip(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 70)
	n := countTrips(t, r)
	back := occupied(r, "")
	got := order(t.Context(), r, skus)
	r.waits(t, "", 70)
	want(t, "round trips while others are under way", n.Load(), 0)
	back()
	allHeld(t, got())
	want(t, "round trips", n.Load(), 2) // 64, and the others
	n.Store(0)
	hold(t, r, skus[0], "alone", 1_000_000)
	want(t, "round trips", n.Load(), 1)
}

func TestSettlementsAndOrdersShareRoundTripsOfAFullCallAtMost(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 3)
	for _, sku := range skus {
		hold(t, r, sku, "b", 1_000_000)
	}
	n := countTrips(t, r)
	back := occupied(r, "")
	got := order(t.Context(), r, skus[:2])
	var settled sync.WaitGroup
	for i, sku := range skus {
		settled.Go(func() {
			items := []Item{{Serial: "b"}}
			for i > 0 && len(items) < 253+i { // the last two find no room beside each other
				items = append(items, Item{Serial: fmt.Sprint("nobody's ", len(items))})
			}
			done := make([]Done, len(items))
			_, err := r.Finish(t.Context(), sku, 1, 2, Confirm, items, done)
			check(t, err)
			want(t, "confirmed", done[0], Changed)
		})
	}
	r.waits(t, "", 5)
	back()
	allHeld(t, got())
	settled.Wait()
	if trips := n.Load(); trips < 2 || trips > 3 { // as they came
		t.Errorf("%d round trips", trips)
	}
}

func TestOrderThatHasNoTurnInTimeIsNotSent(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 3)
	n := countTrips(t, r)
	back := occupied(r, "")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, got := range order(ctx, r, skus[:2])() {
		if !link.Unsent(got.err) || !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("%+v", got)
		}
	}
	r.waits(t, "", 0)
	got := order(t.Context(), r, skus[2:])
	r.waits(t, "", 1)
	r.pipes.to[""].waiting[0].until = time.Now() // its asker has not been told yet
	back()
	want(t, "unsent", link.Unsent(got()[0].err), true)
	want(t, "round trips", n.Load(), 0)
	allHeld(t, order(t.Context(), r, skus)())
}

// Who has given up may do with its orders what it likes, while they are under way.
func TestOrderUnderWayKeepsItsOwnTimeAndHarmsNoOther(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 2)
	n, left, goes := countTrips(t, r), make(chan struct{}), make(chan struct{})
	n.between = sync.OnceFunc(func() { close(left); <-goes })
	back := occupied(r, "")
	patient := order(t.Context(), r, skus[1:])
	ctx, cancel := context.WithCancel(t.Context())
	items, gaveUp := []Item{{"a", "", 1}}, make(chan error)
	go func() {
		_, err := r.Reserve(ctx, skus[0], 0, 1, 1_000_000, items, make([]Code, 1))
		items[0] = Item{}
		gaveUp <- err
	}()
	r.waits(t, "", 2)
	back()
	<-left
	cancel()
	if err := <-gaveUp; err == nil || link.Unsent(err) {
		t.Errorf("it may have been sent: %v", err)
	}
	close(goes)
	allHeld(t, patient())
	until(t, "it was", func() bool {
		_, ok, err := r.Find(t.Context(), skus[0], "a")
		return err == nil && ok
	})
	want(t, "round trips", n.Load(), 2) // and that of Find
}

func TestOrdersThatHangAreNotPutAgainAndNobodyKnowsWhetherTheyAreDone(t *testing.T) {
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	o.Timeout = 500 * time.Millisecond
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	maker := connect(t, server, texts())
	skus := many(t, maker, 5)
	until(t, "it is known", func() bool { _, _, err := r.Look(t.Context(), skus[0]); return err == nil })
	n := countTrips(t, r)
	back := occupied(r, "")
	got := order(t.Context(), r, skus)
	r.waits(t, "", 5)
	server.Pause()
	back()
	all := got()
	server.Resume()
	for _, got := range all {
		if got.err == nil || link.Unsent(got.err) {
			t.Errorf("%+v", got)
		}
	}
	want(t, "round trips", n.Load(), 1)
	for _, sku := range skus {
		until(t, sku+" is held", func() bool { s, _, err := maker.Look(t.Context(), sku); return err == nil && s.Held == 1 })
	}
}

func TestOrdersToARedisThatIsLeftAloneAreUnsent(t *testing.T) {
	server := redistest.Start(t)
	o := optionsFor(server, 2)
	o.BreakerPause = time.Hour
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	skus := many(t, r, 5)
	for range o.BreakerErrors {
		_ = r.link.Do(t.Context(), func(context.Context, *redis.Client) error { return errLost }, fault)
	}
	back := occupied(r, "")
	got := order(t.Context(), r, skus)
	r.waits(t, "", 5)
	back()
	for _, got := range got() {
		want(t, "unsent", errors.Is(got.err, link.ErrLeftAlone) && link.Unsent(got.err), true)
	}
}

func TestOrderThatFailsHarmsNoneThatShareItsRoundTrip(t *testing.T) {
	server := redistest.Start(t)
	maker := connect(t, server, texts())
	skus := many(t, maker, 5)
	broken := texts()
	broken["reserve"] = "if string.find(KEYS[1], '2003', 1, true) then SEQ = '0' end\n" + broken["reserve"]
	r := connect(t, server, broken)
	check(t, server.Client.HSet(t.Context(), keys(skus[1])[0], "state", "open").Err())
	check(t, server.Client.Del(t.Context(), keys(skus[2])[0]).Err())
	check(t, server.Client.Set(t.Context(), keys(skus[2])[0], "a string", 0).Err())
	back := occupied(r, "")
	got := order(t.Context(), r, skus)
	r.waits(t, "", 5)
	check(t, server.Client.ScriptFlush(t.Context()).Err())
	back()
	for i, got := range got() {
		want(t, got.sku+" fails", got.err != nil, slices.Contains([]int{1, 2, 3}, i))
		want(t, got.sku+" is mixed up", errors.Is(got.err, link.ErrMixedUp), i == 3)
		want(t, got.sku+" may have been done", got.err != nil && !link.Unsent(got.err), got.err != nil)
		want(t, got.sku+" is held", got.code == Held, got.err == nil)
	}
	for i, sku := range skus[3:] {
		until(t, "its next call closes the SKU whose reply was another's, and no other", func() bool {
			order(t.Context(), r, []string{sku})()
			s, _, err := maker.Look(t.Context(), sku)
			return err == nil && (s.State == Frozen) == (i == 0)
		})
	}
}

func TestCloseAnswersWhoWaitsForATurn(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 3)
	occupied(r, "")
	got := order(t.Context(), r, skus)
	r.waits(t, "", 3)
	check(t, r.Close())
	for _, got := range got() {
		want(t, "unsent", link.Unsent(got.err), true)
	}
	want(t, "later ones fail", order(t.Context(), r, skus)()[0].err != nil, true)
}

func TestOrdersThatWaitForReplicasKeepNobodyWaiting(t *testing.T) {
	_, _, r := replicating(t)
	skus := many(t, r, 2)
	back := occupied(r, "")
	allHeld(t, order(t.Context(), r, skus)())
	back()
}

func TestMasterThatHangsKeepsOrdersForOthersFromNothing(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	skus := many(t, r, 40)
	hanging := nodes.Owner(link.Slot(home(skus[0])))
	var its, others []string
	for _, sku := range skus {
		if nodes.Owner(link.Slot(home(sku))) == hanging {
			its = append(its, sku)
		} else {
			others = append(others, sku)
		}
	}
	hanging.Pause()
	defer hanging.Resume()
	stuck := order(t.Context(), r, its)
	r.waits(t, hanging.Addr, len(its)-mostTrips)
	allHeld(t, order(t.Context(), r, others)())
	hanging.Resume()
	allHeld(t, stuck())
}

func TestSharedOrdersFollowTheirSlots(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	skus := many(t, r, 40)
	slot := link.Slot(home(skus[0]))
	owner := nodes.Owner(slot)
	var its []string
	for _, sku := range skus {
		if nodes.Owner(link.Slot(home(sku))) == owner {
			its = append(its, sku)
		}
	}
	back := occupied(r, owner.Addr)
	got := order(t.Context(), r, its)
	r.waits(t, owner.Addr, len(its))
	nodes.Move(slot, nodes.Masters[(slices.Index(nodes.Masters, owner)+1)%3], nil) // r does not know
	back()
	allHeld(t, got())
	for _, sku := range its {
		s, _, err := r.Look(t.Context(), sku)
		check(t, err)
		want(t, sku+" held", s.Held, 1)
	}
}
