package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// take reserves one unit for a user until 1,000 and returns the code.
func take(t testing.TB, s Store, serial, user string) Code {
	t.Helper()
	codes := make([]Code, 1)
	_, err := s.Reserve(context.Background(), "1001", 0, 1, 1_000, []Item{{serial, user, 1}}, codes)
	check(t, err)
	return codes[0]
}

// do decides one serial at the time 1; tombstones stay until 2,000.
func do(t testing.TB, s Store, op Op, serial string) Done {
	t.Helper()
	done := make([]Done, 1)
	_, err := s.Finish(context.Background(), "1001", 1, 2_000, op, []Item{{serial, "ann", 1}}, done)
	check(t, err)
	return done[0]
}

func stockOf1001(t testing.TB, s Store) Stock {
	t.Helper()
	stock, ok, err := s.Look(context.Background(), "1001")
	check(t, err)
	if !ok {
		t.Fatal("no ledger")
	}
	return stock
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func TestRetryOfAWinnerNeverHearsSoldOut(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		want(t, "the first", take(t, s, "first", "ann"), Held)
		for i := range 4 {
			want(t, "others", take(t, s, fmt.Sprint(i), fmt.Sprint(i)), Held)
		}
		want(t, "a loser", take(t, s, "late", "zoe"), SoldOut)
		want(t, "the retry", take(t, s, "first", "ann"), ReplayHeld)
		want(t, "confirm", do(t, s, Confirm, "first"), Changed)
		must[Stock](t)(s.SetState(t.Context(), "1001", Ended))
		want(t, "the retry", take(t, s, "first", "ann"), ReplaySold)
		want(t, "another", take(t, s, "other", "zoe"), NotOnSale)
	})
}

func TestLoserChangesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		take(t, s, "a", "ann")
		take(t, s, "b", "ann")
		before := stockOf1001(t, s)
		want(t, "a third for one person", take(t, s, "c", "ann"), UserLimit)
		want(t, "other content", take(t, s, "a", "zoe"), OtherOrder)
		codes := make([]Code, 1)
		_, err := s.Reserve(t.Context(), "1001", before.Epoch+1, 1, 2, []Item{{"d", "zoe", 1}}, codes)
		check(t, err)
		want(t, "another epoch", codes[0], StaleEpoch)
		want(t, "stock", stockOf1001(t, s), before)
	})
}

func TestReleaseThatComesFirstRefusesTheReserve(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		want(t, "release", do(t, s, Release, "a"), Changed)
		want(t, "release again", do(t, s, Release, "a"), Already)
		want(t, "the late reserve", take(t, s, "a", "ann"), Released)
		if _, err := s.Sweep(t.Context(), "1001", 1_999, 3_000, 10); err != nil {
			t.Fatal(err)
		}
		want(t, "before its time", take(t, s, "a", "ann"), Released)
		if _, err := s.Sweep(t.Context(), "1001", 2_000, 3_000, 10); err != nil {
			t.Fatal(err)
		}
		want(t, "after its time", take(t, s, "a", "ann"), Held)
	})
}

func TestUnitComesBackOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		take(t, s, "a", "ann")
		take(t, s, "b", "ann")
		want(t, "release", do(t, s, Release, "a"), Changed)
		want(t, "confirm of what was released", do(t, s, Confirm, "a"), WasReleased)
		want(t, "confirm", do(t, s, Confirm, "b"), Changed)
		want(t, "a plain release", do(t, s, Release, "b"), WasSold)
		want(t, "refund", do(t, s, Refund, "b"), Changed)
		want(t, "refund", do(t, s, Refund, "b"), Already)
		want(t, "release", do(t, s, Release, "b"), Already)
		want(t, "free", stockOf1001(t, s).Free, 5)
	})
}

func TestAdoptSaysWhenMoreIsSoldThanThereIs(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		for i := range 5 {
			want(t, "adopt", do(t, s, Adopt, fmt.Sprint(i)), Changed)
		}
		want(t, "one more", do(t, s, Adopt, "6th"), OverTotal)
		want(t, "again", do(t, s, Adopt, "6th"), Already)
		want(t, "free", stockOf1001(t, s).Free, -1)
		want(t, "a buyer", take(t, s, "7th", "zoe"), SoldOut)
	})
}

func TestFreezingRaisesTheEpochAndSettlingGoesOn(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		take(t, s, "a", "ann")
		epoch := stockOf1001(t, s).Epoch
		stock := must[Stock](t)(s.SetState(t.Context(), "1001", Frozen))
		want(t, "epoch", stock.Epoch, epoch+1)
		want(t, "why", stock.Why, "operator")
		want(t, "reserve", take(t, s, "b", "ann"), NotOnSale)
		want(t, "confirm", do(t, s, Confirm, "a"), Changed)
		want(t, "opened, why", must[Stock](t)(s.SetState(t.Context(), "1001", On)).Why, "")
	})
}

