package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestContract_RetryOfAWinnerNeverHearsSoldOut(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Want(t, "the first", ledgertest.Take(t, s, "first", "ann"), protocol.Held)
		for i := range 4 {
			ledgertest.Want(t, "others", ledgertest.Take(t, s, fmt.Sprint(i), fmt.Sprint(i)), protocol.Held)
		}
		ledgertest.Want(t, "a loser", ledgertest.Take(t, s, "late", "zoe"), protocol.SoldOut)
		ledgertest.Want(t, "the retry", ledgertest.Take(t, s, "first", "ann"), protocol.ReplayHeld)
		ledgertest.Want(t, "confirm", ledgertest.Finish(t, s, protocol.Confirm, "first"), protocol.Changed)
		ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.Ended))
		ledgertest.Want(t, "the retry", ledgertest.Take(t, s, "first", "ann"), protocol.ReplaySold)
		ledgertest.Want(t, "another", ledgertest.Take(t, s, "other", "zoe"), protocol.NotOnSale)
	})
}

func TestContract_LoserChangesNothing(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Take(t, s, "a", "ann")
		ledgertest.Take(t, s, "b", "ann")
		before := ledgertest.StockOf(t, s)
		ledgertest.Want(t, "a third for one person", ledgertest.Take(t, s, "c", "ann"), protocol.UserLimit)
		ledgertest.Want(t, "other content", ledgertest.Take(t, s, "a", "zoe"), protocol.OtherOrder)
		codes := make([]protocol.Code, 1)
		_, err := s.Reserve(
			t.Context(),
			"1001",
			before.Epoch+1,
			1,
			2,
			[]protocol.Item{{Serial: "d", User: "zoe", Quantity: 1}},
			codes,
		)
		ledgertest.Check(t, err)
		ledgertest.Want(t, "another epoch", codes[0], protocol.StaleEpoch)
		ledgertest.Want(t, "stock", ledgertest.StockOf(t, s), before)
	})
}

func TestReserve_AfterItsReleaseIsRejected(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Want(t, "release", ledgertest.Finish(t, s, protocol.Release, "a"), protocol.Changed)
		ledgertest.Want(t, "release again", ledgertest.Finish(t, s, protocol.Release, "a"), protocol.Already)
		ledgertest.Want(t, "the late reserve", ledgertest.Take(t, s, "a", "ann"), protocol.Released)
		if _, err := s.Sweep(t.Context(), "1001", 1_999, 3_000, 10); err != nil {
			t.Fatal(err)
		}
		ledgertest.Want(t, "before its time", ledgertest.Take(t, s, "a", "ann"), protocol.Released)
		if _, err := s.Sweep(t.Context(), "1001", 2_000, 3_000, 10); err != nil {
			t.Fatal(err)
		}
		ledgertest.Want(t, "after its time", ledgertest.Take(t, s, "a", "ann"), protocol.Held)
	})
}

func TestContract_UnitComesBackOnce(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Take(t, s, "a", "ann")
		ledgertest.Take(t, s, "b", "ann")
		ledgertest.Want(t, "release", ledgertest.Finish(t, s, protocol.Release, "a"), protocol.Changed)
		ledgertest.Want(
			t,
			"confirm of what was released",
			ledgertest.Finish(t, s, protocol.Confirm, "a"),
			protocol.WasReleased,
		)
		ledgertest.Want(t, "confirm", ledgertest.Finish(t, s, protocol.Confirm, "b"), protocol.Changed)
		ledgertest.Want(t, "a plain release", ledgertest.Finish(t, s, protocol.Release, "b"), protocol.WasSold)
		ledgertest.Want(t, "refund", ledgertest.Finish(t, s, protocol.Refund, "b"), protocol.Changed)
		ledgertest.Want(t, "refund", ledgertest.Finish(t, s, protocol.Refund, "b"), protocol.Already)
		ledgertest.Want(t, "release", ledgertest.Finish(t, s, protocol.Release, "b"), protocol.Already)
		ledgertest.Want(t, "free", ledgertest.StockOf(t, s).Free, 5)
	})
}

