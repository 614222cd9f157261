package redisstore

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// The tests of a queue: attempts time out after 100 ms, and the grace is 10.
var takeAll = protocol.HandOutCall{Now: 1, Orders: 100, Limit: 100, Timeout: 100, Slowest: 100, Grace: 10, Ask: 100,
	AskFor: 50}

// queueUp reserves a unit of 1001 until 1,000,000 for an order that waits, of which an attempt may begin until 5,000.
func queueUp(t testing.TB, s *Store, serials ...string) {
	t.Helper()
	for _, serial := range serials {
		codes := make([]protocol.Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 1_000_000, []protocol.Item{{Serial: serial, User: "user of " + serial,
			Quantity: 1, Request: protocol.NewRequest(5_000, "request "+serial)}}, codes)
		ledgertest.Check(t, err)
		ledgertest.Want(t, "reserve "+serial, codes[0], protocol.Held)
	}
}

func takeAt(t testing.TB, s *Store, now int64, n, limit int) protocol.HandedOut {
	t.Helper()
	c := takeAll
	c.Now, c.Orders, c.Limit = now, n, limit
	return ledgertest.Must[protocol.HandedOut](t)(s.HandOut(t.Context(), "1001", c))
}

func serialsOf(orders []protocol.Leased) string {
	var all []string
	for _, o := range orders {
		all = append(all, o.Serial)
	}
	return strings.Join(all, " ")
}

func decide(t testing.TB, s *Store, move protocol.Move, serial string, lease, time int64) protocol.Done {
	t.Helper()
	return decideAll(t, s, protocol.Decision{Serial: serial, Move: move, Lease: lease, Time: time,
		Answer: "answer to " + serial})[0]
}

func decideAll(t testing.TB, s *Store, all ...protocol.Decision) []protocol.Done {
	t.Helper()
	done, _, err := s.Decide(t.Context(), "1001", protocol.DecideCall{Now: 2, Keep: 2_000_000, AnswerFor: 60_000,
		Decisions: all})
	ledgertest.Check(t, err)
	return done
}

func placeAt(t testing.TB, s *Store, serial string) protocol.Position {
	t.Helper()
	return ledgertest.Must[[]protocol.Position](t)(s.Positions(t.Context(), "1001", []string{serial}))[0]
}

func TestTake_HandsOutTheOldestWithinTheLimit(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "c", "a", "b")
		ledgertest.Want(t, "ahead of the last", placeAt(t, s, "b").Ahead, 2)
		got := takeAt(t, s, 1, 100, 2)
		ledgertest.Want(t, "orders", serialsOf(got.Orders), "c a")
		first := got.Orders[0]
		ledgertest.Want(t, "request", first.Request, "request c")
		ledgertest.Want(t, "user", first.User, "user of c")
		ledgertest.Want(t, "attempt", first.Attempt, 1)
		ledgertest.Want(t, "its deadline", first.Deadline, 101)
		ledgertest.Want(t, "of the reservation", first.Record.Deadline, 1_000_000)
		ledgertest.Want(t, "depth", got.Depth, protocol.Depth{Waiting: 1, Leased: 2, Delivered: 2, Oldest: 5_000})
		ledgertest.Want(t, "where", placeAt(t, s, "c").Where, protocol.Delivering)
		ledgertest.Want(t, "where the last waits", placeAt(t, s, "b").Where, protocol.Queued)
		ledgertest.Want(t, "beyond the limit", serialsOf(takeAt(t, s, 1, 100, 2).Orders), "")
		ledgertest.Want(t, "confirm", decide(t, s, protocol.MoveConfirm, "c", 1, 0), protocol.Changed)
		ledgertest.Want(t, "when one is done", serialsOf(takeAt(t, s, 1, 100, 2).Orders), "b")
	})
}

