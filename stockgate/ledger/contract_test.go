package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

func TestContract_RetryOfAWinnerNeverHearsSoldOut(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Want(t, "the first", takeUnit(t, s, "first", "ann"), Held)
		for i := range 4 {
			testkit.Want(t, "others", takeUnit(t, s, fmt.Sprint(i), fmt.Sprint(i)), Held)
		}
		testkit.Want(t, "a loser", takeUnit(t, s, "late", "zoe"), SoldOut)
		testkit.Want(t, "the retry", takeUnit(t, s, "first", "ann"), ReplayHeld)
		testkit.Want(t, "confirm", finishOne(t, s, Confirm, "first"), Changed)
		testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", Ended))
		testkit.Want(t, "the retry", takeUnit(t, s, "first", "ann"), ReplaySold)
		testkit.Want(t, "another", takeUnit(t, s, "other", "zoe"), NotOnSale)
	})
}

func TestContract_LoserChangesNothing(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		takeUnit(t, s, "a", "ann")
		takeUnit(t, s, "b", "ann")
		before := stockIn(t, s)
		testkit.Want(t, "a third for one person", takeUnit(t, s, "c", "ann"), UserLimit)
		testkit.Want(t, "other content", takeUnit(t, s, "a", "zoe"), OtherOrder)
		codes := make([]Code, 1)
		_, err := s.Reserve(
			t.Context(),
			"1001",
			before.Epoch+1,
			1,
			2,
			[]Item{{Serial: "d", User: "zoe", Quantity: 1}},
			codes,
		)
		testkit.Check(t, err)
		testkit.Want(t, "another epoch", codes[0], StaleEpoch)
		testkit.Want(t, "stock", stockIn(t, s), before)
	})
}

func TestReserve_AfterItsReleaseIsRejected(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Want(t, "release", finishOne(t, s, Release, "a"), Changed)
		testkit.Want(t, "release again", finishOne(t, s, Release, "a"), Already)
		testkit.Want(t, "the late reserve", takeUnit(t, s, "a", "ann"), Released)
		if _, err := s.Sweep(t.Context(), "1001", 1_999, 3_000, 10); err != nil {
			t.Fatal(err)
		}
		testkit.Want(t, "before its time", takeUnit(t, s, "a", "ann"), Released)
		if _, err := s.Sweep(t.Context(), "1001", 2_000, 3_000, 10); err != nil {
			t.Fatal(err)
		}
		testkit.Want(t, "after its time", takeUnit(t, s, "a", "ann"), Held)
	})
}

func TestContract_UnitComesBackOnce(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		takeUnit(t, s, "a", "ann")
		takeUnit(t, s, "b", "ann")
		testkit.Want(t, "release", finishOne(t, s, Release, "a"), Changed)
		testkit.Want(t, "confirm of what was released", finishOne(t, s, Confirm, "a"), WasReleased)
		testkit.Want(t, "confirm", finishOne(t, s, Confirm, "b"), Changed)
		testkit.Want(t, "a plain release", finishOne(t, s, Release, "b"), WasSold)
		testkit.Want(t, "refund", finishOne(t, s, Refund, "b"), Changed)
		testkit.Want(t, "refund", finishOne(t, s, Refund, "b"), Already)
		testkit.Want(t, "release", finishOne(t, s, Release, "b"), Already)
		testkit.Want(t, "the late confirm", finishOne(t, s, Confirm, "b"), WasRefunded)
		testkit.Want(t, "free", stockIn(t, s).Free, 5)
	})
}

func TestContract_AdoptSaysWhenMoreIsSoldThanThereIs(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range 5 {
			testkit.Want(t, "adopt", finishOne(t, s, Adopt, fmt.Sprint(i)), Changed)
		}
		testkit.Want(t, "one more", finishOne(t, s, Adopt, "6th"), Oversold)
		testkit.Want(t, "again", finishOne(t, s, Adopt, "6th"), Already)
		testkit.Want(t, "free", stockIn(t, s).Free, -1)
		testkit.Want(t, "a buyer", takeUnit(t, s, "7th", "zoe"), SoldOut)
	})
}

