package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestRedisstore_RepeatedAdditionCountsOnce(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		for range 3 {
			ledgertest.Want(
				t,
				"total",
				ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", 4, "delivery-1")).Total,
				9,
			)
		}
		ledgertest.Want(
			t,
			"another delivery",
			ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", 4, "delivery-2")).Total,
			13,
		)
		ledgertest.Want(t, "free", ledgertest.StockOf(t, s).Free, 13)
		before := ledgertest.StockOf(t, s)
		if _, err := s.Add(t.Context(), "1001", 5, "delivery-1"); !errors.Is(err, protocol.ErrOtherDelta) {
			t.Fatalf("another number by the same id: %v", err)
		}
		ledgertest.Want(t, "stock", ledgertest.StockOf(t, s), before)
		for n := range int64(3) {
			ledgertest.Want(
				t,
				"without an id",
				ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", 1, "")).Total,
				14+n,
			)
		}
	})
}

func TestRedisstore_LedgerRemembersTheLastHundredIDs(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range protocol.MaxAdditions + 1 {
			ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", i)))
		}
		total := ledgertest.StockOf(t, s).Total
		for i := 1; i <= protocol.MaxAdditions; i++ {
			ledgertest.Want(
				t,
				"remembered",
				ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", i))).Total,
				total,
			)
		}
		ledgertest.Want(
			t,
			"the oldest",
			ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", 1, fmt.Sprintf("%0128d", 0))).Total,
			total+1,
		)
	})
}

func TestRedisstore_ManyAdditionsOfOneIDCountOnce(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := s.Add(t.Context(), "1001", 7, "once"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		ledgertest.Want(t, "total", ledgertest.StockOf(t, s).Total, 12)
	})
}

func TestAdd_BelowWhatIsTakenIsRejectedWithBothNumbers(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		for i := range 3 {
			ledgertest.Take(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		ledgertest.Finish(t, s, protocol.Confirm, "0")
		before := ledgertest.StockOf(t, s)
		_, err := s.Add(t.Context(), "1001", -3, "less")
		if err == nil || !strings.Contains(err.Error(), "a total of 2 is less than 2 held + 1 sold") {
			t.Fatalf("add: %v", err)
		}
		ledgertest.Want(t, "stock", ledgertest.StockOf(t, s), before)
		ledgertest.Finish(t, s, protocol.Release, "1")
		ledgertest.Want(
			t,
			"later, by the same id",
			ledgertest.Must[protocol.Stock](t)(s.Add(t.Context(), "1001", -3, "less")).Free,
			0,
		)
	})
}

func TestRedisstore_TotalsWithoutALimitKeepIt(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		stock := ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 9, protocol.KeepLimit))
		ledgertest.Want(t, "total", stock.Total, 9)
		ledgertest.Want(t, "limit", stock.Limit, 2)
		if _, err := s.SetTotal(t.Context(), "new", 9, protocol.KeepLimit); !errors.Is(err, protocol.ErrUnknownSKU) {
			t.Fatalf("a limit that nobody named: %v", err)
		}
		_, ok, err := s.ReadStock(t.Context(), "new")
		ledgertest.Check(t, err)
		ledgertest.Want(t, "made", ok, false)
	})
}

func TestRedisstore_ChangesNeedALedgerAndSense(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		before := ledgertest.StockOf(t, s)
		if _, err := s.Add(ctx, "none", 1, ""); !errors.Is(err, protocol.ErrUnknownSKU) {
			t.Errorf("add: %v", err)
		}
		if _, err := s.SetSchedule(ctx, "none", 1, 2); !errors.Is(err, protocol.ErrUnknownSKU) {
			t.Errorf("set hours: %v", err)
		}
		for what, change := range map[string]func() (protocol.Stock, error){
			"nothing":           func() (protocol.Stock, error) { return s.Add(ctx, "1001", 0, "") },
			"16 digits":         func() (protocol.Stock, error) { return s.Add(ctx, "1001", 1e15, "") },
			"16 digits in all":  func() (protocol.Stock, error) { return s.Add(ctx, "1001", protocol.MaxNumber, "") },
			"less than nothing": func() (protocol.Stock, error) { return s.Add(ctx, "1001", -protocol.MaxNumber, "") },
			"an id with spaces": func() (protocol.Stock, error) { return s.Add(ctx, "1001", 1, "a b") },
			"a long id":         func() (protocol.Stock, error) { return s.Add(ctx, "1001", 1, strings.Repeat("x", 129)) },
			"no sku":            func() (protocol.Stock, error) { return s.Add(ctx, "", 1, "") },
			"hours backwards":   func() (protocol.Stock, error) { return s.SetSchedule(ctx, "1001", 5, 4) },
			"no hours":          func() (protocol.Stock, error) { return s.SetSchedule(ctx, "1001", 5, 5) },
			"before 1970":       func() (protocol.Stock, error) { return s.SetSchedule(ctx, "1001", -1, 0) },
			"nanoseconds":       func() (protocol.Stock, error) { return s.SetSchedule(ctx, "1001", 1e18, 0) },
		} {
			if _, err := change(); err == nil {
				t.Errorf("%s: accepted", what)
			}
		}
		ledgertest.Want(t, "stock", ledgertest.StockOf(t, s), before)
	})
}