func TestDecide_SettlesTheReservationAndKeepsTheAnswer(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 100, 100)
		ledgertest.Want(t, "confirm", decide(t, s, protocol.MoveConfirm, "a", 1, 0), protocol.Changed)
		ledgertest.Want(t, "again", decide(t, s, protocol.MoveConfirm, "a", 1, 0), protocol.Already)
		ledgertest.Want(t, "release what is sold", decide(t, s, protocol.MoveRelease, "a", 1, 0), protocol.WasSold)
		ledgertest.Want(t, "release", decide(t, s, protocol.MoveRelease, "b", 1, 0), protocol.Changed)
		ledgertest.Want(t, "confirm what is released", decide(t, s, protocol.MoveConfirm, "b", 1, 0), protocol.WasReleased)
		ledgertest.Want(t, "unknown", decide(t, s, protocol.MoveConfirm, "z", 1, 0), protocol.NotFound)
		stock := ledgertest.StockOf(t, s)
		ledgertest.Want(t, "sold", stock.Sold, 1)
		ledgertest.Want(t, "held", stock.Held, 1)
		ledgertest.Want(t, "a", placeAt(t, s, "a").Status, protocol.StatusSold)
		ledgertest.Want(t, "b", placeAt(t, s, "b").Status, protocol.StatusReleased)
		ledgertest.Want(t, "the answer", placeAt(t, s, "a").Answer, "answer to a")
		ledgertest.Want(t, "no answer", placeAt(t, s, "c").Answer, "")
		ledgertest.Want(t, "the user may buy again", ledgertest.Take(t, s, "b2", "user of b"), protocol.Held)
	})
}

func TestDecide_DecidesAboutManyInOrder(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c", "d", "e")
		takeAt(t, s, 1, 4, 100)
		before := ledgertest.StockOf(t, s)
		one := func(serial string, move protocol.Move) protocol.Decision {
			return protocol.Decision{Serial: serial, Move: move, Lease: 1, Answer: string(move) + " " + serial}
		}
		done := decideAll(t, s, one("a", protocol.MoveConfirm), one("b", protocol.MoveRelease),
			one("c", protocol.MoveConfirm), one("d", protocol.MoveAgain), one("a", protocol.MoveRelease),
			one("a", protocol.MoveConfirm),
			one("b", protocol.MoveConfirm), one("d", protocol.MoveRelease), one("e", protocol.MoveCancel),
			one("z", protocol.MoveConfirm))
		ledgertest.Want(t, "what came of them", fmt.Sprint(done), fmt.Sprint([]protocol.Done{protocol.Changed,
			protocol.Changed, protocol.Changed, protocol.Changed, protocol.WasSold, protocol.Already,
			protocol.WasReleased, protocol.TooLate,
			protocol.Changed, protocol.NotFound}))
		after := ledgertest.StockOf(t, s)
		ledgertest.Want(t, "sold", after.Sold, 2)
		ledgertest.Want(t, "held", after.Held, 1)
		ledgertest.Want(t, "free again", after.Free, before.Free+2)
		ledgertest.Want(t, "versions", after.Ver, before.Ver+2)
		ledgertest.Want(t, "the first answer stands", placeAt(t, s, "a").Answer, "confirm a")
		ledgertest.Want(t, "the answer to what is released", placeAt(t, s, "b").Answer, "release b")
		ledgertest.Want(t, "what is left", serialsOf(takeAt(t, s, 2, 9, 100).Orders), "d")
		ledgertest.Want(t, "the user may buy again", ledgertest.Take(t, s, "b2", "user of b"), protocol.Held)
	})
}

func TestAttempt_ThatCameToNothingWaitsInItsOldPlace(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "unsent", decide(t, s, protocol.MoveUnsent, "a", 1, 0), protocol.Changed)
		got := takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "first again", serialsOf(got.Orders), "a")
		ledgertest.Want(t, "the attempt that was not sent counts not", got.Orders[0].Attempt, 1)
		ledgertest.Want(t, "again", decide(t, s, protocol.MoveAgain, "a", 2, 0), protocol.Changed)
		ledgertest.Want(t, "twice", decide(t, s, protocol.MoveAgain, "a", 2, 0), protocol.TooLate)
		got = takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "attempt", got.Orders[0].Attempt, 2)
		ledgertest.Want(t, "it may take longer", got.Orders[0].Deadline, 201)
		ledgertest.Want(t, "a late word of the first attempt", decide(t, s, protocol.MoveRelease, "a", 1, 0),
			protocol.TooLate)
		ledgertest.Want(t, "where", placeAt(t, s, "a").Where, protocol.Delivering)
		ledgertest.Want(t, "a late order of the first attempt", decide(t, s, protocol.MoveConfirm, "a", 1, 0),
			protocol.Changed)
		ledgertest.Want(t, "request", takeAt(t, s, 1, 1, 100).Orders[0].Request, "request b")
	})
}

