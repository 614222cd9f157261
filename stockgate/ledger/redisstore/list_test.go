package redisstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestRedisstore_EverySKUWithALedgerIsListedInOrder(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		want := []string{"1001"}
		for i := range 1_200 {
			sku := fmt.Sprintf("sku %d", i)
			ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), sku, 1, 0))
			want = append(want, sku)
		}
		slices.Sort(want)
		for _, limit := range []int{1, 500, 501, 1_201, protocol.MaxListed} {
			got := ledgertest.Must[[]string](t)(s.SKUs(t.Context(), limit))
			if !slices.Equal(got, want[:min(limit, len(want))]) {
				t.Errorf("the first %d: %d, %.80v", limit, len(got), got)
			}
		}
		for _, limit := range []int{0, -1, protocol.MaxListed + 1} {
			if _, err := s.SKUs(t.Context(), limit); err == nil {
				t.Errorf("limit %d: accepted", limit)
			}
		}
	})
}

func TestRedisstore_LedgerThatIsGoneIsNotListed(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1000", 1, 0))
	ledgertest.Check(t, server.Client.Del(t.Context(), "sluice:shop:{1000}:s").Err())
	got := ledgertest.Must[[]string](t)(r.SKUs(t.Context(), 1))
	ledgertest.Want(t, "skus", fmt.Sprint(got), "[1001]")
}

// What makes a ledger and dies has told its name before.
func TestRedisstore_NameIsToldBeforeTheLedgerIsMade(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Check(t, server.Client.Do(t.Context(), "set", "sluice:shop:skus", "not a list of names").Err())
	if _, err := r.SetTotal(t.Context(), "new", 1, 0); err == nil {
		t.Fatal("a ledger that nobody finds was made")
	}
	ledgertest.Check(t, server.Client.Del(t.Context(), "sluice:shop:skus").Err())
	_, ok, err := r.ReadStock(t.Context(), "new")
	ledgertest.Check(t, err)
	ledgertest.Want(t, "made", ok, false)
}

func TestRedisstore_RecordsAreAllShown(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 5_000, 0))
		wanted := map[string]protocol.Status{}
		for batch := range 12 {
			items, codes, done := make([]protocol.Item, 200), make([]protocol.Code, 200), make([]protocol.Done, 200)
			for i := range items {
				items[i] = protocol.Item{Serial: fmt.Sprint(batch, "-", i), User: "ann", Quantity: 1}
				wanted[items[i].Serial] = map[int]protocol.Status{0: 'C', 1: 'R', 2: 'H'}[batch%3]
			}
			_, err := s.Reserve(t.Context(), "1001", 0, 1, 9, items, codes)
			ledgertest.Check(t, err)
			if batch%3 < 2 {
				op := []protocol.Op{protocol.Confirm, protocol.Refund}[batch%3]
				_, err = s.Finish(t.Context(), "1001", 1, 9, op, items, done)
				ledgertest.Check(t, err)
			}
		}
		var others sync.WaitGroup
		others.Go(func() { // comes and goes meanwhile
			for i := range 300 {
				serial := fmt.Sprint("other ", i)
				ledgertest.Take(t, s, serial, "zoe")
				ledgertest.Finish(t, s, protocol.Release, serial)
			}
		})
		got := map[string]protocol.Status{}
		ledgertest.Check(t, s.Records(t.Context(), "1001", func(r protocol.Record) bool {
			if r.User == "ann" {
				got[r.Serial] = r.Status
			}
			return true
		}))
		others.Wait()
		ledgertest.Check(t, ledgertest.Differ("records", got, wanted))
		shown := 0
		ledgertest.Check(t, s.Records(t.Context(), "1001", func(protocol.Record) bool { shown++; return shown < 3 }))
		ledgertest.Want(t, "shown until it was enough", shown, 3)
		ledgertest.Check(t, s.Records(t.Context(), "none",
			func(protocol.Record) bool { t.Error("a record of nothing"); return true }))
		if s.Records(t.Context(), "{", func(protocol.Record) bool { return true }) == nil {
			t.Error("braces are accepted")
		}
	})
}

func TestRedisstore_BrokenRecordIsNotShown(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:r", "a", "rubbish").Err())
	if err := r.Records(t.Context(), "1001", func(protocol.Record) bool { return true }); err == nil {
		t.Error("shown")
	}
}
