package ledger

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The tests of a queue: attempts time out after 100 ms, and the grace is 10.
var takeAll = HandOutCall{Now: 1, Orders: 100, Limit: 100, Timeout: 100, Slowest: 100, Grace: 10, Ask: 100,
	AskFor: 50}

// queueUp reserves a unit of 1001 until 1,000,000 for an order that waits, of which an attempt may begin until 5,000.
func queueUp(t testing.TB, s *Store, serials ...string) {
	t.Helper()
	for _, serial := range serials {
		codes := make([]Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 1_000_000, []Item{{Serial: serial, User: "user of " + serial,
			Quantity: 1, Request: NewRequest(5_000, "request "+serial)}}, codes)
		testkit.Check(t, err)
		testkit.Want(t, "reserve "+serial, codes[0], Held)
	}
}

func takeAt(t testing.TB, s *Store, now int64, n, limit int) HandedOut {
	t.Helper()
	c := takeAll
	c.Now, c.Orders, c.Limit = now, n, limit
	return testkit.Must[HandedOut](t)(s.HandOut(t.Context(), "1001", c))
}

func serialsOf(orders []Leased) string {
	var all []string
	for _, o := range orders {
		all = append(all, o.Serial)
	}
	return strings.Join(all, " ")
}

func decide(t testing.TB, s *Store, move Move, serial string, lease, time int64) Done {
	t.Helper()
	return decideAll(t, s, Decision{Serial: serial, Move: move, Lease: lease, Time: time,
		Answer: "answer to " + serial})[0]
}

func decideAll(t testing.TB, s *Store, all ...Decision) []Done {
	t.Helper()
	done, _, err := s.Decide(t.Context(), "1001", DecideCall{Now: 2, Keep: 2_000_000, AnswerFor: 60_000,
		Decisions: all})
	testkit.Check(t, err)
	return done
}

func placeAt(t testing.TB, s *Store, serial string) Position {
	t.Helper()
	return testkit.Must[[]Position](t)(s.Positions(t.Context(), "1001", []string{serial}))[0]
}

func TestTake_HandsOutTheOldestWithinTheLimit(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "c", "a", "b")
		testkit.Want(t, "ahead of the last", placeAt(t, s, "b").Ahead, 2)
		got := takeAt(t, s, 1, 100, 2)
		testkit.Want(t, "orders", serialsOf(got.Orders), "c a")
		first := got.Orders[0]
		testkit.Want(t, "request", first.Request, "request c")
		testkit.Want(t, "user", first.User, "user of c")
		testkit.Want(t, "attempt", first.Attempt, 1)
		testkit.Want(t, "its deadline", first.Deadline, 101)
		testkit.Want(t, "of the reservation", first.Record.Deadline, 1_000_000)
		testkit.Want(t, "depth", got.Depth, Depth{Waiting: 1, Leased: 2, Delivered: 2, Oldest: 5_000})
		testkit.Want(t, "where", placeAt(t, s, "c").Where, Delivering)
		testkit.Want(t, "where the last waits", placeAt(t, s, "b").Where, Queued)
		testkit.Want(t, "beyond the limit", serialsOf(takeAt(t, s, 1, 100, 2).Orders), "")
		testkit.Want(t, "confirm", decide(t, s, MoveConfirm, "c", 1, 0), Changed)
		testkit.Want(t, "when one is done", serialsOf(takeAt(t, s, 1, 100, 2).Orders), "b")
	})
}

func TestDecide_SettlesTheReservationAndKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 100, 100)
		testkit.Want(t, "confirm", decide(t, s, MoveConfirm, "a", 1, 0), Changed)
		testkit.Want(t, "again", decide(t, s, MoveConfirm, "a", 1, 0), Already)
		testkit.Want(t, "release what is sold", decide(t, s, MoveRelease, "a", 1, 0), WasSold)
		testkit.Want(t, "release", decide(t, s, MoveRelease, "b", 1, 0), Changed)
		testkit.Want(t, "confirm what is released", decide(t, s, MoveConfirm, "b", 1, 0), WasReleased)
		testkit.Want(t, "unknown", decide(t, s, MoveConfirm, "z", 1, 0), NotFound)
		stock := stockIn(t, s)
		testkit.Want(t, "sold", stock.Sold, 1)
		testkit.Want(t, "held", stock.Held, 1)
		testkit.Want(t, "a", placeAt(t, s, "a").Status, StatusSold)
		testkit.Want(t, "b", placeAt(t, s, "b").Status, StatusReleased)
		testkit.Want(t, "the answer", placeAt(t, s, "a").Answer, "answer to a")
		testkit.Want(t, "no answer", placeAt(t, s, "c").Answer, "")
		testkit.Want(t, "the user may buy again", takeUnit(t, s, "b2", "user of b"), Held)
	})
}