func TestContract_AdoptSaysWhenMoreIsSoldThanThereIs(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range 5 {
			ledgertest.Want(t, "adopt", ledgertest.Finish(t, s, protocol.Adopt, fmt.Sprint(i)), protocol.Changed)
		}
		ledgertest.Want(t, "one more", ledgertest.Finish(t, s, protocol.Adopt, "6th"), protocol.Oversold)
		ledgertest.Want(t, "again", ledgertest.Finish(t, s, protocol.Adopt, "6th"), protocol.Already)
		ledgertest.Want(t, "free", ledgertest.StockOf(t, s).Free, -1)
		ledgertest.Want(t, "a buyer", ledgertest.Take(t, s, "7th", "zoe"), protocol.SoldOut)
	})
}

func TestContract_FreezingRaisesTheEpochAndSettlingGoesOn(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Take(t, s, "a", "ann")
		epoch := ledgertest.StockOf(t, s).Epoch
		stock := ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.Frozen))
		ledgertest.Want(t, "epoch", stock.Epoch, epoch+1)
		ledgertest.Want(t, "why", stock.Why, "operator")
		ledgertest.Want(t, "reserve", ledgertest.Take(t, s, "b", "ann"), protocol.NotOnSale)
		ledgertest.Want(t, "confirm", ledgertest.Finish(t, s, protocol.Confirm, "a"), protocol.Changed)
		ledgertest.Want(
			t,
			"opened, why",
			ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.On)).Why,
			"",
		)
	})
}

func TestContract_UnknownLedgerIsNotAnEmptyOne(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		codes, done := make([]protocol.Code, 2), make([]protocol.Done, 2)
		items := []protocol.Item{{Serial: "a", User: "ann", Quantity: 1}, {Serial: "b", User: "ann", Quantity: 1}}
		hint, err := s.Reserve(t.Context(), "none", 7, 1, 2, items, codes)
		ledgertest.Check(t, err)
		ledgertest.Want(t, "hint", hint, protocol.StockVersion{})
		ledgertest.Want(t, "codes", [2]protocol.Code(codes), [2]protocol.Code{protocol.UnknownSKU, protocol.UnknownSKU})
		for _, op := range []protocol.Op{protocol.Confirm, protocol.Release, protocol.Refund, protocol.Adopt} {
			_, err = s.Finish(t.Context(), "none", 1, 2, op, items, done)
			ledgertest.Check(t, err)
			ledgertest.Want(t, "done", [2]protocol.Done(done), [2]protocol.Done{protocol.NoLedger, protocol.NoLedger})
		}
		_, ok, err := s.ReadStock(t.Context(), "none")
		ledgertest.Check(t, err)
		ledgertest.Want(t, "a ledger", ok, false)
		if _, err := s.SetState(t.Context(), "none", protocol.On); !errors.Is(err, protocol.ErrUnknownSKU) {
			t.Fatalf("set state: %v", err)
		}
		holds, err := s.Sweep(t.Context(), "none", 1, 2, 1)
		ledgertest.Check(t, err)
		ledgertest.Want(t, "holds", len(holds), 0)
	})
}

func TestSetTotal_BelowWhatIsTakenIsRejectedWithBothNumbers(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range 3 {
			ledgertest.Take(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		ledgertest.Finish(t, s, protocol.Confirm, "0")
		before := ledgertest.StockOf(t, s)
		_, err := s.SetTotal(t.Context(), "1001", 2, 9)
		if err == nil || !strings.Contains(err.Error(), "2 held + 1 sold") {
			t.Fatalf("set total: %v", err)
		}
		ledgertest.Want(t, "stock", ledgertest.StockOf(t, s), before)
		ledgertest.Want(t, "free", ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 3, 9)).Free, 0)
	})
}

func TestContract_CrowdGetsWhatThereIs(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 50, 1))
		var won atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 10 {
					items := make([]protocol.Item, 16)
					for k := range items {
						who := fmt.Sprint(i, " ", k, " ", g%4) // each of 640 comes twice
						items[k] = protocol.Item{Serial: who, User: who, Quantity: 1}
					}
					codes := make([]protocol.Code, len(items))
					if _, err := s.Reserve(context.Background(), "1001", 0, 1, 2, items, codes); err != nil {
						t.Error(err)
					}
					for _, c := range codes {
						if c == protocol.Held {
							won.Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		ledgertest.Want(t, "winners", won.Load(), 50)
		ledgertest.Want(t, "held", ledgertest.StockOf(t, s).Held, 50)
	})
}