func TestUnknownOutcome_IsAskedAboutOnceTheAttemptCannotEndAnyMore(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "before its end", serialsOf(takeAt(t, s, 110, 1, 100).Ask), "")
		got := takeAt(t, s, 111, 1, 100)
		ledgertest.Want(t, "after the grace", serialsOf(got.Ask), "a")
		ledgertest.Want(t, "is not sent", serialsOf(got.Orders), "")
		ledgertest.Want(t, "and not in the upstream any more", got.Depth, protocol.Depth{Asking: 1, Delivered: 1})
		ledgertest.Want(t, "where", placeAt(t, s, "a").Where, protocol.Asking)
		ledgertest.Want(t, "one instance asks", serialsOf(takeAt(t, s, 160, 1, 100).Ask), "")
		ledgertest.Want(t, "then another", serialsOf(takeAt(t, s, 161, 1, 100).Ask), "a")
		ledgertest.Want(t, "later", decide(t, s, protocol.MoveLater, "a", 1, 400), protocol.Changed)
		ledgertest.Want(t, "not yet", serialsOf(takeAt(t, s, 399, 1, 100).Ask), "")
		ledgertest.Want(t, "by then", serialsOf(takeAt(t, s, 400, 1, 100).Ask), "a")
		ledgertest.Want(t, "the upstream has none", decide(t, s, protocol.MoveAgain, "a", 1, 0), protocol.Changed)
		ledgertest.Want(t, "sent again", serialsOf(takeAt(t, s, 400, 1, 100).Orders), "a")
	})
}

func TestStuckOrder_WaitsForAPerson(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b")
		takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "requeue of one that is sent", decide(t, s, protocol.MoveRequeue, "a", 0, 9_000),
			protocol.TooLate)
		ledgertest.Want(t, "stuck", decide(t, s, protocol.MoveLater, "a", 1, protocol.Never), protocol.Changed)
		ledgertest.Want(t, "where", placeAt(t, s, "a").Where, protocol.ForAPerson)
		ledgertest.Want(t, "no instance asks", serialsOf(takeAt(t, s, 900_000, 0, 100).Ask), "")
		depths := ledgertest.Must[[]protocol.Depth](t)(s.Depths(t.Context(), []string{"1001", "none"}))
		ledgertest.Want(t, "stuck", depths[0].Stuck, 1)
		ledgertest.Want(t, "of none", depths[1].Active(), false)
		ledgertest.Want(t, "cancel", decide(t, s, protocol.MoveCancel, "a", 0, 0), protocol.TooLate)
		ledgertest.Want(t, "requeue when it is too late", decide(t, s, protocol.MoveRequeue, "a", 0, 2), protocol.TooLate)
		ledgertest.Want(t, "requeue", decide(t, s, protocol.MoveRequeue, "a", 0, 9_000), protocol.Changed)
		got := takeAt(t, s, 6_000, 1, 100)
		ledgertest.Want(t, "it goes out", serialsOf(got.Orders), "a")
		ledgertest.Want(t, "attempt", got.Orders[0].Attempt, 1)
	})
}

func TestCancel_EndsWhatWaitsAndNothingElse(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b")
		ledgertest.Want(t, "an order that does not wait", ledgertest.Take(t, s, "direct", "ann"), protocol.Held)
		takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "handed over", decide(t, s, protocol.MoveCancel, "a", 0, 0), protocol.TooLate)
		ledgertest.Want(t, "waiting", decide(t, s, protocol.MoveCancel, "b", 0, 0), protocol.Changed)
		ledgertest.Want(t, "again", decide(t, s, protocol.MoveCancel, "b", 0, 0), protocol.Already)
		ledgertest.Want(t, "not of the queue", decide(t, s, protocol.MoveCancel, "direct", 0, 0), protocol.NotQueued)
		ledgertest.Want(t, "where is that", placeAt(t, s, "direct").Where, protocol.NotWaiting)
		ledgertest.Want(t, "what is left", serialsOf(takeAt(t, s, 1, 9, 100).Orders), "")
		ledgertest.Want(t, "held", ledgertest.StockOf(t, s).Held, 2)
	})
}

