package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// TestLostAttempt_IsNotFollowedByAnother has Redis forget that an order was handed out. It was sent meanwhile.
func TestLostAttempt_IsNotFollowedByAnother(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	queueUp(t, a, "sent", "waiting")
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "handed out", serialsOf(takeAt(t, b, 1, 1, 100).Orders), "sent")
	kept.restore(t, server)
	restart(t, server)
	take := func(r *Store, now int64) (got HandedOut) {
		c := takeAll
		c.Now = now
		testkit.Eventually(t, "an answer", func() (ok bool) {
			var err error
			got, err = r.HandOut(t.Context(), "1001", c)
			return err == nil
		})
		return got
	}
	testkit.Want(t, "before the other has looked", serialsOf(take(a, 2).Orders), "")
	got := take(b, 2)
	testkit.Want(t, "state", got.State, Frozen)
	testkit.Want(t, "while frozen", serialsOf(got.Orders), "")
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On))
	for _, now := range []int64{2, 411} {
		got = take(a, now)
		testkit.Want(t, "before the longest attempt can have ended", serialsOf(got.Orders)+serialsOf(got.Ask), "")
	}
	got = take(a, 412)
	testkit.Want(t, "orders", serialsOf(got.Orders), "")
	testkit.Want(t, "asked about", len(got.Ask), 2)
}

// Redis forgets that an order was handed out, and the instance that sent it is killed. Its journal tells.
func TestLostAttempt_OfAnInstanceThatWasKilledIsNotFollowedByAnother(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	o := optionsFor(server, 4)
	o.StateDir = t.TempDir()
	killed := testkit.Must[*Store](t)(NewStore(o))
	queueUp(t, killed, "sent", "waiting")
	takeAt(t, killed, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "handed out", serialsOf(takeAt(t, killed, 1, 1, 100).Orders), "sent")
	killed.depart()
	killed.visits.Wait()
	killed.link.Close()
	testkit.Check(t, killed.journal.Close(false))
	kept.restore(t, server)
	restart(t, server)
	again := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { again.Close() })
	testkit.Eventually(t, "it is noticed", func() bool {
		stock, ok, err := a.ReadStock(t.Context(), "1001")
		return err == nil && ok && stock.State == Frozen
	})
	testkit.Eventually(t, "it is open again", func() bool {
		for _, r := range []*Store{a, again} {
			_, _, _ = r.ReadStock(t.Context(), "1001")
			_, _ = r.Recover(t.Context(), "1001", 1, 2_000_000)
		}
		return stockIn(t, a).State == On
	})
	for _, now := range []int64{2, 411} {
		got := takeAt(t, a, now, 5, 100)
		testkit.Want(t, "before the longest attempt can have ended", serialsOf(got.Orders)+serialsOf(got.Ask), "")
	}
	got := takeAt(t, a, 412, 5, 100)
	testkit.Want(t, "orders", serialsOf(got.Orders), "")
	testkit.Want(t, "asked about", len(got.Ask), 2)
}

// A later call of the instance comes before the one that hands out, and Redis loses that one alone.
func TestLostAttempt_IsNoticedWhereItsCallWasOvertaken(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	queueUp(t, a, "sent", "waiting")
	late := a.calls.Add(1)
	stockIn(t, a)
	takeAt(t, a, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	last := a.calls.Swap(late - 1)
	testkit.Want(t, "handed out", serialsOf(takeAt(t, a, 1, 1, 100).Orders), "sent")
	a.calls.Store(last)
	kept.restore(t, server)
	got := takeAt(t, a, 1, 1, 100)
	testkit.Want(t, "state", got.State, Frozen)
	testkit.Want(t, "while frozen", serialsOf(got.Orders), "")
}

// TestLostRequest_StaysHeld has Redis forget an order with its request. Its instance holds it again, without a request.
func TestLostRequest_StaysHeld(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	queueUp(t, a, "lost")
	kept.restore(t, server)
	restart(t, server)
	testkit.Eventually(t, "it is noticed", func() bool {
		got, err := a.HandOut(t.Context(), "1001", takeAll)
		return err == nil && got.State == Frozen
	})
	testkit.Eventually(t, "it is open again", func() bool {
		for _, r := range []*Store{a, b} {
			_, _ = r.HandOut(t.Context(), "1001", takeAll)
			_, _ = r.Recover(t.Context(), "1001", 1, 2_000_000)
		}
		return stockIn(t, a).State == On
	})
	testkit.Want(t, "held", stockIn(t, a).Held, 1)
	c := takeAll
	c.Now = 900_000
	got := testkit.Must[HandedOut](t)(a.HandOut(t.Context(), "1001", c))
	testkit.Want(t, "never sent", serialsOf(got.Orders)+serialsOf(got.Ask), "")
	p := placeAt(t, a, "lost")
	testkit.Want(t, "its state", p.Status, StatusHeld)
	testkit.Want(t, "where", p.Where, NotWaiting)
}

// TestRecreate_ForgetsRequests: orders that are adopted must not be sent by what an older ledger has left.
func TestRecreate_ForgetsRequests(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	queueUp(t, a, "a", "b")
	testkit.Check(t, server.Client.Del(t.Context(), hashOf1001).Err())
	_, err := a.Recreate(t.Context(), "1001", 5, 0, false)
	testkit.Check(t, err)
	testkit.Want(t, "adopt", finishOne(t, a, Adopt, "a"), Changed)
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On))
	got := testkit.Must[HandedOut](t)(a.HandOut(t.Context(), "1001", takeAll))
	testkit.Want(t, "depth", got.Depth, Depth{})
}

