package sorted

import (
	"cmp"
	"slices"
	"testing"
)

func TestSorted_ByKeepsTheOrderOfEqualElements(t *testing.T) {
	type one struct {
		weight int
		name   string
	}
	var all []one
	for i := range 100 { // more than insertion sort is used for
		all = append(all, one{i % 3, string(rune('a' + i/3))})
	}
	want := slices.Clone(all)
	slices.SortStableFunc(want, func(a, b one) int { return cmp.Compare(b.weight, a.weight) })
	By(all, func(a, b one) int { return cmp.Compare(b.weight, a.weight) })
	if !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	By([]one(nil), func(a, b one) int { return 0 })
}
