package ledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestRepeatedAdditionCountsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		for range 3 {
			want(t, "total", must[Stock](t)(s.Add(t.Context(), "1001", 4, "delivery-1")).Total, 9)
		}
		want(t, "another delivery", must[Stock](t)(s.Add(t.Context(), "1001", 4, "delivery-2")).Total, 13)
		want(t, "free", stockOf1001(t, s).Free, 13)
		before := stockOf1001(t, s)
		if _, err := s.Add(t.Context(), "1001", 5, "delivery-1"); !errors.Is(err, ErrOtherDelta) {
			t.Fatalf("another number by the same id: %v", err)
		}
		want(t, "stock", stockOf1001(t, s), before)
		for n := range int64(3) {
			want(t, "without an id", must[Stock](t)(s.Add(t.Context(), "1001", 1, "")).Total, 14+n)
		}
	})
}

func TestLedgerRemembersTheLastHundredIDs(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		for i := range maxAdded + 1 {
			must[Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", i)))
		}
		total := stockOf1001(t, s).Total
		for i := 1; i <= maxAdded; i++ {
			want(t, "remembered", must[Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", i))).Total, total)
		}
		want(t, "the oldest", must[Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", 0))).Total, total+1)
	})
}

func TestManyAdditionsOfOneIDCountOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := s.Add(t.Context(), "1001", 7, "once"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		want(t, "total", stockOf1001(t, s).Total, 12)
	})
}

func TestSubtractionBelowWhatIsTakenIsRefusedWithBothNumbers(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		for i := range 3 {
			take(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		do(t, s, Confirm, "0")
		before := stockOf1001(t, s)
		_, err := s.Add(t.Context(), "1001", -3, "less")
		if err == nil || !strings.Contains(err.Error(), "a total of 2 is less than 2 held + 1 sold") {
			t.Fatalf("add: %v", err)
		}
		want(t, "stock", stockOf1001(t, s), before)
		do(t, s, Release, "1")
		want(t, "later, by the same id", must[Stock](t)(s.Add(t.Context(), "1001", -3, "less")).Free, 0)
	})
}

func TestTotalsWithoutALimitKeepIt(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		stock := must[Stock](t)(s.SetTotal(t.Context(), "1001", 9, KeepLimit))
		want(t, "total", stock.Total, 9)
		want(t, "limit", stock.Limit, 2)
		if _, err := s.SetTotal(t.Context(), "new", 9, KeepLimit); !errors.Is(err, ErrUnknownSKU) {
			t.Fatalf("a limit that nobody named: %v", err)
		}
		_, ok, err := s.Look(t.Context(), "new")
		check(t, err)
		want(t, "made", ok, false)
	})
}

func TestChangesNeedALedgerAndSense(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		before := stockOf1001(t, s)
		if _, err := s.Add(ctx, "none", 1, ""); !errors.Is(err, ErrUnknownSKU) {
			t.Errorf("add: %v", err)
		}
		if _, err := s.SetHours(ctx, "none", 1, 2); !errors.Is(err, ErrUnknownSKU) {
			t.Errorf("set hours: %v", err)
		}
		for what, change := range map[string]func() (Stock, error){
			"nothing":           func() (Stock, error) { return s.Add(ctx, "1001", 0, "") },
			"16 digits":         func() (Stock, error) { return s.Add(ctx, "1001", 1e15, "") },
			"16 digits in all":  func() (Stock, error) { return s.Add(ctx, "1001", maxNumber, "") },
			"less than nothing": func() (Stock, error) { return s.Add(ctx, "1001", -maxNumber, "") },
			"an id with spaces": func() (Stock, error) { return s.Add(ctx, "1001", 1, "a b") },
			"a long id":         func() (Stock, error) { return s.Add(ctx, "1001", 1, strings.Repeat("x", 129)) },
			"no sku":            func() (Stock, error) { return s.Add(ctx, "", 1, "") },
			"hours backwards":   func() (Stock, error) { return s.SetHours(ctx, "1001", 5, 4) },
			"no hours":          func() (Stock, error) { return s.SetHours(ctx, "1001", 5, 5) },
			"before 1970":       func() (Stock, error) { return s.SetHours(ctx, "1001", -1, 0) },
			"nanoseconds":       func() (Stock, error) { return s.SetHours(ctx, "1001", 1e18, 0) },
		} {
			if _, err := change(); err == nil {
				t.Errorf("%s: accepted", what)
			}
		}
		want(t, "stock", stockOf1001(t, s), before)
	})
}

