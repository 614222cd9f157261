package histogram

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"
)

func described() *prometheus.Desc {
	return prometheus.NewDesc("took_seconds", "How long it took.", []string{"who"}, nil)
}

func written(t *testing.T, s *Scale, parts ...*Histogram) *dto.Histogram {
	t.Helper()
	var m dto.Metric
	if err := s.Metric(described(), parts, "shop").Write(&m); err != nil {
		t.Fatal(err)
	}
	if len(m.Label) != 1 || m.Label[0].GetValue() != "shop" {
		t.Errorf("labels %v", m.Label)
	}
	return m.Histogram
}

func TestCellHoldsItsUpperBound(t *testing.T) {
	for _, c := range []struct {
		scale *Scale
		v     float64
		cell  int
	}{
		{Seconds(), 0, 0}, {Seconds(), -1, 0}, {Seconds(), math.NaN(), 0}, {Seconds(), 1e-9, 0},
		{Seconds(), math.Ldexp(1, -20), 0}, {Seconds(), math.Nextafter(math.Ldexp(1, -20), 1), 1},
		{Seconds(), 1, 80}, {Seconds(), math.Nextafter(1, 2), 81}, {Seconds(), math.Nextafter(2, 1), 84}, {Seconds(), 2, 84},
		{Seconds(), 16, 96}, {Seconds(), 1e9, 96}, {Seconds(), math.Inf(1), 96},
		{Sizes(), 0, 0}, {Sizes(), 1, 4}, {Sizes(), 2, 8}, {Sizes(), 256, 36},
	} {
		if got := c.scale.cell(c.v); got != c.cell {
			t.Errorf("%v lies in cell %d, want %d", c.v, got, c.cell)
		}
	}
}

func TestEveryValueLiesBelowItsBoundAndAboveTheOneBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Seconds()
		v := rapid.Float64Range(1e-6, 15).Draw(t, "v")
		i := s.cell(v)
		upper, lower := math.Exp2(float64(s.floor)+float64(i)/perDouble), math.Exp2(float64(s.floor)+float64(i-1)/perDouble)
		if v > upper*(1+1e-12) || v <= lower*(1-1e-12) {
			t.Fatalf("%v is not in (%v, %v]", v, lower, upper)
		}
	})
}

// The native form counts what the classic one counts, whichever shards it was counted in.
func TestBothFormsAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := Seconds(0.001, 0.1, 1)
		parts := []*Histogram{{}, {}}
		values := rapid.SliceOf(rapid.Float64Range(0, 20)).Draw(r, "values")
		sum := 0.0
		for i, v := range values {
			parts[i%2].Observe(s, v)
			sum += v
		}
		h := written(t, s, parts...)
		native, one := h.GetZeroCount(), int64(0)
		for _, d := range h.PositiveDelta {
			one += d
			native += uint64(one)
		}
		if n := uint64(len(values)); h.GetSampleCount() != n || native != n || parts[0].Count()+parts[1].Count() != n {
			r.Fatalf("%d values: counted %d, native %d", n, h.GetSampleCount(), native)
		}
		if math.Abs(h.GetSampleSum()-sum) > 1e-6 {
			r.Fatalf("sum %v, want %v", h.GetSampleSum(), sum)
		}
		for _, b := range h.Bucket {
			want := uint64(0)
			for _, v := range values {
				if v <= b.GetUpperBound() {
					want++
				}
			}
			if b.GetCumulativeCount() != want {
				r.Fatalf("%d values up to %v, want %d", b.GetCumulativeCount(), b.GetUpperBound(), want)
			}
		}
	})
}

// Prometheus tells a native histogram by its zero threshold, also before anything was observed.
func TestEmptyHistogramIsNativeToo(t *testing.T) {
	h := written(t, Seconds(1), new(Histogram))
	if h.GetSampleCount() != 0 || h.GetSchema() != schema || h.GetZeroThreshold() == 0 || len(h.PositiveSpan) != 0 || len(h.Bucket) != 1 {
		t.Errorf("an empty histogram is %v", h)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	s, h := Seconds(0.001, 0.1, 1), new(Histogram)
	if n := testing.AllocsPerRun(100, func() { h.Observe(s, 0.02) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	s := Seconds(1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2)
	var h Histogram
	for b.Loop() {
		h.Observe(s, 0.003)
	}
}
