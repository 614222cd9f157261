package ledger

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The commands of a script are about all orders of its call: their number does not grow with that of the orders.
func TestQueue_NumberOfCommandsDoesNotGrowWithTheOrders(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := connect(t, server, texts())
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 1000, 0))
	cost := func(n int) int64 {
		before := server.Commands()
		var items []Item
		for i := range n {
			serial := fmt.Sprint(n, "-", i)
			items = append(items, Item{Serial: serial, User: serial, Quantity: 1,
				Request: NewRequest(5_000, "request")})
		}
		codes := make([]Code, n)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 1_000_000, items, codes)
		testkit.Check(t, err)
		var decisions []Decision
		for _, o := range takeAt(t, s, 1, n, 1000).Orders {
			decisions = append(decisions, Decision{Serial: o.Serial, Move: MoveConfirm, Lease: o.Lease,
				Answer: "answer"})
		}
		testkit.Want(t, "orders", len(decisions), n)
		decideAll(t, s, decisions...)
		return server.Commands() - before
	}
	cost(1) // which finds the marks
	testkit.Want(t, "commands for 100 orders", cost(100), cost(2))
}

// A first attempt is known by its end alone; what comes of it is written as ever.
func TestFirstAttempt_IsFollowedByItsOutcome(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "later", "dead", "put off", "unsent")
		takeAt(t, s, 1, 4, 100)
		testkit.Want(t, "another lease", decide(t, s, MoveRelease, "later", 2, 0), TooLate)
		testkit.Want(t, "later", decide(t, s, MoveLater, "later", 1, 200), Changed)
		done := decideAll(t, s, Decision{Serial: "put off", Move: MoveNotNow, Lease: 1, From: 150},
			Decision{Serial: "unsent", Move: MoveUnsent, Lease: 1})
		testkit.Want(t, "put off", done[0], Changed)
		testkit.Want(t, "unsent", done[1], Changed)
		got := takeAt(t, s, 120, 1, 100)
		testkit.Want(t, "orders", serialsOf(got.Orders), "unsent")
		testkit.Want(t, "its lease", got.Orders[0].Lease, 2)
		testkit.Want(t, "its attempt", got.Orders[0].Attempt, 1)
		testkit.Want(t, "asked about", serialsOf(got.Ask), "dead")
		asked := takeAt(t, s, 200, 0, 100).Ask
		testkit.Want(t, "asked about then", serialsOf(asked), "dead later")
		for _, o := range asked {
			testkit.Want(t, o.Serial+": attempt", o.Attempt, 1)
			testkit.Want(t, o.Serial+": lease", o.Lease, 1)
			testkit.Want(t, o.Serial+": until", o.Until, 5_000)
			testkit.Want(t, o.Serial+": again", decide(t, s, MoveAgain, o.Serial, 1, 0), Changed)
		}
		got = takeAt(t, s, 201, 9, 100)
		testkit.Want(t, "the order", serialsOf(got.Orders), "put off later dead")
		testkit.Want(t, "the second attempt", got.Orders[1].Attempt, 2)
		testkit.Want(t, "it may take longer", got.Orders[1].Deadline, 401)
	})
}

// Orders whose time is over are released by their callers: until then those behind them go out nevertheless.
func TestTake_FindsOrdersBehindExpiredOnes(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		codes := make([]Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 1_000_000, []Item{{Serial: "last", Quantity: 1,
			Request: NewRequest(9_000, "request")}}, codes)
		testkit.Check(t, err)
		got := takeAt(t, s, 5_000, 1, 100)
		testkit.Want(t, "expired", serialsOf(got.Expired), "a b c")
		testkit.Want(t, "orders", serialsOf(got.Orders), "last")
	})
}

// TestAnswers_AreKeptForATime has Redis' clock run ahead.
func TestAnswers_AreKeptForATime(t *testing.T) {
	server, turn := redistest.StartWithClock(t)
	s := connect(t, server, texts())
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 9, 0))
	queueUp(t, s, "a", "b")
	takeAt(t, s, 1, 9, 100)
	testkit.Want(t, "confirm", decide(t, s, MoveConfirm, "a", 1, 0), Changed)
	const kept = time.Minute // by decideAll
	turn(kept - time.Second)
	testkit.Want(t, "for so long", placeAt(t, s, "a").Answer, "answer to a")
	done := decideAll(t, s, Decision{Serial: "a", Move: MoveConfirm, Answer: "another"},
		Decision{Serial: "b", Move: MoveConfirm, Answer: "answer to b"})
	testkit.Want(t, "again", done[0], Already)
	testkit.Want(t, "the first one stands", placeAt(t, s, "a").Answer, "answer to a")
	turn(2 * kept)
	testkit.Want(t, "later", placeAt(t, s, "a").Answer, "")
	turn(3 * kept)
	testkit.Want(t, "at last", placeAt(t, s, "b").Answer, "")
	testkit.Want(t, "the order", placeAt(t, s, "b").Status, StatusSold)
}
