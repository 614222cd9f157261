package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

func TestRedisstore_RepeatedAdditionCountsOnce(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		for range 3 {
			testkit.Want(t, "total", testkit.Must[Stock](t)(s.Add(t.Context(), "1001", 4, "delivery-1")).Total, 9)
		}
		testkit.Want(
			t,
			"another delivery",
			testkit.Must[Stock](t)(s.Add(t.Context(), "1001", 4, "delivery-2")).Total,
			13,
		)
		testkit.Want(t, "free", stockIn(t, s).Free, 13)
		before := stockIn(t, s)
		if _, err := s.Add(t.Context(), "1001", 5, "delivery-1"); !errors.Is(err, errOtherDelta) {
			t.Fatalf("another number by the same id: %v", err)
		}
		testkit.Want(t, "stock", stockIn(t, s), before)
		for n := range int64(3) {
			testkit.Want(t, "without an id", testkit.Must[Stock](t)(s.Add(t.Context(), "1001", 1, "")).Total, 14+n)
		}
	})
}

func TestRedisstore_LedgerRemembersTheLastHundredIDs(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range maxAdditions + 1 {
			testkit.Must[Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", i)))
		}
		total := stockIn(t, s).Total
		for i := 1; i <= maxAdditions; i++ {
			testkit.Want(
				t,
				"remembered",
				testkit.Must[Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", i))).Total,
				total,
			)
		}
		testkit.Want(
			t,
			"the oldest",
			testkit.Must[Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", 0))).Total,
			total+1,
		)
	})
}

func TestAdd_BelowWhatIsTakenIsRejectedWithBothNumbers(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range 3 {
			takeUnit(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		finishOne(t, s, Confirm, "0")
		before := stockIn(t, s)
		_, err := s.Add(t.Context(), "1001", -3, "less")
		if err == nil || !strings.Contains(err.Error(), "a total of 2 is less than 2 held + 1 sold") {
			t.Fatalf("add: %v", err)
		}
		testkit.Want(t, "stock", stockIn(t, s), before)
		finishOne(t, s, Release, "1")
		testkit.Want(
			t,
			"later, by the same id",
			testkit.Must[Stock](t)(s.Add(t.Context(), "1001", -3, "less")).Free,
			0,
		)
	})
}

func TestRedisstore_TotalsWithoutALimitKeepIt(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		stock := testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 9, KeepLimit))
		testkit.Want(t, "total", stock.Total, 9)
		testkit.Want(t, "limit", stock.Limit, 2)
		if _, err := s.SetTotal(t.Context(), "new", 9, KeepLimit); !errors.Is(err, ErrUnknownSKU) {
			t.Fatalf("a limit that nobody named: %v", err)
		}
		_, ok, err := s.ReadStock(t.Context(), "new")
		testkit.Check(t, err)
		testkit.Want(t, "made", ok, false)
	})
}

func TestRedisstore_ChangesNeedALedgerAndSense(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		before := stockIn(t, s)
		if _, err := s.Add(ctx, "none", 1, ""); !errors.Is(err, ErrUnknownSKU) {
			t.Errorf("add: %v", err)
		}
		if _, err := s.SetSchedule(ctx, "none", 1, 2); !errors.Is(err, ErrUnknownSKU) {
			t.Errorf("set hours: %v", err)
		}
		for what, change := range map[string]func() (Stock, error){
			"nothing":           func() (Stock, error) { return s.Add(ctx, "1001", 0, "") },
			"16 digits":         func() (Stock, error) { return s.Add(ctx, "1001", 1e15, "") },
			"16 digits in all":  func() (Stock, error) { return s.Add(ctx, "1001", MaxNumber, "") },
			"less than nothing": func() (Stock, error) { return s.Add(ctx, "1001", -MaxNumber, "") },
			"an id with spaces": func() (Stock, error) { return s.Add(ctx, "1001", 1, "a b") },
			"a long id":         func() (Stock, error) { return s.Add(ctx, "1001", 1, strings.Repeat("x", 129)) },
			"no sku":            func() (Stock, error) { return s.Add(ctx, "", 1, "") },
			"hours backwards":   func() (Stock, error) { return s.SetSchedule(ctx, "1001", 5, 4) },
			"no hours":          func() (Stock, error) { return s.SetSchedule(ctx, "1001", 5, 5) },
			"before 1970":       func() (Stock, error) { return s.SetSchedule(ctx, "1001", -1, 0) },
			"nanoseconds":       func() (Stock, error) { return s.SetSchedule(ctx, "1001", 1e18, 0) },
		} {
			if _, err := change(); err == nil {
				t.Errorf("%s: accepted", what)
			}
		}
		testkit.Want(t, "stock", stockIn(t, s), before)
	})
}