func TestDecide_DecidesAboutManyInOrder(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c", "d", "e")
		takeAt(t, s, 1, 4, 100)
		before := stockIn(t, s)
		one := func(serial string, move Move) Decision {
			return Decision{Serial: serial, Move: move, Lease: 1, Answer: string(move) + " " + serial}
		}
		done := decideAll(t, s, one("a", MoveConfirm), one("b", MoveRelease),
			one("c", MoveConfirm), one("d", MoveAgain), one("a", MoveRelease),
			one("a", MoveConfirm),
			one("b", MoveConfirm), one("d", MoveRelease), one("e", MoveCancel),
			one("z", MoveConfirm))
		testkit.Want(t, "what came of them", fmt.Sprint(done), fmt.Sprint([]Done{Changed,
			Changed, Changed, Changed, WasSold, Already,
			WasReleased, TooLate,
			Changed, NotFound}))
		after := stockIn(t, s)
		testkit.Want(t, "sold", after.Sold, 2)
		testkit.Want(t, "held", after.Held, 1)
		testkit.Want(t, "free again", after.Free, before.Free+2)
		testkit.Want(t, "versions", after.Ver, before.Ver+2)
		testkit.Want(t, "the first answer stands", placeAt(t, s, "a").Answer, "confirm a")
		testkit.Want(t, "the answer to what is released", placeAt(t, s, "b").Answer, "release b")
		testkit.Want(t, "what is left", serialsOf(takeAt(t, s, 2, 9, 100).Orders), "d")
		testkit.Want(t, "the user may buy again", takeUnit(t, s, "b2", "user of b"), Held)
	})
}

func TestAttempt_ThatCameToNothingWaitsInItsOldPlace(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "unsent", decide(t, s, MoveUnsent, "a", 1, 0), Changed)
		got := takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "first again", serialsOf(got.Orders), "a")
		testkit.Want(t, "the attempt that was not sent counts not", got.Orders[0].Attempt, 1)
		testkit.Want(t, "again", decide(t, s, MoveAgain, "a", 2, 0), Changed)
		testkit.Want(t, "twice", decide(t, s, MoveAgain, "a", 2, 0), TooLate)
		got = takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "attempt", got.Orders[0].Attempt, 2)
		testkit.Want(t, "it may take longer", got.Orders[0].Deadline, 201)
		testkit.Want(t, "a late word of the first attempt", decide(t, s, MoveRelease, "a", 1, 0),
			TooLate)
		testkit.Want(t, "where", placeAt(t, s, "a").Where, Delivering)
		testkit.Want(t, "a late order of the first attempt", decide(t, s, MoveConfirm, "a", 1, 0),
			Changed)
		testkit.Want(t, "request", takeAt(t, s, 1, 1, 100).Orders[0].Request, "request b")
	})
}

func TestUnknownOutcome_IsAskedAboutOnceTheAttemptCannotEndAnyMore(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "before its end", serialsOf(takeAt(t, s, 110, 1, 100).Ask), "")
		got := takeAt(t, s, 111, 1, 100)
		testkit.Want(t, "after the grace", serialsOf(got.Ask), "a")
		testkit.Want(t, "is not sent", serialsOf(got.Orders), "")
		testkit.Want(t, "and not in the upstream any more", got.Depth, Depth{Asking: 1, Delivered: 1})
		testkit.Want(t, "where", placeAt(t, s, "a").Where, Asking)
		testkit.Want(t, "one instance asks", serialsOf(takeAt(t, s, 160, 1, 100).Ask), "")
		testkit.Want(t, "then another", serialsOf(takeAt(t, s, 161, 1, 100).Ask), "a")
		testkit.Want(t, "later", decide(t, s, MoveLater, "a", 1, 400), Changed)
		testkit.Want(t, "not yet", serialsOf(takeAt(t, s, 399, 1, 100).Ask), "")
		testkit.Want(t, "by then", serialsOf(takeAt(t, s, 400, 1, 100).Ask), "a")
		testkit.Want(t, "the upstream has none", decide(t, s, MoveAgain, "a", 1, 0), Changed)
		testkit.Want(t, "sent again", serialsOf(takeAt(t, s, 400, 1, 100).Orders), "a")
	})
}