func TestContract_FreezingRaisesTheEpochAndSettlingGoesOn(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		takeUnit(t, s, "a", "ann")
		epoch := stockIn(t, s).Epoch
		stock := testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", Frozen))
		testkit.Want(t, "epoch", stock.Epoch, epoch+1)
		testkit.Want(t, "why", stock.Why, "operator")
		testkit.Want(t, "reserve", takeUnit(t, s, "b", "ann"), NotOnSale)
		testkit.Want(t, "confirm", finishOne(t, s, Confirm, "a"), Changed)
		testkit.Want(t, "opened, why", testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", On)).Why, "")
	})
}

func TestContract_UnknownLedgerIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		codes, done := make([]Code, 2), make([]Done, 2)
		items := []Item{{Serial: "a", User: "ann", Quantity: 1}, {Serial: "b", User: "ann", Quantity: 1}}
		hint, err := s.Reserve(t.Context(), "none", 7, 1, 2, items, codes)
		testkit.Check(t, err)
		testkit.Want(t, "hint", hint, StockVersion{})
		testkit.Want(t, "codes", [2]Code(codes), [2]Code{UnknownSKU, UnknownSKU})
		for _, op := range []Op{Confirm, Release, Refund, Adopt} {
			_, err = s.Finish(t.Context(), "none", 1, 2, op, items, done)
			testkit.Check(t, err)
			testkit.Want(t, "done", [2]Done(done), [2]Done{NoLedger, NoLedger})
		}
		_, ok, err := s.ReadStock(t.Context(), "none")
		testkit.Check(t, err)
		testkit.Want(t, "a ledger", ok, false)
		if _, err := s.SetState(t.Context(), "none", On); !errors.Is(err, ErrUnknownSKU) {
			t.Fatalf("set state: %v", err)
		}
		holds, err := s.Sweep(t.Context(), "none", 1, 2, 1)
		testkit.Check(t, err)
		testkit.Want(t, "holds", len(holds), 0)
	})
}

func TestSetTotal_BelowWhatIsTakenIsRejectedWithBothNumbers(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range 3 {
			takeUnit(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		finishOne(t, s, Confirm, "0")
		before := stockIn(t, s)
		_, err := s.SetTotal(t.Context(), "1001", 2, 9)
		if err == nil || !strings.Contains(err.Error(), "2 held + 1 sold") {
			t.Fatalf("set total: %v", err)
		}
		testkit.Want(t, "stock", stockIn(t, s), before)
		testkit.Want(t, "free", testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 3, 9)).Free, 0)
	})
}