// The hours are by the time that the caller gives, to the millisecond, and bind nobody who has won.
func TestRedisstore_SaleKeepsItsHours(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		stock := testkit.Must[Stock](t)(s.SetSchedule(t.Context(), "1001", 2_000, 3_000))
		testkit.Want(t, "opens", stock.Opens, 2_000)
		testkit.Want(t, "closes", stock.Closes, 3_000)
		at := func(now int64, serial string) Code {
			codes := make([]Code, 1)
			hint, err := s.Reserve(
				t.Context(),
				"1001",
				0,
				now,
				9_000,
				[]Item{{Serial: serial, User: "", Quantity: 1}},
				codes,
			)
			testkit.Check(t, err)
			testkit.Want(t, "the state and the code", hint.At(now) == On, codes[0] != NotOnSale || serial == "b")
			return codes[0]
		}
		testkit.Want(t, "before", at(1_999, "a"), NotOnSale)
		testkit.Want(t, "first", at(2_000, "a"), Held)
		testkit.Want(t, "last", at(2_999, "b"), Held)
		testkit.Want(t, "after", at(3_000, "c"), NotOnSale)
		testkit.Want(
			t,
			"a winner's retry",
			testkit.Must[Stock](t)(s.SetSchedule(t.Context(), "1001", 2_000, 0)).Closes,
			0,
		)
		testkit.Want(t, "no end", at(1<<40, "c"), Held)
		testkit.Must[Stock](t)(s.SetSchedule(t.Context(), "1001", 1<<41, 0))
		codes := make([]Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 9_000, []Item{{Serial: "b", User: "", Quantity: 1}}, codes)
		testkit.Check(t, err)
		testkit.Want(t, "a retry outside of the hours", codes[0], ReplayHeld)
		testkit.Want(t, "settling outside of the hours", finishOne(t, s, Confirm, "a"), Changed)
	})
}

func TestRedisstore_StateFollowsFromTheHoursOnlyWhereItIsOn(t *testing.T) {
	h := StockVersion{State: On, Opens: 10, Closes: 20}
	for now, state := range map[int64]State{0: Waiting, 9: Waiting, 10: On,
		19: On, 20: Over, 99: Over} {
		testkit.Want(t, fmt.Sprint(now), h.At(now), state)
	}
	h.State = Paused
	testkit.Want(t, "paused", h.At(5), Paused)
	testkit.Want(t, "always on", StockVersion{State: On}.At(5), On)
}

func TestRedisstore_LedgerWithoutHoursIsAFaultAndNotAlwaysOnSale(t *testing.T) {
	for _, field := range []string{"opens", "closes"} {
		server, r := onRedis(t)
		testkit.Check(t, server.Client.HDel(t.Context(), "sluice:shop:{1001}:s", field).Err())
		all := tries(r)
		_, all["add"] = r.Add(t.Context(), "1001", 1, "")
		_, all["set hours"] = r.SetSchedule(t.Context(), "1001", 1, 2)
		for call, err := range all {
			if err == nil {
				t.Errorf("no %s: %s is no error", field, call)
			}
		}
	}
}
