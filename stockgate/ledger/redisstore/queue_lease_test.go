package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestUnsent_RepeatedAfterALostReplyChangesNothing(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		ledgertest.Want(t, "unsent", decide(t, s, protocol.MoveUnsent, "a", first.Lease, 0), protocol.Changed)
		second := takeAt(t, s, 1, 1, 100).Orders[0]
		ledgertest.Want(t, "the count", second.Attempt, first.Attempt)
		ledgertest.Want(t, "repeated", decide(t, s, protocol.MoveUnsent, "a", first.Lease, 0), protocol.TooLate)
		ledgertest.Want(t, "a third taker", serialsOf(takeAt(t, s, 1, 1, 100).Orders), "")
	})
}

func TestRequeue_LeavesOldAttemptsNoWord(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		ledgertest.Want(t, "stuck", decide(t, s, protocol.MoveLater, "a", first.Lease, protocol.Never),
			protocol.Changed)
		ledgertest.Want(t, "requeue", decide(t, s, protocol.MoveRequeue, "a", 0, 9_000), protocol.Changed)
		takeAt(t, s, 300, 1, 100)
		ledgertest.Want(t, "a late release", decide(t, s, protocol.MoveRelease, "a", first.Lease, 0), protocol.TooLate)
		ledgertest.Want(t, "held", ledgertest.StockOf(t, s).Held, 1)
	})
}

func TestOpenOrder_IsNotCancelledAndDoesNotExpire(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		ledgertest.Want(t, "repeat", decide(t, s, protocol.MoveRepeat, "a", first.Lease, 0), protocol.Changed)
		ledgertest.Want(t, "cancel", decide(t, s, protocol.MoveCancel, "a", 0, 0), protocol.TooLate)
		second := takeAt(t, s, 2, 1, 100).Orders[0]
		ledgertest.Want(t, "open", second.Open, true)
		ledgertest.Want(t, "unsent", decide(t, s, protocol.MoveUnsent, "a", second.Lease, 0), protocol.Changed)
		got := takeAt(t, s, 5_000, 1, 100)
		ledgertest.Want(t, "expired", serialsOf(got.Expired), "")
		ledgertest.Want(t, "asked about", serialsOf(got.Ask), "a")
		ledgertest.Want(t, "nowhere", decide(t, s, protocol.MoveNowhere, "a", second.Lease, 0), protocol.Changed)
		ledgertest.Want(t, "then it expires", serialsOf(takeAt(t, s, 5_000, 1, 100).Expired), "a")
		ledgertest.Want(t, "cancel", decide(t, s, protocol.MoveCancel, "a", 0, 0), protocol.Changed)
	})
}

func TestNotNow_WaitsBehindTheOthersAndDoesNotCount(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		done := decideAll(t, s, protocol.Decision{Serial: "a", Move: protocol.MoveNotNow, Lease: first.Lease, From: 1_000})
		ledgertest.Want(t, "not now", done[0], protocol.Changed)
		ledgertest.Want(t, "ahead", placeAt(t, s, "a").Ahead, 1)
		ledgertest.Want(t, "before its time", serialsOf(takeAt(t, s, 999, 9, 100).Orders), "b")
		got := takeAt(t, s, 1_000, 9, 100)
		ledgertest.Want(t, "by then", serialsOf(got.Orders), "a")
		ledgertest.Want(t, "attempt", got.Orders[0].Attempt, 1)
		ledgertest.Want(t, "lease", got.Orders[0].Lease, 2)
	})
}

func TestNotNow_EndsWithTheTimeOfTheOrder(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		done := decideAll(t, s, protocol.Decision{Serial: "a", Move: protocol.MoveNotNow, Lease: first.Lease, From: 600_000})
		ledgertest.Want(t, "not now", done[0], protocol.Changed)
		ledgertest.Want(t, "expired", serialsOf(takeAt(t, s, 5_000, 1, 100).Expired), "a")
	})
}

// TestCancelInDoubt_IsTooLate has Redis forget that an order was handed out. A client cancels it at another instance.
func TestCancelInDoubt_IsTooLate(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	queueUp(t, a, "sent")
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	ledgertest.Want(t, "handed out", serialsOf(takeAt(t, b, 1, 1, 100).Orders), "sent")
	kept.restore(t, server)
	restart(t, server)
	var done []protocol.Done
	ledgertest.Until(t, "an answer", func() (ok bool) {
		var err error
		done, _, err = a.Decide(t.Context(), "1001", protocol.DecideCall{Now: 2, Keep: 2_000_000,
			Decisions: []protocol.Decision{{Serial: "sent", Move: protocol.MoveCancel}}})
		return err == nil
	})
	ledgertest.Want(t, "cancel", done[0], protocol.TooLate)
}

// Decisions that share a call see what those before them have done.
func TestOpenOrder_IsNotCancelledByTheCallThatOpensIt(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		done := decideAll(t, s, protocol.Decision{Serial: "a", Move: protocol.MoveRepeat, Lease: first.Lease},
			protocol.Decision{Serial: "a", Move: protocol.MoveCancel})
		ledgertest.Want(t, "repeat", done[0], protocol.Changed)
		ledgertest.Want(t, "cancel", done[1], protocol.TooLate)
		ledgertest.Want(t, "held", ledgertest.StockOf(t, s).Held, 1)
	})
}

// A person decides by the ledger, not by the queue, which forgets the order at its next look.
func TestStuckOrder_IsForgottenWhenAPersonHasDecided(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 100, 0))
		var serials []string
		for i := range 40 {
			serials = append(serials, fmt.Sprintf("s%02d", i))
		}
		queueUp(t, s, serials...)
		for _, o := range takeAt(t, s, 1, 40, 100).Orders {
			ledgertest.Want(t, "stuck", decide(t, s, protocol.MoveLater, o.Serial, o.Lease, protocol.Never),
				protocol.Changed)
		}
		for _, serial := range serials[1:] {
			ledgertest.Want(t, "confirm", ledgertest.Finish(t, s, protocol.Confirm, serial), protocol.Changed)
		}
		for now := range int64(400) {
			takeAt(t, s, 1_000+now, 0, 100)
		}
		depths := ledgertest.Must[[]protocol.Depth](t)(s.Depths(t.Context(), []string{"1001"}))
		ledgertest.Want(t, "stuck", depths[0].Stuck, 1)
		ledgertest.Want(t, "which", strings.Join(ledgertest.Must[[]string](t)(s.Stuck(t.Context(), "1001", 9)), " "), "s00")
	})
}
