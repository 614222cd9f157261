package redisstore

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// The commands of a script are about all orders of its call: their number does not grow with that of the orders.
func TestQueue_NumberOfCommandsDoesNotGrowWithTheOrders(t *testing.T) {
	server := redistest.Start(t)
	s := connect(t, server, texts())
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 1000, 0))
	cost := func(n int) int64 {
		before := server.Commands()
		var items []protocol.Item
		for i := range n {
			serial := fmt.Sprint(n, "-", i)
			items = append(items, protocol.Item{Serial: serial, User: serial, Quantity: 1,
				Request: protocol.NewRequest(5_000, "request")})
		}
		codes := make([]protocol.Code, n)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 1_000_000, items, codes)
		ledgertest.Check(t, err)
		var decisions []protocol.Decision
		for _, o := range takeAt(t, s, 1, n, 1000).Orders {
			decisions = append(decisions, protocol.Decision{Serial: o.Serial, Move: protocol.MoveConfirm, Lease: o.Lease,
				Answer: "answer"})
		}
		ledgertest.Want(t, "orders", len(decisions), n)
		decideAll(t, s, decisions...)
		return server.Commands() - before
	}
	cost(1) // which finds the marks
	ledgertest.Want(t, "commands for 100 orders", cost(100), cost(2))
}

// A first attempt is known by its end alone; what comes of it is written as ever.
func TestFirstAttempt_IsFollowedByItsOutcome(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "later", "dead", "put off", "unsent")
		takeAt(t, s, 1, 4, 100)
		ledgertest.Want(t, "another lease", decide(t, s, protocol.MoveRelease, "later", 2, 0), protocol.TooLate)
		ledgertest.Want(t, "later", decide(t, s, protocol.MoveLater, "later", 1, 200), protocol.Changed)
		done := decideAll(t, s, protocol.Decision{Serial: "put off", Move: protocol.MoveNotNow, Lease: 1, From: 150},
			protocol.Decision{Serial: "unsent", Move: protocol.MoveUnsent, Lease: 1})
		ledgertest.Want(t, "put off", done[0], protocol.Changed)
		ledgertest.Want(t, "unsent", done[1], protocol.Changed)
		got := takeAt(t, s, 120, 1, 100)
		ledgertest.Want(t, "orders", serialsOf(got.Orders), "unsent")
		ledgertest.Want(t, "its lease", got.Orders[0].Lease, 2)
		ledgertest.Want(t, "its attempt", got.Orders[0].Attempt, 1)
		ledgertest.Want(t, "asked about", serialsOf(got.Ask), "dead")
		asked := takeAt(t, s, 200, 0, 100).Ask
		ledgertest.Want(t, "asked about then", serialsOf(asked), "dead later")
		for _, o := range asked {
			ledgertest.Want(t, o.Serial+": attempt", o.Attempt, 1)
			ledgertest.Want(t, o.Serial+": lease", o.Lease, 1)
			ledgertest.Want(t, o.Serial+": until", o.Until, 5_000)
			ledgertest.Want(t, o.Serial+": again", decide(t, s, protocol.MoveAgain, o.Serial, 1, 0), protocol.Changed)
		}
		got = takeAt(t, s, 201, 9, 100)
		ledgertest.Want(t, "the order", serialsOf(got.Orders), "put off later dead")
		ledgertest.Want(t, "the second attempt", got.Orders[1].Attempt, 2)
		ledgertest.Want(t, "it may take longer", got.Orders[1].Deadline, 401)
	})
}

// Orders whose time is over are released by their callers: until then those behind them go out nevertheless.
func TestTake_FindsOrdersBehindExpiredOnes(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		codes := make([]protocol.Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 1_000_000, []protocol.Item{{Serial: "last", Quantity: 1,
			Request: protocol.NewRequest(9_000, "request")}}, codes)
		ledgertest.Check(t, err)
		got := takeAt(t, s, 5_000, 1, 100)
		ledgertest.Want(t, "expired", serialsOf(got.Expired), "a b c")
		ledgertest.Want(t, "orders", serialsOf(got.Orders), "last")
	})
}

// TestAnswers_AreKeptForATime has Redis' clock run ahead.
func TestAnswers_AreKeptForATime(t *testing.T) {
	server, turn := redistest.StartWithClock(t)
	s := connect(t, server, texts())
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 9, 0))
	queueUp(t, s, "a", "b")
	takeAt(t, s, 1, 9, 100)
	ledgertest.Want(t, "confirm", decide(t, s, protocol.MoveConfirm, "a", 1, 0), protocol.Changed)
	const kept = time.Minute // by decideAll
	turn(kept - time.Second)
	ledgertest.Want(t, "for so long", placeAt(t, s, "a").Answer, "answer to a")
	done := decideAll(t, s, protocol.Decision{Serial: "a", Move: protocol.MoveConfirm, Answer: "another"},
		protocol.Decision{Serial: "b", Move: protocol.MoveConfirm, Answer: "answer to b"})
	ledgertest.Want(t, "again", done[0], protocol.Already)
	ledgertest.Want(t, "the first one stands", placeAt(t, s, "a").Answer, "answer to a")
	turn(2 * kept)
	ledgertest.Want(t, "later", placeAt(t, s, "a").Answer, "")
	turn(3 * kept)
	ledgertest.Want(t, "at last", placeAt(t, s, "b").Answer, "")
	ledgertest.Want(t, "the order", placeAt(t, s, "b").Status, protocol.StatusSold)
}