func TestStuckOrder_WaitsForAPerson(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b")
		takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "requeue of one that is sent", decide(t, s, MoveRequeue, "a", 0, 9_000),
			TooLate)
		testkit.Want(t, "stuck", decide(t, s, MoveLater, "a", 1, Never), Changed)
		testkit.Want(t, "where", placeAt(t, s, "a").Where, ForAPerson)
		testkit.Want(t, "no instance asks", serialsOf(takeAt(t, s, 900_000, 0, 100).Ask), "")
		depths := testkit.Must[[]Depth](t)(s.Depths(t.Context(), []string{"1001", "none"}))
		testkit.Want(t, "stuck", depths[0].Stuck, 1)
		testkit.Want(t, "of none", depths[1].Active(), false)
		testkit.Want(t, "cancel", decide(t, s, MoveCancel, "a", 0, 0), TooLate)
		testkit.Want(t, "requeue when it is too late", decide(t, s, MoveRequeue, "a", 0, 2), TooLate)
		testkit.Want(t, "requeue", decide(t, s, MoveRequeue, "a", 0, 9_000), Changed)
		got := takeAt(t, s, 6_000, 1, 100)
		testkit.Want(t, "it goes out", serialsOf(got.Orders), "a")
		testkit.Want(t, "attempt", got.Orders[0].Attempt, 1)
	})
}

func TestCancel_EndsWhatWaitsAndNothingElse(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b")
		testkit.Want(t, "an order that does not wait", takeUnit(t, s, "direct", "ann"), Held)
		takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "handed over", decide(t, s, MoveCancel, "a", 0, 0), TooLate)
		testkit.Want(t, "waiting", decide(t, s, MoveCancel, "b", 0, 0), Changed)
		testkit.Want(t, "again", decide(t, s, MoveCancel, "b", 0, 0), Already)
		testkit.Want(t, "not of the queue", decide(t, s, MoveCancel, "direct", 0, 0), NotQueued)
		testkit.Want(t, "where is that", placeAt(t, s, "direct").Where, NotWaiting)
		testkit.Want(t, "what is left", serialsOf(takeAt(t, s, 1, 9, 100).Orders), "")
		testkit.Want(t, "held", stockIn(t, s).Held, 2)
	})
}

func TestQueue_ForgetsWhatWasDecidedElsewhere(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 1, 100)
		testkit.Want(t, "release", finishOne(t, s, Release, "b"), Changed)
		testkit.Want(t, "confirm", finishOne(t, s, Confirm, "a"), Changed)
		got := takeAt(t, s, 4_000, 9, 100)
		testkit.Want(t, "orders", serialsOf(got.Orders), "c")
		testkit.Want(t, "no order is asked about", serialsOf(got.Ask), "")
		testkit.Want(t, "depth", got.Depth, Depth{Leased: 1, Delivered: 2})
	})
}

func TestExpiredOrder_IsHandedOutAsSuch(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a")
		got := takeAt(t, s, 5_000, 9, 100)
		testkit.Want(t, "orders", serialsOf(got.Orders), "")
		testkit.Want(t, "expired", serialsOf(got.Expired), "a")
	})
}

// What a ledger in a new epoch says of orders may be older than what was done: they are asked about once the longest
// attempt that may be missing has ended.
func TestNewEpoch_HasEveryOrderAskedAbout(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "waiting", "leased", "unknown")
		takeAt(t, s, 1, 3, 100)
		testkit.Want(t, "unsent", decide(t, s, MoveUnsent, "waiting", 1, 0), Changed)
		testkit.Want(t, "later", decide(t, s, MoveLater, "unknown", 1, 200), Changed)
		testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", Frozen))
		got := takeAt(t, s, 300, 9, 100)
		testkit.Want(t, "while frozen", serialsOf(got.Orders)+serialsOf(got.Ask), "")
		testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", On))
		testkit.Want(t, "cancel of what may have been sent", decide(t, s, MoveCancel, "waiting", 0, 0),
			TooLate)
		got = takeAt(t, s, 300, 9, 100)
		testkit.Want(t, "when it is open again", serialsOf(got.Orders)+serialsOf(got.Ask), "")
		testkit.Want(t, "the word of an attempt", decide(t, s, MoveUnsent, "leased", 1, 710), TooLate)
		got = takeAt(t, s, 709, 9, 100)
		testkit.Want(t, "before the longest attempt has ended", serialsOf(got.Orders)+serialsOf(got.Ask), "")
		got = takeAt(t, s, 710, 9, 100)
		testkit.Want(t, "not sent", serialsOf(got.Orders), "")
		testkit.Want(t, "asked about", len(got.Ask), 3)
	})
}