func TestQueue_ForgetsWhatWasDecidedElsewhere(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 1, 100)
		ledgertest.Want(t, "release", ledgertest.Finish(t, s, protocol.Release, "b"), protocol.Changed)
		ledgertest.Want(t, "confirm", ledgertest.Finish(t, s, protocol.Confirm, "a"), protocol.Changed)
		got := takeAt(t, s, 4_000, 9, 100)
		ledgertest.Want(t, "orders", serialsOf(got.Orders), "c")
		ledgertest.Want(t, "no order is asked about", serialsOf(got.Ask), "")
		ledgertest.Want(t, "depth", got.Depth, protocol.Depth{Leased: 1, Delivered: 2})
	})
}

func TestExpiredOrder_IsHandedOutAsSuch(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		got := takeAt(t, s, 5_000, 9, 100)
		ledgertest.Want(t, "orders", serialsOf(got.Orders), "")
		ledgertest.Want(t, "expired", serialsOf(got.Expired), "a")
	})
}

// What a ledger in a new epoch says of orders may be older than what was done: they are asked about once the longest
// attempt that may be missing has ended.
func TestNewEpoch_HasEveryOrderAskedAbout(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "waiting", "leased", "unknown")
		takeAt(t, s, 1, 3, 100)
		ledgertest.Want(t, "unsent", decide(t, s, protocol.MoveUnsent, "waiting", 1, 0), protocol.Changed)
		ledgertest.Want(t, "later", decide(t, s, protocol.MoveLater, "unknown", 1, 200), protocol.Changed)
		ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.Frozen))
		got := takeAt(t, s, 300, 9, 100)
		ledgertest.Want(t, "while frozen", serialsOf(got.Orders)+serialsOf(got.Ask), "")
		ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.On))
		ledgertest.Want(t, "cancel of what may have been sent", decide(t, s, protocol.MoveCancel, "waiting", 0, 0),
			protocol.TooLate)
		got = takeAt(t, s, 300, 9, 100)
		ledgertest.Want(t, "when it is open again", serialsOf(got.Orders)+serialsOf(got.Ask), "")
		ledgertest.Want(t, "the word of an attempt", decide(t, s, protocol.MoveUnsent, "leased", 1, 710), protocol.TooLate)
		got = takeAt(t, s, 709, 9, 100)
		ledgertest.Want(t, "before the longest attempt has ended", serialsOf(got.Orders)+serialsOf(got.Ask), "")
		got = takeAt(t, s, 710, 9, 100)
		ledgertest.Want(t, "not sent", serialsOf(got.Orders), "")
		ledgertest.Want(t, "asked about", len(got.Ask), 3)
	})
}

func TestSlots_AreSharedByAll(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		slots := func(c protocol.SlotCall) int {
			c.For = 60_000
			return ledgertest.Must[int](t)(s.Slots(t.Context(), c))
		}
		ledgertest.Want(t, "first", slots(protocol.SlotCall{Limit: 3, Want: []string{"a", "b"}}), 2)
		ledgertest.Want(t, "second", slots(protocol.SlotCall{Limit: 3, Want: []string{"c", "d"}}), 1)
		ledgertest.Want(t, "full", slots(protocol.SlotCall{Limit: 3, Want: []string{"e"}}), 0)
		freed := protocol.SlotCall{Limit: 3, Free: []string{"a"}, Want: []string{"e", "f"}}
		ledgertest.Want(t, "one is free", slots(freed), 1)
		ledgertest.Want(t, "a lower limit", slots(protocol.SlotCall{Limit: 1, Want: []string{"g"}}), 0)
		ledgertest.Want(t, "pause", slots(protocol.SlotCall{Limit: 9, Want: []string{"g"}, Pause: 60_000}), 0)
		ledgertest.Want(t, "for all", slots(protocol.SlotCall{Limit: 9, Want: []string{"g"}}), 0)
	})
}