// Redis forgets all that an instance has done, which hands out orders, and the instance is killed: nothing tells then
// that an order was sent. So a process hands out nothing before Redis has known it for a while.
func TestHandOut_WaitsUntilTheLedgerHasKnownTheProcessForAWhile(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	queueUp(t, a, "order")
	o := optionsFor(server, 1)
	o.HandOutAfter = time.Hour
	fresh := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { fresh.Close() })
	for range 3 {
		got := takeAt(t, fresh, 1, 1, 100)
		testkit.Want(t, "at first", serialsOf(got.Orders), "")
		testkit.Want(t, "waiting", got.Waiting, int64(1))
	}
	seen := fresh.Seen.Find("1001")
	seen.mu.Lock()
	seen.since = seen.since.Add(-time.Hour)
	seen.mu.Unlock()
	testkit.Want(t, "later", serialsOf(takeAt(t, fresh, 1, 1, 100).Orders), "order")
}

// A process was cut off from Redis for so long that no ledger would wait for it, and hands out an order with its first
// call after that. Redis forgets that call, and the process is killed. The order must not be handed out again.
func TestHandOut_WaitsAgainAfterASilence(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	queueUp(t, a, "order")
	o := optionsFor(server, 1)
	o.HandOutAfter = time.Minute
	cut := testkit.Must[*Store](t)(NewStore(o))
	takeAt(t, cut, 1, 0, 100)
	const silence = 2 * time.Minute
	mark := "m:" + cut.instance
	part := strings.SplitN(server.Client.HGet(t.Context(), hashOf1001, mark).Val(), "|", 3)
	part[1] = fmt.Sprint(testkit.Must[int64](t)(strconv.ParseInt(part[1], 10, 64)) - silence.Milliseconds())
	testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, mark, strings.Join(part, "|")).Err())
	seen := cut.Seen.Find("1001")
	seen.mu.Lock()
	seen.since, seen.at = seen.since.Add(-silence), seen.at.Add(-silence)
	seen.mu.Unlock()
	stockIn(t, a)
	kept := snapshotOf(t, server, "1001")
	handedOut := serialsOf(takeAt(t, cut, 1, 1, 100).Orders)
	cut.depart()
	cut.visits.Wait()
	cut.link.Close()
	kept.restore(t, server)
	restart(t, server)
	testkit.Eventually(t, "the order is handed out", func() bool {
		c := takeAll
		c.Now = 1
		got, err := a.HandOut(t.Context(), "1001", c)
		handedOut += serialsOf(got.Orders)
		return err == nil && handedOut != ""
	})
	testkit.Want(t, "handed out", handedOut, "order")
}

// Redis is away for so long that the marks of before are old, and has lost that an order was handed out. The marks of
// all instances are as old, and none is forgotten.
func TestLostAttempt_IsNoticedAfterALongOutage(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	queueUp(t, a, "sent", "waiting")
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "handed out", serialsOf(takeAt(t, b, 1, 1, 100).Orders), "sent")
	kept.restore(t, server)
	const outage = 40 * time.Minute
	for _, r := range []*Store{a, b} {
		calledAgo(t, server, r, outage)
		seen := r.Seen.Find("1001")
		seen.mu.Lock()
		seen.at = seen.at.Add(-outage)
		seen.mu.Unlock()
	}
	restart(t, server)
	for range 3 {
		for _, r := range []*Store{a, b} {
			testkit.Eventually(t, "an answer", func() bool {
				got, err := r.HandOut(t.Context(), "1001", takeAll)
				testkit.Want(t, "handed out", serialsOf(got.Orders), "")
				return err == nil
			})
		}
	}
	testkit.Want(t, "state", stockIn(t, a).State, Frozen)
}

// As TestLostAttempt_IsNotFollowedByAnother, of a SKU that is not on sale any more: what waits is still delivered.
func TestLostAttempt_OfASKUThatIsNotOnSaleIsNotFollowedByAnother(t *testing.T) {
	for _, state := range []State{Paused, Ended} {
		t.Run(string(state), func(t *testing.T) {
			server, a := durable(t)
			b := single(t, server)
			queueUp(t, a, "sent", "waiting")
			testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", state))
			takeAt(t, b, 1, 0, 100)
			kept := snapshotOf(t, server, "1001")
			testkit.Want(t, "handed out", serialsOf(takeAt(t, b, 1, 1, 100).Orders), "sent")
			kept.restore(t, server)
			restart(t, server)
			testkit.Eventually(t, "an answer", func() bool {
				got, err := a.HandOut(t.Context(), "1001", takeAll)
				testkit.Want(t, "before the other has looked", serialsOf(got.Orders), "")
				return err == nil
			})
			done := decide(t, a, MoveCancel, "sent", 0, 0)
			testkit.Want(t, "a client's word", done, TooLate)
		})
	}
}