func TestSlots_AreSharedByAll(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		slots := func(c SlotCall) int {
			c.For = 60_000
			return testkit.Must[int](t)(s.Slots(t.Context(), c))
		}
		testkit.Want(t, "first", slots(SlotCall{Limit: 3, Want: []string{"a", "b"}}), 2)
		testkit.Want(t, "second", slots(SlotCall{Limit: 3, Want: []string{"c", "d"}}), 1)
		testkit.Want(t, "full", slots(SlotCall{Limit: 3, Want: []string{"e"}}), 0)
		freed := SlotCall{Limit: 3, Free: []string{"a"}, Want: []string{"e", "f"}}
		testkit.Want(t, "one is free", slots(freed), 1)
		testkit.Want(t, "a lower limit", slots(SlotCall{Limit: 1, Want: []string{"g"}}), 0)
		testkit.Want(t, "pause", slots(SlotCall{Limit: 9, Want: []string{"g"}, Pause: 60_000}), 0)
		testkit.Want(t, "for all", slots(SlotCall{Limit: 9, Want: []string{"g"}}), 0)
	})
}

func TestSlots_KeepToTheRate(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		want := []string{"a", "b", "c"}
		call := SlotCall{Limit: 9, Rate: 0.001, For: 60_000, Want: want}
		testkit.Want(t, "one in 1,000 s", testkit.Must[int](t)(s.Slots(t.Context(), call)), 1)
		testkit.Want(t, "not yet", testkit.Must[int](t)(s.Slots(t.Context(), call)), 0)
		call.Free, call.Unused = []string{"a"}, 1
		testkit.Want(t, "it was not used", testkit.Must[int](t)(s.Slots(t.Context(), call)), 1)
	})
}

// A ms of today has 13 digits: what of it is computed with a rate must not be rounded to nothing.
func TestSlots_EachRateGrantsWhatItSays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, c := connect(t, server, texts()), server.Client
	for rate := 1; rate <= 1000; rate += 9 {
		testkit.Check(t, c.Del(t.Context(), s.keys(slotsOf)[0], s.queueKeys(slotsOf)[0]).Err())
		call := SlotCall{Limit: 9, Rate: float64(rate), For: 60_000, Want: []string{"a"}}
		testkit.Want(t, fmt.Sprintf("%d a second", rate), testkit.Must[int](t)(s.Slots(t.Context(), call)), 1)
	}
}

// TestSlots_TimesOfAClockThatRanAheadAreCut has the keys as they are after Redis' clock was a day ahead for a moment.
func TestSlots_TimesOfAClockThatRanAheadAreCut(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, c := connect(t, server, texts()), server.Client
	const day = 24 * 60 * 60 * 1000
	call := SlotCall{Limit: 2, Rate: 1, For: 5_000, Longest: 20_000, Want: []string{"a"}}
	testkit.Want(t, "granted", testkit.Must[int](t)(s.Slots(t.Context(), call)), 1)
	call.Want, call.Pause = []string{"b"}, 1_000
	testkit.Want(t, "in a pause", testkit.Must[int](t)(s.Slots(t.Context(), call)), 0)
	keys := s.keys(slotsOf)
	numbers, places := keys[0], s.queueKeys(slotsOf)[0]
	at := func(name string) int64 {
		return int64(testkit.Must[float64](t)(c.HGet(t.Context(), numbers, name).Float64()))
	}
	for _, name := range []string{"pause", "next"} {
		testkit.Check(t, c.HSet(t.Context(), numbers, name, at(name)+day).Err())
	}
	testkit.Check(t, c.ZIncrBy(t.Context(), places, day, "a").Err())
	call.Pause, call.Rate = 0, 0
	testkit.Want(t, "still in the pause", testkit.Must[int](t)(s.Slots(t.Context(), call)), 0)
	now := c.Time(t.Context()).Val().UnixMilli()
	if left := at("pause") - now; left > 1_000 {
		t.Errorf("the pause of 1 s lasts for %d ms more", left)
	}
	if left := int64(c.ZScore(t.Context(), places, "a").Val()) - now; left <= 0 || left > 20_000 {
		t.Errorf("the place counts for %d ms more", left)
	}
	call.Rate = 1
	testkit.Must[int](t)(s.Slots(t.Context(), call))
	if ahead := at("next") - c.Time(t.Context()).Val().UnixMilli(); ahead > 0 {
		t.Errorf("the next order begins %d ms later than the rate says", ahead)
	}
}