func TestStore_RejectsCallsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	one, long := []Item{{Serial: "a", User: "ann", Quantity: 1}}, strings.Repeat("x", 257)
	withUnits(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		before := stockIn(t, s)
		reserve := func(sku string, epoch, now, deadline int64, items []Item, room int) error {
			_, err := s.Reserve(ctx, sku, epoch, now, deadline, items, make([]Code, room))
			return err
		}
		finish := func(op Op, items []Item, room int) error {
			_, err := s.Finish(ctx, "1001", 1, 2, op, items, make([]Done, room))
			return err
		}
		_, badTotal := s.SetTotal(ctx, "1001", -1, 0)
		_, badLimit := s.SetTotal(ctx, "1001", 1, -2)
		_, hugeTotal := s.SetTotal(ctx, "1001", 1e15, 0)
		_, badState := s.SetState(ctx, "1001", "open")
		_, noLimit := s.Sweep(ctx, "1001", 1, 2, 0)
		_, hugeLimit := s.Sweep(ctx, "1001", 1, 2, 1001)
		_, _, noSerial := s.Find(ctx, "1001", "")
		_, _, braces := s.ReadStock(ctx, "}{")
		for what, err := range map[string]error{
			"no sku":            reserve("", 0, 1, 2, one, 1),
			"a brace":           reserve("a}b", 0, 1, 2, one, 1),
			"a long sku":        reserve(long, 0, 1, 2, one, 1),
			"a negative epoch":  reserve("1001", -1, 1, 2, one, 1),
			"a negative time":   reserve("1001", 0, 1, -2, one, 1),
			"nanoseconds":       reserve("1001", 0, 1, 1e18, one, 1),
			"no items":          reserve("1001", 0, 1, 2, nil, 1),
			"too many items":    reserve("1001", 0, 1, 2, make([]Item, 257), 257),
			"no room":           reserve("1001", 0, 1, 2, one, 0),
			"no serial":         reserve("1001", 0, 1, 2, []Item{{Serial: "", User: "ann", Quantity: 1}}, 1),
			"a long serial":     reserve("1001", 0, 1, 2, []Item{{Serial: long[:129], User: "ann", Quantity: 1}}, 1),
			"no quantity":       reserve("1001", 0, 1, 2, []Item{{Serial: "a", User: "ann", Quantity: 0}}, 1),
			"a huge quantity":   reserve("1001", 0, 1, 2, []Item{{Serial: "a", User: "ann", Quantity: 1e9 + 1}}, 1),
			"no operation":      finish("sell", one, 1),
			"finish nothing":    finish(Confirm, nil, 1),
			"finish no room":    finish(Confirm, one, 0),
			"adopt no quantity": finish(Adopt, []Item{{Serial: "a", User: "ann", Quantity: -1}}, 1),
			"a negative total":  badTotal,
			"a negative limit":  badLimit,
			"a huge total":      hugeTotal,
			"no state":          badState,
			"no bound":          noLimit,
			"a huge bound":      hugeLimit,
			"find no serial":    noSerial,
			"look at braces":    braces,
		} {
			if err == nil {
				t.Errorf("%s: accepted", what)
			}
		}
		testkit.Want(t, "stock", stockIn(t, s), before)
	})
}

func TestContract_CallThatWasGivenUpIsAnError(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Reserve(ctx, "1001", 0, 1, 2, []Item{{Serial: "a", User: "", Quantity: 1}},
			make([]Code, 1)); !errors.Is(
			err,
			context.Canceled,
		) {
			t.Fatalf("reserve: %v", err)
		}
		testkit.Want(t, "held", stockIn(t, s).Held, 0)
	})
}

// A law that no schedule touches would hold by accident.
func TestContract_SchedulesReachEveryAnswer(t *testing.T) {
	codes, done := map[Code]int{}, map[Done]int{}
	for seed := range 1_000 {
		var m model
		for _, s := range schedules().Example(seed) {
			switch s.call {
			case "reserve":
				for _, c := range m.reserve(s.epoch, s.now, s.until, s.items) {
					codes[c]++
				}
			case "total":
				if m.exists || s.limit != KeepLimit {
					m.setTotal(s.total, s.limit, 1)
				}
			case "add":
				m.add(s.total, s.id)
			case "hours":
				m.setHours(s.total, s.until)
			case "state":
				m.setState(s.state)
			case "sweep":
				m.sweep(s.now, s.until, int(s.limit))
			default:
				for _, d := range m.finish(Op(s.call), s.until, s.items) {
					done[d]++
				}
			}
		}
	}
	for _, c := range []Code{Held, ReplayHeld, ReplaySold, SoldOut,
		NotOnSale, UserLimit, OtherOrder, Released,
		Refunded, StaleEpoch, UnknownSKU} {
		if codes[c] < 100 {
			t.Errorf("code %d: %d times", c, codes[c])
		}
	}
	for _, d := range []Done{Changed, Already, WasReleased, WasRefunded, WasSold, NotFound, Oversold, NoLedger} {
		if done[d] < 50 {
			t.Errorf("done %d: %d times", d, done[d])
		}
	}
}
