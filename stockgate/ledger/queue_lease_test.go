package ledger

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

func TestUnsent_RepeatedAfterALostReplyChangesNothing(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		testkit.Want(t, "unsent", decide(t, s, MoveUnsent, "a", first.Lease, 0), Changed)
		second := takeAt(t, s, 1, 1, 100).Orders[0]
		testkit.Want(t, "the count", second.Attempt, first.Attempt)
		testkit.Want(t, "repeated", decide(t, s, MoveUnsent, "a", first.Lease, 0), TooLate)
		testkit.Want(t, "a third taker", serialsOf(takeAt(t, s, 1, 1, 100).Orders), "")
	})
}

func TestRequeue_LeavesOldAttemptsNoWord(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		testkit.Want(t, "stuck", decide(t, s, MoveLater, "a", first.Lease, Never),
			Changed)
		testkit.Want(t, "requeue", decide(t, s, MoveRequeue, "a", 0, 9_000), Changed)
		takeAt(t, s, 300, 1, 100)
		testkit.Want(t, "a late release", decide(t, s, MoveRelease, "a", first.Lease, 0), TooLate)
		testkit.Want(t, "held", stockIn(t, s).Held, 1)
	})
}

func TestOpenOrder_IsNotCancelledAndDoesNotExpire(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		testkit.Want(t, "repeat", decide(t, s, MoveRepeat, "a", first.Lease, 0), Changed)
		testkit.Want(t, "cancel", decide(t, s, MoveCancel, "a", 0, 0), TooLate)
		second := takeAt(t, s, 2, 1, 100).Orders[0]
		testkit.Want(t, "open", second.Open, true)
		testkit.Want(t, "unsent", decide(t, s, MoveUnsent, "a", second.Lease, 0), Changed)
		got := takeAt(t, s, 5_000, 1, 100)
		testkit.Want(t, "expired", serialsOf(got.Expired), "")
		testkit.Want(t, "asked about", serialsOf(got.Ask), "a")
		testkit.Want(t, "nowhere", decide(t, s, MoveNowhere, "a", second.Lease, 0), Changed)
		testkit.Want(t, "then it expires", serialsOf(takeAt(t, s, 5_000, 1, 100).Expired), "a")
		testkit.Want(t, "cancel", decide(t, s, MoveCancel, "a", 0, 0), Changed)
	})
}

func TestNotNow_WaitsBehindTheOthersAndDoesNotCount(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		done := decideAll(t, s, Decision{Serial: "a", Move: MoveNotNow, Lease: first.Lease, From: 1_000})
		testkit.Want(t, "not now", done[0], Changed)
		testkit.Want(t, "ahead", placeAt(t, s, "a").Ahead, 1)
		testkit.Want(t, "before its time", serialsOf(takeAt(t, s, 999, 9, 100).Orders), "b")
		got := takeAt(t, s, 1_000, 9, 100)
		testkit.Want(t, "by then", serialsOf(got.Orders), "a")
		testkit.Want(t, "attempt", got.Orders[0].Attempt, 1)
		testkit.Want(t, "lease", got.Orders[0].Lease, 2)
	})
}

func TestNotNow_EndsWithTheTimeOfTheOrder(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		done := decideAll(t, s, Decision{Serial: "a", Move: MoveNotNow, Lease: first.Lease, From: 600_000})
		testkit.Want(t, "not now", done[0], Changed)
		testkit.Want(t, "expired", serialsOf(takeAt(t, s, 5_000, 1, 100).Expired), "a")
	})
}

// TestCancelInDoubt_IsTooLate has Redis forget that an order was handed out. A client cancels it at another instance.
func TestCancelInDoubt_IsTooLate(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	queueUp(t, a, "sent")
	takeAt(t, b, 1, 0, 100)
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "handed out", serialsOf(takeAt(t, b, 1, 1, 100).Orders), "sent")
	kept.restore(t, server)
	restart(t, server)
	var done []Done
	testkit.Eventually(t, "an answer", func() (ok bool) {
		var err error
		done, _, err = a.Decide(t.Context(), "1001", DecideCall{Now: 2, Keep: 2_000_000,
			Decisions: []Decision{{Serial: "sent", Move: MoveCancel}}})
		return err == nil
	})
	testkit.Want(t, "cancel", done[0], TooLate)
}

// Decisions that share a call see what those before them have done.
func TestOpenOrder_IsNotCancelledByTheCallThatOpensIt(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		first := takeAt(t, s, 1, 1, 100).Orders[0]
		done := decideAll(t, s, Decision{Serial: "a", Move: MoveRepeat, Lease: first.Lease},
			Decision{Serial: "a", Move: MoveCancel})
		testkit.Want(t, "repeat", done[0], Changed)
		testkit.Want(t, "cancel", done[1], TooLate)
		testkit.Want(t, "held", stockIn(t, s).Held, 1)
	})
}

// A person decides by the ledger, not by the queue, which forgets the order at its next look.
func TestStuckOrder_IsForgottenWhenAPersonHasDecided(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 100, 0))
		var serials []string
		for i := range 40 {
			serials = append(serials, fmt.Sprintf("s%02d", i))
		}
		queueUp(t, s, serials...)
		for _, o := range takeAt(t, s, 1, 40, 100).Orders {
			testkit.Want(t, "stuck", decide(t, s, MoveLater, o.Serial, o.Lease, Never),
				Changed)
		}
		for _, serial := range serials[1:] {
			testkit.Want(t, "confirm", finishOne(t, s, Confirm, serial), Changed)
		}
		for now := range int64(400) {
			takeAt(t, s, 1_000+now, 0, 100)
		}
		depths := testkit.Must[[]Depth](t)(s.Depths(t.Context(), []string{"1001"}))
		testkit.Want(t, "stuck", depths[0].Stuck, 1)
		testkit.Want(t, "which", strings.Join(testkit.Must[[]string](t)(s.Stuck(t.Context(), "1001", 9)), " "), "s00")
	})
}