// A shorter time-out of one instance does not cut the places of another one that still runs.
func TestSlots_PlacesLastAsTheSlowestInstanceSays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, c := connect(t, server, texts()), server.Client
	slow := SlotCall{Limit: 2, For: 300_000, Longest: 400_000, Want: []string{"slow"}}
	quick := SlotCall{Limit: 2, For: 5_000, Longest: 60_000, Want: []string{"quick"}}
	testkit.Want(t, "slow", testkit.Must[int](t)(s.Slots(t.Context(), slow)), 1)
	left := func() int64 {
		testkit.Must[int](t)(s.Slots(t.Context(), quick))
		until := int64(c.ZScore(t.Context(), s.queueKeys(slotsOf)[0], "slow").Val())
		return until - c.Time(t.Context()).Val().UnixMilli()
	}
	if ms := left(); ms < 60_000 {
		t.Errorf("the place of 300 s counts for %d ms more", ms)
	}
	testkit.Check(t, c.HSet(t.Context(), s.keys(slotsOf)[0], "till", 1).Err()) // no slow instance is left
	if ms := left(); ms > 60_000 {
		t.Errorf("a place that no instance can have asked for counts for %d ms more", ms)
	}
}

// TestTake_NeverHandsOutAnOrderTwice has many takers at once.
func TestTake_NeverHandsOutAnOrderTwice(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t), texts())
	const n = 200
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", n, 0))
	for i := range n {
		queueUp(t, s, fmt.Sprint(i))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	testkit.Storm(40, 8, func(int) {
		for _, o := range takeAt(t, s, 1, 7, n).Orders {
			mu.Lock()
			seen[o.Serial]++
			mu.Unlock()
		}
	})
	for serial, times := range seen {
		testkit.Want(t, "times of "+serial, times, 1)
	}
	testkit.Want(t, "orders", len(seen), n)
}

// Orders that were put off and are due share the places with those that wait: neither starves.
func TestTake_PutOffOrdersTakeEverySecondPlace(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 20, 0))
		queueUp(t, s, "a", "b", "c")
		for _, o := range takeAt(t, s, 1, 3, 100).Orders {
			done := decideAll(t, s, Decision{Serial: o.Serial, Move: MoveNotNow, Lease: o.Lease, From: 50})
			testkit.Want(t, "put off", done[0], Changed)
		}
		queueUp(t, s, "d", "e", "f", "g", "h")
		testkit.Want(t, "not due", serialsOf(takeAt(t, s, 49, 1, 100).Orders), "d")
		testkit.Want(t, "due", serialsOf(takeAt(t, s, 50, 3, 100).Orders), "e a f")
		testkit.Want(t, "one at a time", serialsOf(takeAt(t, s, 50, 1, 100).Orders), "b")
		testkit.Want(t, "the rest", serialsOf(takeAt(t, s, 50, 9, 100).Orders), "g c h")
	})
}

func TestQueue_NamesStuckOrdersAndSKUs(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		queueUp(t, s, "a", "b", "c")
		takeAt(t, s, 1, 2, 100)
		for _, serial := range []string{"a", "b"} {
			testkit.Want(t, "stuck", decide(t, s, MoveLater, serial, 1, Never), Changed)
		}
		stuck := func(sku string, limit int) string {
			return strings.Join(testkit.Must[[]string](t)(s.Stuck(t.Context(), sku, limit)), " ")
		}
		testkit.Want(t, "all", stuck("1001", 9), "a b")
		testkit.Want(t, "one", stuck("1001", 1), "a")
		testkit.Want(t, "of none", stuck("none", 9), "")
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1002", 1, 0))
		names := func(after string) string {
			return strings.Join(testkit.Must[[]string](t)(s.Names(t.Context(), after)), " ")
		}
		testkit.Want(t, "names", names(""), "1001 1002")
		testkit.Want(t, "after the first", names("1001"), "1002")
		testkit.Want(t, "after the last", names("1002"), "")
	})
}

// A caller with a short timeout does not shorten how long an attempt is waited for that the ledger has lost.
func TestTakeCall_LongestIsThatOfTheSlowestCaller(t *testing.T) {
	c := HandOutCall{Orders: 1, Limit: 1, Timeout: 1000, Slowest: 30_000, Grace: 5000, Ask: 1, AskFor: 1}
	testkit.Check(t, c.Check("1001"))
	testkit.Want(t, "longest", c.Longest(), int64(4*30_000+5000))
	c.Slowest = 999
	if c.Check("1001") == nil {
		t.Error("a slowest attempt that is faster than this one is accepted")
	}
}
