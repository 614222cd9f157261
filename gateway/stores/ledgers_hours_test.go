package stores_test

import (
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/storetest"
)

// A ledger that is made again has the hours of its sale before it opens: no instance sells before the start.
func TestLedgersHours_LedgerThatIsMadeAgainHasThoseOfItsSale(t *testing.T) {
	c, store := config.Default(), storetest.Ledger(t)
	now := time.Now().Truncate(time.Second)
	sale := func(starts, ends time.Duration) config.Sale {
		return config.Sale{SKUs: []string{"1001"}, Starts: now.Add(starts), Ends: now.Add(ends)}
	}
	c.Sales = []config.Sale{
		sale(6*time.Hour, 7*time.Hour), sale(-3*time.Hour, -2*time.Hour), sale(2*time.Hour, 3*time.Hour),
		sale(time.Hour, 2*time.Hour), {SKUs: []string{"1002"}, Starts: now, Ends: now.Add(time.Minute)},
	}
	ledgers := stores.NewLedgers(c, store, nil)
	for sku, want := range map[string][2]time.Time{
		"1001": {now.Add(time.Hour), now.Add(3 * time.Hour)}, // two that follow each other
		"1002": {now, now.Add(time.Minute)},
		"1003": {time.UnixMilli(0), time.UnixMilli(0)}, // it is in no sale
	} {
		if _, err := ledgers.Recreate(t.Context(), sku, 5, 0, true); err != nil {
			t.Fatal(err)
		}
		s, _, err := store.ReadStock(t.Context(), sku)
		if err != nil || s.Opens != want[0].UnixMilli() || s.Closes != want[1].UnixMilli() {
			t.Errorf("%s: %+v, %v, want %v", sku, s, err, want)
		}
	}
	c.Sales = c.Sales[1:2]
	if _, err := ledgers.Recreate(t.Context(), "1001", 5, 0, true); err != nil {
		t.Fatal(err)
	}
	if s, _, err := store.ReadStock(t.Context(), "1001"); err != nil || s.Closes != c.Sales[0].Ends.UnixMilli() {
		t.Errorf("the only sale is over: %+v, %v", s, err)
	}
}