func TestSlots_KeepToTheRate(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		want := []string{"a", "b", "c"}
		call := protocol.SlotCall{Limit: 9, Rate: 0.001, For: 60_000, Want: want}
		ledgertest.Want(t, "one in 1,000 s", ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 1)
		ledgertest.Want(t, "not yet", ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 0)
		call.Free, call.Unused = []string{"a"}, 1
		ledgertest.Want(t, "it was not used", ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 1)
	})
}

// A ms of today has 13 digits: what of it is computed with a rate must not be rounded to nothing.
func TestSlots_EachRateGrantsWhatItSays(t *testing.T) {
	server := redistest.Start(t)
	s, c := connect(t, server, texts()), server.Client
	for rate := 1; rate <= 1000; rate++ {
		ledgertest.Check(t, c.Del(t.Context(), s.fiveKeys(slotsOf)[0], s.queueKeys(slotsOf)[0]).Err())
		call := protocol.SlotCall{Limit: 9, Rate: float64(rate), For: 60_000, Want: []string{"a"}}
		ledgertest.Want(t, fmt.Sprintf("%d a second", rate), ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 1)
	}
}

// TestSlots_TimesOfAClockThatRanAheadAreCut has the keys as they are after Redis' clock was a day ahead for a moment.
func TestSlots_TimesOfAClockThatRanAheadAreCut(t *testing.T) {
	server := redistest.Start(t)
	s, c := connect(t, server, texts()), server.Client
	const day = 24 * 60 * 60 * 1000
	call := protocol.SlotCall{Limit: 2, Rate: 1, For: 5_000, Longest: 20_000, Want: []string{"a"}}
	ledgertest.Want(t, "granted", ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 1)
	call.Want, call.Pause = []string{"b"}, 1_000
	ledgertest.Want(t, "in a pause", ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 0)
	keys := s.fiveKeys(slotsOf)
	numbers, places := keys[0], s.queueKeys(slotsOf)[0]
	at := func(name string) int64 {
		return int64(ledgertest.Must[float64](t)(c.HGet(t.Context(), numbers, name).Float64()))
	}
	for _, name := range []string{"pause", "next"} {
		ledgertest.Check(t, c.HSet(t.Context(), numbers, name, at(name)+day).Err())
	}
	ledgertest.Check(t, c.ZIncrBy(t.Context(), places, day, "a").Err())
	call.Pause, call.Rate = 0, 0
	ledgertest.Want(t, "still in the pause", ledgertest.Must[int](t)(s.Slots(t.Context(), call)), 0)
	now := c.Time(t.Context()).Val().UnixMilli()
	if left := at("pause") - now; left > 1_000 {
		t.Errorf("the pause of 1 s lasts for %d ms more", left)
	}
	if left := int64(c.ZScore(t.Context(), places, "a").Val()) - now; left <= 0 || left > 20_000 {
		t.Errorf("the place counts for %d ms more", left)
	}
	call.Rate = 1
	ledgertest.Must[int](t)(s.Slots(t.Context(), call))
	if ahead := at("next") - c.Time(t.Context()).Val().UnixMilli(); ahead > 0 {
		t.Errorf("the next order begins %d ms later than the rate says", ahead)
	}
}

// A shorter time-out of one instance does not cut the places of another one that still runs.
func TestSlots_PlacesLastAsTheSlowestInstanceSays(t *testing.T) {
	server := redistest.Start(t)
	s, c := connect(t, server, texts()), server.Client
	slow := protocol.SlotCall{Limit: 2, For: 300_000, Longest: 400_000, Want: []string{"slow"}}
	quick := protocol.SlotCall{Limit: 2, For: 5_000, Longest: 60_000, Want: []string{"quick"}}
	ledgertest.Want(t, "slow", ledgertest.Must[int](t)(s.Slots(t.Context(), slow)), 1)
	left := func() int64 {
		ledgertest.Must[int](t)(s.Slots(t.Context(), quick))
		until := int64(c.ZScore(t.Context(), s.queueKeys(slotsOf)[0], "slow").Val())
		return until - c.Time(t.Context()).Val().UnixMilli()
	}
	if ms := left(); ms < 60_000 {
		t.Errorf("the place of 300 s counts for %d ms more", ms)
	}
	ledgertest.Check(t, c.HSet(t.Context(), s.fiveKeys(slotsOf)[0], "till", 1).Err()) // no slow instance is left
	if ms := left(); ms > 60_000 {
		t.Errorf("a place that no instance can have asked for counts for %d ms more", ms)
	}
}