// The hours are by the time that the caller gives, to the millisecond, and bind nobody who has won.
func TestRedisstore_SaleKeepsItsHours(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		stock := ledgertest.Must[protocol.Stock](t)(s.SetSchedule(t.Context(), "1001", 2_000, 3_000))
		ledgertest.Want(t, "opens", stock.Opens, 2_000)
		ledgertest.Want(t, "closes", stock.Closes, 3_000)
		at := func(now int64, serial string) protocol.Code {
			codes := make([]protocol.Code, 1)
			hint, err := s.Reserve(
				t.Context(),
				"1001",
				0,
				now,
				9_000,
				[]protocol.Item{{Serial: serial, User: "", Quantity: 1}},
				codes,
			)
			ledgertest.Check(t, err)
			ledgertest.Want(
				t,
				"the state and the code",
				hint.At(now) == protocol.On,
				codes[0] != protocol.NotOnSale || serial == "b",
			)
			return codes[0]
		}
		ledgertest.Want(t, "before", at(1_999, "a"), protocol.NotOnSale)
		ledgertest.Want(t, "first", at(2_000, "a"), protocol.Held)
		ledgertest.Want(t, "last", at(2_999, "b"), protocol.Held)
		ledgertest.Want(t, "after", at(3_000, "c"), protocol.NotOnSale)
		ledgertest.Want(
			t,
			"a winner's retry",
			ledgertest.Must[protocol.Stock](t)(s.SetSchedule(t.Context(), "1001", 2_000, 0)).Closes,
			0,
		)
		ledgertest.Want(t, "no end", at(1<<40, "c"), protocol.Held)
		ledgertest.Must[protocol.Stock](t)(s.SetSchedule(t.Context(), "1001", 1<<41, 0))
		codes := make([]protocol.Code, 1)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 9_000, []protocol.Item{{Serial: "b", User: "", Quantity: 1}}, codes)
		ledgertest.Check(t, err)
		ledgertest.Want(t, "a retry outside of the hours", codes[0], protocol.ReplayHeld)
		ledgertest.Want(
			t,
			"settling outside of the hours",
			ledgertest.Finish(t, s, protocol.Confirm, "a"),
			protocol.Changed,
		)
	})
}

func TestRedisstore_StateFollowsFromTheHoursOnlyWhereItIsOn(t *testing.T) {
	h := protocol.StockVersion{State: protocol.On, Opens: 10, Closes: 20}
	for now, state := range map[int64]protocol.State{0: protocol.Waiting, 9: protocol.Waiting, 10: protocol.On,
		19: protocol.On, 20: protocol.Over, 99: protocol.Over} {
		ledgertest.Want(t, fmt.Sprint(now), h.At(now), state)
	}
	h.State = protocol.Paused
	ledgertest.Want(t, "paused", h.At(5), protocol.Paused)
	ledgertest.Want(t, "always on", protocol.StockVersion{State: protocol.On}.At(5), protocol.On)
}

func TestRedisstore_LedgerWithoutHoursIsAFaultAndNotAlwaysOnSale(t *testing.T) {
	for _, field := range []string{"opens", "closes"} {
		server, r := onRedis(t)
		ledgertest.Check(t, server.Client.HDel(t.Context(), "sluice:shop:{1001}:s", field).Err())
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
