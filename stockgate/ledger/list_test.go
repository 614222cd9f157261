package ledger

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

func TestEverySKUWithALedgerIsListedInOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		want := []string{"1001"}
		for i := range 1_200 {
			sku := fmt.Sprintf("sku %d", i)
			must[Stock](t)(s.SetTotal(t.Context(), sku, 1, 0))
			want = append(want, sku)
		}
		slices.Sort(want)
		for _, limit := range []int{1, 500, 501, 1_201, maxSKUs} {
			got := must[[]string](t)(s.SKUs(t.Context(), limit))
			if !slices.Equal(got, want[:min(limit, len(want))]) {
				t.Errorf("the first %d: %d, %.80v", limit, len(got), got)
			}
		}
		for _, limit := range []int{0, -1, maxSKUs + 1} {
			if _, err := s.SKUs(t.Context(), limit); err == nil {
				t.Errorf("limit %d: accepted", limit)
			}
		}
	})
}

func TestLedgerThatIsGoneIsNotListed(t *testing.T) {
	server, r := onRedis(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1000", 1, 0))
	check(t, server.Client.Del(t.Context(), "sluice:{1000}:s").Err())
	got := must[[]string](t)(r.SKUs(t.Context(), 1))
	want(t, "skus", fmt.Sprint(got), "[1001]")
}

// What makes a ledger and dies has told its name before.
func TestNameIsToldBeforeTheLedgerIsMade(t *testing.T) {
	server, r := onRedis(t)
	check(t, server.Client.Do(t.Context(), "set", registry, "not a list of names").Err())
	if _, err := r.SetTotal(t.Context(), "new", 1, 0); err == nil {
		t.Fatal("a ledger that nobody finds was made")
	}
	_, ok, err := r.Look(t.Context(), "new")
	check(t, err)
	want(t, "made", ok, false)
}

func TestRecordsAreAllShown(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		must[Stock](t)(s.SetTotal(t.Context(), "1001", 5_000, 0))
		wanted := map[string]byte{}
		for batch := range 12 {
			items, codes, done := make([]Item, 200), make([]Code, 200), make([]Done, 200)
			for i := range items {
				items[i] = Item{fmt.Sprint(batch, "-", i), "ann", 1}
				wanted[items[i].Serial] = map[int]byte{0: 'C', 1: 'X', 2: 'H'}[batch%3]
			}
			_, err := s.Reserve(t.Context(), "1001", 0, 1, 9, items, codes)
			check(t, err)
			if batch%3 < 2 {
				_, err = s.Finish(t.Context(), "1001", 1, 9, []Op{Confirm, Refund}[batch%3], items, done)
				check(t, err)
			}
		}
		var others sync.WaitGroup
		others.Go(func() { // comes and goes meanwhile
			for i := range 300 {
				serial := fmt.Sprint("other ", i)
				take(t, s, serial, "zoe")
				do(t, s, Release, serial)
			}
		})
		got := map[string]byte{}
		check(t, s.Records(t.Context(), "1001", func(r Record) bool {
			if r.User == "ann" {
				got[r.Serial] = r.Status
			}
			return true
		}))
		others.Wait()
		check(t, differ("records", got, wanted))
		shown := 0
		check(t, s.Records(t.Context(), "1001", func(Record) bool { shown++; return shown < 3 }))
		want(t, "shown until it was enough", shown, 3)
		check(t, s.Records(t.Context(), "none", func(Record) bool { t.Error("a record of nothing"); return true }))
		if s.Records(t.Context(), "{", func(Record) bool { return true }) == nil {
			t.Error("braces are accepted")
		}
	})
}

func TestBrokenRecordIsNotShown(t *testing.T) {
	server, r := onRedis(t)
	check(t, server.Client.HSet(t.Context(), "sluice:{1001}:r", "a", "rubbish").Err())
	if err := r.Records(t.Context(), "1001", func(Record) bool { return true }); err == nil {
		t.Error("shown")
	}
}