// TestTake_NeverHandsOutAnOrderTwice has many takers at once.
func TestTake_NeverHandsOutAnOrderTwice(t *testing.T) {
	s := connect(t, redistest.Start(t), texts())
	const n = 200
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", n, 0))
	for i := range n {
		queueUp(t, s, fmt.Sprint(i))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	ledgertest.Storm(40, 8, func(int) {
		for _, o := range takeAt(t, s, 1, 7, n).Orders {
			mu.Lock()
			seen[o.Serial]++
			mu.Unlock()
		}
	})
	for serial, times := range seen {
		ledgertest.Want(t, "times of "+serial, times, 1)
	}
	ledgertest.Want(t, "orders", len(seen), n)
}

// Orders that were put off and are due share the places with those that wait: neither starves.
func TestTake_PutOffOrdersTakeEverySecondPlace(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 20, 0))
		queueUp(t, s, "a", "b", "c")
		for _, o := range takeAt(t, s, 1, 3, 100).Orders {
			done := decideAll(t, s, protocol.Decision{Serial: o.Serial, Move: protocol.MoveNotNow, Lease: o.Lease, From: 50})
			ledgertest.Want(t, "put off", done[0], protocol.Changed)
		}
		queueUp(t, s, "d", "e", "f", "g", "h")
		ledgertest.Want(t, "not due", serialsOf(takeAt(t, s, 49, 1, 100).Orders), "d")
		ledgertest.Want(t, "due", serialsOf(takeAt(t, s, 50, 3, 100).Orders), "e a f")
		ledgertest.Want(t, "one at a time", serialsOf(takeAt(t, s, 50, 1, 100).Orders), "b")
		ledgertest.Want(t, "the rest", serialsOf(takeAt(t, s, 50, 9, 100).Orders), "g c h")
	})
}

func TestQueue_NamesStuckOrdersAndSKUs(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 2, 100)
		for _, serial := range []string{"a", "b"} {
			ledgertest.Want(t, "stuck", decide(t, s, protocol.MoveLater, serial, 1, protocol.Never), protocol.Changed)
		}
		stuck := func(sku string, limit int) string {
			return strings.Join(ledgertest.Must[[]string](t)(s.Stuck(t.Context(), sku, limit)), " ")
		}
		ledgertest.Want(t, "all", stuck("1001", 9), "a b")
		ledgertest.Want(t, "one", stuck("1001", 1), "a")
		ledgertest.Want(t, "of none", stuck("none", 9), "")
		ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1002", 1, 0))
		names := func(after string) string {
			return strings.Join(ledgertest.Must[[]string](t)(s.Names(t.Context(), after)), " ")
		}
		ledgertest.Want(t, "names", names(""), "1001 1002")
		ledgertest.Want(t, "after the first", names("1001"), "1002")
		ledgertest.Want(t, "after the last", names("1002"), "")
	})
}

// A caller with a short timeout does not shorten how long an attempt is waited for that the ledger has lost.
func TestTakeCall_LongestIsThatOfTheSlowestCaller(t *testing.T) {
	c := protocol.HandOutCall{Orders: 1, Limit: 1, Timeout: 1000, Slowest: 30_000, Grace: 5000, Ask: 1, AskFor: 1}
	ledgertest.Check(t, c.Check("1001"))
	ledgertest.Want(t, "longest", c.Longest(), int64(4*30_000+5000))
	c.Slowest = 999
	if c.Check("1001") == nil {
		t.Error("a slowest attempt that is faster than this one is accepted")
	}
}
