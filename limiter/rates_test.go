package limiter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func standing() int64 { return 0 }

// used tells which of the rates' keys "a" have nothing left.
func used(rates []*Rate) (empty []bool) {
	for _, r := range rates {
		left, _, _ := r.Look(0, []byte("a"))
		empty = append(empty, left == 0)
	}
	return empty
}

// Nobody gets a new burst by a change of what his rate has nothing to do with, nor by one of rate and burst.
func TestRatesForgetNothingThatGoesOn(t *testing.T) {
	specs := []RateSpec{
		{Name: "same", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "slower", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "of another key", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "larger", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "gone", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
	}
	s := NewRates(standing)
	before := s.Prepare(specs)
	s.Use(before)
	for _, r := range before {
		r.Take(0, []byte("a"))
		r.Take(0, []byte("a"))
	}
	specs = specs[:4]
	specs[1].PerSecond, specs[1].Burst = 0.5, 1
	specs[2].Of = "$cookie_uid"
	specs[3].MaxKeys = 200
	after := s.Prepare(specs)
	if diff := cmp.Diff([]bool{true, true, false, false}, used(after)); diff != "" {
		t.Errorf("keys that have nothing left (-want +got):\n%s", diff)
	}
	if again := s.Prepare(specs); again[2].cells == after[2].cells {
		t.Error("what was only prepared is in force")
	}
}

func TestRatesShowTheirTables(t *testing.T) {
	s := NewRates(standing)
	rates := s.Prepare([]RateSpec{{Name: "a", PerSecond: 1, Burst: 1, MaxKeys: 1}, {Name: "b", PerSecond: 1, Burst: 1, MaxKeys: 10_000}})
	s.Use(rates)
	rates[0].Take(0, []byte("x"))
	want := map[string]float64{
		"sluice_rate_table_fill_ratio a": 1, "sluice_rate_table_bytes a": 16,
		"sluice_rate_table_fill_ratio b": 0, "sluice_rate_table_bytes b": 163_840,
	}
	if diff := cmp.Diff(want, gather(t, s)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
