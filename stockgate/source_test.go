package stockgate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

func readOne(t *testing.T, s Source, sku string) layout.Reading {
	t.Helper()
	out := make([]layout.Reading, 1)
	testkit.Check(t, s.Read(t.Context(), []string{sku}, out))
	return out[0]
}

func TestStockgate_MissingStockIsUnknownAndNeitherZeroNorUnlimited(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		if r := readOne(t, s, "1001"); r.Exists || r.Fault != nil {
			t.Fatalf("a SKU that was never set reads %+v", r)
		}
	})
}

func TestStockgate_WhatIsSetIsRead(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		for _, n := range []int64{500, 0, 1 << 53, 7} {
			testkit.Check(t, s.Set(t.Context(), "1001", n))
			want := layout.Reading{Left: n, Free: n, Exists: true, OnSale: true}
			if r := readOne(t, s, "1001"); r != want {
				t.Fatalf("after set %d: read %+v, want %+v", n, r, want)
			}
		}
	})
}

func TestStockgate_ReadingsKeepTheOrderOfTheQuestion(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "a", 1))
		testkit.Check(t, s.Set(t.Context(), "c", 3))
		out := make([]layout.Reading, 4)
		testkit.Check(t, s.Read(t.Context(), []string{"c", "b", "a"}, out))
		if out[0].Left != 3 || out[1].Exists || out[2].Left != 1 || out[3] != (layout.Reading{}) {
			t.Fatalf("read c, b, a: %+v", out)
		}
	})
}

func TestStockgate_NegativeStockCannotBeSet(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		if err := s.Set(t.Context(), "1001", -1); err == nil {
			t.Fatal("set −1 succeeded")
		}
		if r := readOne(t, s, "1001"); r.Exists {
			t.Fatalf("a rejected set wrote %+v", r)
		}
	})
}

func TestStockgate_AddReturnsWhatIsLeft(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "1001", 1<<53))
		for _, step := range []struct{ delta, left int64 }{{1, 1<<53 + 1}, {-1 << 53, 1}, {-3, -2}} {
			if left := testkit.Must[int64](t)(s.Add(t.Context(), "1001", step.delta)); left != step.left {
				t.Fatalf("add %d: left %d, want %d", step.delta, left, step.left)
			}
			if r := readOne(t, s, "1001"); r.Left != step.left {
				t.Fatalf("after add %d: read %d, want %d", step.delta, r.Left, step.left)
			}
		}
	})
}

func TestStockgate_AddToUnknownSKUCreatesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		if _, err := s.Add(t.Context(), "1001", 5); !errors.Is(err, ErrUnknownSKU) {
			t.Fatalf("add to a SKU that does not exist: %v", err)
		}
		if r := readOne(t, s, "1001"); r.Exists {
			t.Fatalf("a rejected add wrote %+v", r)
		}
	})
}

func TestStockgate_ConcurrentAddsLoseNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "1001", 0))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if _, err := s.Add(context.Background(), "1001", 1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if r := readOne(t, s, "1001"); r.Left != 200 {
			t.Fatalf("200 adds of 1 left %d", r.Left)
		}
	})
}

func TestStockgate_ListIsSortedAndBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		for _, sku := range []string{"b", "a*", "c:d"} {
			testkit.Check(t, s.Set(t.Context(), sku, int64(len(sku))))
		}
		var got []string
		for _, row := range testkit.Must[[]Stock](t)(s.List(t.Context(), 10)) {
			got = append(got, row.SKU)
			if row.Left != int64(len(row.SKU)) {
				t.Errorf("%q: left %d", row.SKU, row.Left)
			}
		}
		if want := []string{"a*", "b", "c:d"}; !slices.Equal(got, want) {
			t.Fatalf("list %q, want %q", got, want)
		}
		for limit, want := range []int{0, 1, 2, 3, 3} {
			if rows := testkit.Must[[]Stock](t)(s.List(t.Context(), limit)); len(rows) != want {
				t.Fatalf("limit %d: %d rows, want %d", limit, len(rows), want)
			}
		}
	})
}