func TestUnknownLedgerIsNotAnEmptyOne(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		codes, done := make([]Code, 2), make([]Done, 2)
		items := []Item{{"a", "ann", 1}, {"b", "ann", 1}}
		hint, err := s.Reserve(t.Context(), "none", 7, 1, 2, items, codes)
		check(t, err)
		want(t, "hint", hint, Hint{})
		want(t, "codes", [2]Code(codes), [2]Code{UnknownSKU, UnknownSKU})
		for _, op := range []Op{Confirm, Release, Refund, Adopt} {
			_, err = s.Finish(t.Context(), "none", 1, 2, op, items, done)
			check(t, err)
			want(t, "done", [2]Done(done), [2]Done{NoLedger, NoLedger})
		}
		_, ok, err := s.Look(t.Context(), "none")
		check(t, err)
		want(t, "a ledger", ok, false)
		if _, err := s.SetState(t.Context(), "none", On); !errors.Is(err, ErrUnknownSKU) {
			t.Fatalf("set state: %v", err)
		}
		holds, err := s.Sweep(t.Context(), "none", 1, 2, 1)
		check(t, err)
		want(t, "holds", len(holds), 0)
	})
}

func TestTotalBelowWhatIsTakenIsRefusedWithBothNumbers(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		for i := range 3 {
			take(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		do(t, s, Confirm, "0")
		before := stockOf1001(t, s)
		_, err := s.SetTotal(t.Context(), "1001", 2, 9)
		if err == nil || !strings.Contains(err.Error(), "2 held + 1 sold") {
			t.Fatalf("set total: %v", err)
		}
		want(t, "stock", stockOf1001(t, s), before)
		want(t, "free", must[Stock](t)(s.SetTotal(t.Context(), "1001", 3, 9)).Free, 0)
	})
}

func TestCrowdGetsWhatThereIs(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		must[Stock](t)(s.SetTotal(t.Context(), "1001", 50, 1))
		var won atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 10 {
					items := make([]Item, 16)
					for k := range items {
						who := fmt.Sprint(i, " ", k, " ", g%4) // each of 640 comes twice
						items[k] = Item{who, who, 1}
					}
					codes := make([]Code, len(items))
					if _, err := s.Reserve(context.Background(), "1001", 0, 1, 2, items, codes); err != nil {
						t.Error(err)
					}
					for _, c := range codes {
						if c == Held {
							won.Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		want(t, "winners", won.Load(), 50)
		want(t, "held", stockOf1001(t, s).Held, 50)
	})
}

func TestManyReleasesOfOneSerialGiveOneUnit(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		take(t, s, "a", "ann")
		var changed atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				done := make([]Done, 1)
				if _, err := s.Finish(context.Background(), "1001", 1, 2, Release, []Item{{Serial: "a"}}, done); err != nil {
					t.Error(err)
				}
				if done[0] == Changed {
					changed.Add(1)
				}
			})
		}
		wg.Wait()
		want(t, "releases", changed.Load(), 1)
		want(t, "free", stockOf1001(t, s).Free, 5)
	})
}

func TestCallThatCannotBeMeantIsRefused(t *testing.T) {
	one, long := []Item{{"a", "ann", 1}}, strings.Repeat("x", 257)
	eachStore(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		before := stockOf1001(t, s)
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
		_, _, braces := s.Look(ctx, "}{")
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
			"no serial":         reserve("1001", 0, 1, 2, []Item{{"", "ann", 1}}, 1),
			"a long serial":     reserve("1001", 0, 1, 2, []Item{{long[:129], "ann", 1}}, 1),
			"no quantity":       reserve("1001", 0, 1, 2, []Item{{"a", "ann", 0}}, 1),
			"a huge quantity":   reserve("1001", 0, 1, 2, []Item{{"a", "ann", 1e9 + 1}}, 1),
			"no operation":      finish("sell", one, 1),
			"finish nothing":    finish(Confirm, nil, 1),
			"finish no room":    finish(Confirm, one, 0),
			"adopt no quantity": finish(Adopt, []Item{{"a", "ann", -1}}, 1),
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
		want(t, "stock", stockOf1001(t, s), before)
	})
}

func TestCallThatWasGivenUpIsAnError(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Reserve(ctx, "1001", 0, 1, 2, []Item{{"a", "", 1}}, make([]Code, 1)); !errors.Is(err, context.Canceled) {
			t.Fatalf("reserve: %v", err)
		}
		want(t, "held", stockOf1001(t, s).Held, 0)
	})
}

// A law that no schedule touches would hold by accident.
func TestSchedulesReachEveryAnswer(t *testing.T) {
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
	for _, c := range []Code{Held, ReplayHeld, ReplaySold, SoldOut, NotOnSale, UserLimit, OtherOrder, Released, StaleEpoch, UnknownSKU} {
		if codes[c] < 100 {
			t.Errorf("code %d: %d times", c, codes[c])
		}
	}
	for _, d := range []Done{Changed, Already, WasReleased, WasSold, NotFound, OverTotal, NoLedger} {
		if done[d] < 100 {
			t.Errorf("done %d: %d times", d, done[d])
		}
	}
}
