package redisstore

import (
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// TestLostAttempt_IsNotFollowedByAnother has Redis forget that an order was handed out. It was sent meanwhile.
func TestLostAttempt_IsNotFollowedByAnother(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	queueUp(t, a, "sent", "waiting")
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	ledgertest.Want(t, "handed out", serialsOf(takeAt(t, b, 1, 1, 100).Orders), "sent")
	kept.restore(t, server)
	restart(t, server)
	take := func(r *Store, now int64) (got protocol.HandedOut) {
		c := takeAll
		c.Now = now
		ledgertest.Until(t, "an answer", func() (ok bool) {
			var err error
			got, err = r.HandOut(t.Context(), "1001", c)
			return err == nil
		})
		return got
	}
	ledgertest.Want(t, "before the other has looked", serialsOf(take(a, 2).Orders), "")
	got := take(b, 2)
	ledgertest.Want(t, "state", got.State, protocol.Frozen)
	ledgertest.Want(t, "while frozen", serialsOf(got.Orders), "")
	ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.On))
	for _, now := range []int64{2, 411} {
		got = take(a, now)
		ledgertest.Want(t, "before the longest attempt can have ended", serialsOf(got.Orders)+serialsOf(got.Ask), "")
	}
	got = take(a, 412)
	ledgertest.Want(t, "orders", serialsOf(got.Orders), "")
	ledgertest.Want(t, "asked about", len(got.Ask), 2)
}

// Redis forgets that an order was handed out, and the instance that sent it is killed. Its journal tells.
func TestLostAttempt_OfAnInstanceThatWasKilledIsNotFollowedByAnother(t *testing.T) {
	server, a := durable(t)
	o := optionsFor(server, 4)
	o.StateDir = t.TempDir()
	killed := ledgertest.Must[*Store](t)(New(o))
	queueUp(t, killed, "sent", "waiting")
	takeAt(t, killed, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	ledgertest.Want(t, "handed out", serialsOf(takeAt(t, killed, 1, 1, 100).Orders), "sent")
	killed.depart()
	killed.visits.Wait()
	killed.link.Close()
	ledgertest.Check(t, killed.journal.Close(false))
	kept.restore(t, server)
	restart(t, server)
	again := ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { again.Close() })
	ledgertest.Until(t, "it is noticed", func() bool {
		stock, ok, err := a.ReadStock(t.Context(), "1001")
		return err == nil && ok && stock.State == protocol.Frozen
	})
	ledgertest.Until(t, "it is open again", func() bool {
		for _, r := range []*Store{a, again} {
			_, _, _ = r.ReadStock(t.Context(), "1001")
			_, _ = r.Recover(t.Context(), "1001", 1, 2_000_000)
		}
		return ledgertest.StockOf(t, a).State == protocol.On
	})
	for _, now := range []int64{2, 411} {
		got := takeAt(t, a, now, 5, 100)
		ledgertest.Want(t, "before the longest attempt can have ended", serialsOf(got.Orders)+serialsOf(got.Ask), "")
	}
	got := takeAt(t, a, 412, 5, 100)
	ledgertest.Want(t, "orders", serialsOf(got.Orders), "")
	ledgertest.Want(t, "asked about", len(got.Ask), 2)
}

// A later call of the instance comes before the one that hands out, and Redis loses that one alone.
func TestLostAttempt_IsNoticedWhereItsCallWasOvertaken(t *testing.T) {
	server, a := durable(t)
	queueUp(t, a, "sent", "waiting")
	late := a.calls.Add(1)
	ledgertest.StockOf(t, a)
	takeAt(t, a, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	last := a.calls.Swap(late - 1)
	ledgertest.Want(t, "handed out", serialsOf(takeAt(t, a, 1, 1, 100).Orders), "sent")
	a.calls.Store(last)
	kept.restore(t, server)
	got := takeAt(t, a, 1, 1, 100)
	ledgertest.Want(t, "state", got.State, protocol.Frozen)
	ledgertest.Want(t, "while frozen", serialsOf(got.Orders), "")
}

// TestLostRequest_StaysHeld has Redis forget an order with its request. Its instance holds it again, without a request.
func TestLostRequest_StaysHeld(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	queueUp(t, a, "lost")
	kept.restore(t, server)
	restart(t, server)
	ledgertest.Until(t, "it is noticed", func() bool {
		got, err := a.HandOut(t.Context(), "1001", takeAll)
		return err == nil && got.State == protocol.Frozen
	})
	ledgertest.Until(t, "it is open again", func() bool {
		for _, r := range []*Store{a, b} {
			_, _ = r.HandOut(t.Context(), "1001", takeAll)
			_, _ = r.Recover(t.Context(), "1001", 1, 2_000_000)
		}
		return ledgertest.StockOf(t, a).State == protocol.On
	})
	ledgertest.Want(t, "held", ledgertest.StockOf(t, a).Held, 1)
	c := takeAll
	c.Now = 900_000
	got := ledgertest.Must[protocol.HandedOut](t)(a.HandOut(t.Context(), "1001", c))
	ledgertest.Want(t, "never sent", serialsOf(got.Orders)+serialsOf(got.Ask), "")
	p := placeAt(t, a, "lost")
	ledgertest.Want(t, "its state", p.Status, protocol.StatusHeld)
	ledgertest.Want(t, "where", p.Where, protocol.NotWaiting)
}

// TestRecreate_ForgetsRequests: orders that are adopted must not be sent by what an older ledger has left.
func TestRecreate_ForgetsRequests(t *testing.T) {
	server, a := durable(t)
	queueUp(t, a, "a", "b")
	ledgertest.Check(t, server.Client.Del(t.Context(), hashOf1001).Err())
	_, err := a.Recreate(t.Context(), "1001", 5, 0, false)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "adopt", ledgertest.Finish(t, a, protocol.Adopt, "a"), protocol.Changed)
	ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.On))
	got := ledgertest.Must[protocol.HandedOut](t)(a.HandOut(t.Context(), "1001", takeAll))
	ledgertest.Want(t, "depth", got.Depth, protocol.Depth{})
}
