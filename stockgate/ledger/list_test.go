package ledger

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"sluice/internal/testkit"
)

func TestRedisstore_EverySKUWithALedgerIsListedInOrder(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		want := []string{"1001"}
		for i := range 1_200 {
			sku := fmt.Sprintf("sku %d", i)
			testkit.Must[Stock](t)(s.SetTotal(t.Context(), sku, 1, 0))
			want = append(want, sku)
		}
		slices.Sort(want)
		for _, limit := range []int{1, 500, 501, 1_201, MaxListed} {
			got := testkit.Must[[]string](t)(s.SKUs(t.Context(), limit))
			if !slices.Equal(got, want[:min(limit, len(want))]) {
				t.Errorf("the first %d: %d, %.80v", limit, len(got), got)
			}
		}
		for _, limit := range []int{0, -1, MaxListed + 1} {
			if _, err := s.SKUs(t.Context(), limit); err == nil {
				t.Errorf("limit %d: accepted", limit)
			}
		}
	})
}

func TestRedisstore_LedgerThatIsGoneIsNotListed(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1000", 1, 0))
	testkit.Check(t, server.Client.Del(t.Context(), "sluice:shop:{1000}:s").Err())
	got := testkit.Must[[]string](t)(r.SKUs(t.Context(), 1))
	testkit.Want(t, "skus", fmt.Sprint(got), "[1001]")
}

// What makes a ledger and dies has told its name before.
func TestRedisstore_NameIsToldBeforeTheLedgerIsMade(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Check(t, server.Client.Do(t.Context(), "set", "sluice:shop:skus", "not a list of names").Err())
	if _, err := r.SetTotal(t.Context(), "new", 1, 0); err == nil {
		t.Fatal("a ledger that nobody finds was made")
	}
	testkit.Check(t, server.Client.Del(t.Context(), "sluice:shop:skus").Err())
	_, ok, err := r.ReadStock(t.Context(), "new")
	testkit.Check(t, err)
	testkit.Want(t, "made", ok, false)
}

func TestRedisstore_RecordsAreAllShown(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 5_000, 0))
		wanted := map[string]Status{}
		for batch := range 12 {
			items, codes, done := make([]Item, 200), make([]Code, 200), make([]Done, 200)
			for i := range items {
				items[i] = Item{Serial: fmt.Sprint(batch, "-", i), User: "ann", Quantity: 1}
				wanted[items[i].Serial] = map[int]Status{0: 'C', 1: 'R', 2: 'H'}[batch%3]
			}
			_, err := s.Reserve(t.Context(), "1001", 0, 1, 9, items, codes)
			testkit.Check(t, err)
			if batch%3 < 2 {
				op := []Op{Confirm, Refund}[batch%3]
				_, err = s.Finish(t.Context(), "1001", 1, 9, op, items, done)
				testkit.Check(t, err)
			}
		}
		var others sync.WaitGroup
		others.Go(func() { // comes and goes meanwhile
			for i := range 300 {
				serial := fmt.Sprint("other ", i)
				takeUnit(t, s, serial, "zoe")
				finishOne(t, s, Release, serial)
			}
		})
		got := map[string]Status{}
		testkit.Check(t, s.Records(t.Context(), "1001", func(r Record) bool {
			if r.User == "ann" {
				got[r.Serial] = r.Status
			}
			return true
		}))
		others.Wait()
		testkit.Check(t, differ("records", got, wanted))
		shown := 0
		testkit.Check(t, s.Records(t.Context(), "1001", func(Record) bool { shown++; return shown < 3 }))
		testkit.Want(t, "shown until it was enough", shown, 3)
		testkit.Check(t, s.Records(t.Context(), "none",
			func(Record) bool { t.Error("a record of nothing"); return true }))
		if s.Records(t.Context(), "{", func(Record) bool { return true }) == nil {
			t.Error("braces are accepted")
		}
	})
}

func TestRedisstore_BrokenRecordIsNotShown(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:r", "a", "rubbish").Err())
	if err := r.Records(t.Context(), "1001", func(Record) bool { return true }); err == nil {
		t.Error("shown")
	}
}