// The hours are by the time that the caller gives, to the millisecond, and bind nobody who has won.
func TestSaleKeepsItsHours(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		stock := must[Stock](t)(s.SetHours(t.Context(), "1001", 2_000, 3_000))
		want(t, "opens", stock.Opens, 2_000)
		want(t, "closes", stock.Closes, 3_000)
		at := func(now int64, serial string) Code {
			codes := make([]Code, 1)
			hint, err := s.Reserve(t.Context(), "1001", 0, now, 9_000, []Item{{serial, "", 1}}, codes)
			check(t, err)
			want(t, "the state and the code", hint.At(now) == On, codes[0] != NotOnSale || serial == "b")
			return codes[0]
		}
		want(t, "before", at(1_999, "a"), NotOnSale)
		want(t, "first", at(2_000, "a"), Held)
		want(t, "last", at(2_999, "b"), Held)
		want(t, "after", at(3_000, "c"), NotOnSale)
		want(t, "a winner's retry", must[Stock](t)(s.SetHours(t.Context(), "1001", 2_000, 0)).Closes, 0)
		want(t, "no end", at(1<<40, "c"), Held)
		must[Stock](t)(s.SetHours(t.Context(), "1001", 1<<41, 0))
		codes := make([]Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 9_000, []Item{{"b", "", 1}}, codes)
		check(t, err)
		want(t, "a retry outside of the hours", codes[0], ReplayHeld)
		want(t, "settling outside of the hours", do(t, s, Confirm, "a"), Changed)
	})
}

func TestStateFollowsFromTheHoursOnlyWhereItIsOn(t *testing.T) {
	h := Hint{State: On, Opens: 10, Closes: 20}
	for now, state := range map[int64]State{0: Waiting, 9: Waiting, 10: On, 19: On, 20: Over, 99: Over} {
		want(t, fmt.Sprint(now), h.At(now), state)
	}
	h.State = Paused
	want(t, "paused", h.At(5), Paused)
	want(t, "always on", Hint{State: On}.At(5), On)
}

func TestTakenIsTheVersionOfTheLastHoldOrAdoption(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		want(t, "at first", stockOf1001(t, s).Taken, 1)
		take(t, s, "a", "ann")
		taken := stockOf1001(t, s).Ver
		want(t, "after a hold", stockOf1001(t, s).Taken, taken)
		take(t, s, "a", "ann")
		do(t, s, Confirm, "a")
		do(t, s, Refund, "a")
		must[Stock](t)(s.SetState(t.Context(), "1001", Frozen))
		want(t, "later", stockOf1001(t, s).Taken, taken)
		do(t, s, Adopt, "b")
		want(t, "after an adoption", stockOf1001(t, s).Taken, stockOf1001(t, s).Ver)
	})
}

func TestLedgerWithoutHoursIsAFaultAndNotAlwaysOnSale(t *testing.T) {
	for _, field := range []string{"opens", "closes", "taken"} {
		server, r := onRedis(t)
		check(t, server.Client.HDel(t.Context(), "sluice:{1001}:s", field).Err())
		all := tries(r)
		_, all["add"] = r.Add(t.Context(), "1001", 1, "")
		_, all["set hours"] = r.SetHours(t.Context(), "1001", 1, 2)
		for call, err := range all {
			if err == nil {
				t.Errorf("no %s: %s is no error", field, call)
			}
		}
	}
}