func TestContract_ManyReleasesOfOneSerialGiveOneUnit(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Take(t, s, "a", "ann")
		var changed atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				done := make([]protocol.Done, 1)
				if _, err := s.Finish(context.Background(), "1001", 1, 2, protocol.Release, []protocol.Item{{Serial: "a"}},
					done); err != nil {
					t.Error(err)
				}
				if done[0] == protocol.Changed {
					changed.Add(1)
				}
			})
		}
		wg.Wait()
		ledgertest.Want(t, "releases", changed.Load(), 1)
		ledgertest.Want(t, "free", ledgertest.StockOf(t, s).Free, 5)
	})
}

func TestStore_RejectsCallsThatCannotBeMeant(t *testing.T) {
	one, long := []protocol.Item{{Serial: "a", User: "ann", Quantity: 1}}, strings.Repeat("x", 257)
	withUnits(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		before := ledgertest.StockOf(t, s)
		reserve := func(sku string, epoch, now, deadline int64, items []protocol.Item, room int) error {
			_, err := s.Reserve(ctx, sku, epoch, now, deadline, items, make([]protocol.Code, room))
			return err
		}
		finish := func(op protocol.Op, items []protocol.Item, room int) error {
			_, err := s.Finish(ctx, "1001", 1, 2, op, items, make([]protocol.Done, room))
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
			"too many items":    reserve("1001", 0, 1, 2, make([]protocol.Item, 257), 257),
			"no room":           reserve("1001", 0, 1, 2, one, 0),
			"no serial":         reserve("1001", 0, 1, 2, []protocol.Item{{Serial: "", User: "ann", Quantity: 1}}, 1),
			"a long serial":     reserve("1001", 0, 1, 2, []protocol.Item{{Serial: long[:129], User: "ann", Quantity: 1}}, 1),
			"no quantity":       reserve("1001", 0, 1, 2, []protocol.Item{{Serial: "a", User: "ann", Quantity: 0}}, 1),
			"a huge quantity":   reserve("1001", 0, 1, 2, []protocol.Item{{Serial: "a", User: "ann", Quantity: 1e9 + 1}}, 1),
			"no operation":      finish("sell", one, 1),
			"finish nothing":    finish(protocol.Confirm, nil, 1),
			"finish no room":    finish(protocol.Confirm, one, 0),
			"adopt no quantity": finish(protocol.Adopt, []protocol.Item{{Serial: "a", User: "ann", Quantity: -1}}, 1),
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
		ledgertest.Want(t, "stock", ledgertest.StockOf(t, s), before)
	})
}

func TestContract_CallThatWasGivenUpIsAnError(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Reserve(ctx, "1001", 0, 1, 2, []protocol.Item{{Serial: "a", User: "", Quantity: 1}},
			make([]protocol.Code, 1)); !errors.Is(
			err,
			context.Canceled,
		) {
			t.Fatalf("reserve: %v", err)
		}
		ledgertest.Want(t, "held", ledgertest.StockOf(t, s).Held, 0)
	})
}

// A law that no schedule touches would hold by accident.
func TestContract_SchedulesReachEveryAnswer(t *testing.T) {
	codes, done := map[protocol.Code]int{}, map[protocol.Done]int{}
	for seed := range 1_000 {
		var m model
		for _, s := range schedules().Example(seed) {
			switch s.call {
			case "reserve":
				for _, c := range m.reserve(s.epoch, s.now, s.until, s.items) {
					codes[c]++
				}
			case "total":
				if m.exists || s.limit != protocol.KeepLimit {
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
				for _, d := range m.finish(protocol.Op(s.call), s.until, s.items) {
					done[d]++
				}
			}
		}
	}
	for _, c := range []protocol.Code{protocol.Held, protocol.ReplayHeld, protocol.ReplaySold, protocol.SoldOut,
		protocol.NotOnSale, protocol.UserLimit, protocol.OtherOrder, protocol.Released,
		protocol.Refunded, protocol.StaleEpoch, protocol.UnknownSKU} {
		if codes[c] < 100 {
			t.Errorf("code %d: %d times", c, codes[c])
		}
	}
	for _, d := range []protocol.Done{protocol.Changed, protocol.Already, protocol.WasReleased, protocol.WasSold,
		protocol.NotFound, protocol.Oversold, protocol.NoLedger} {
		if done[d] < 100 {
			t.Errorf("done %d: %d times", d, done[d])
		}
	}
}
