package histogram

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metric is the sum of parts, all of this scale, as of now. labels are the values of d's variable labels.
func (s *Scale) Metric(d *prometheus.Desc, parts []*Histogram, labels ...string) prometheus.Metric {
	m := &metric{desc: d, labels: prometheus.MakeLabelPairs(d, labels), scale: s}
	for _, h := range parts {
		for i := range h.classic {
			m.classic[i] += h.classic[i].Load()
		}
		for i := range h.native {
			m.native[i] += h.native[i].Load()
		}
		m.sum += math.Float64frombits(h.sum.Load())
	}
	return m
}

// metric implements [prometheus.Metric] in both forms; which of them is sent, Prometheus says in its request.
type metric struct {
	desc    *prometheus.Desc
	labels  []*dto.LabelPair
	scale   *Scale
	classic [MostBounds + 1]uint64
	native  [cells]uint64
	sum     float64
}

func (m *metric) Desc() *prometheus.Desc { return m.desc }

func (m *metric) Write(to *dto.Metric) error {
	h := &dto.Histogram{Schema: new(int32(schema)), ZeroThreshold: new(math.Ldexp(1, m.scale.floor)), SampleSum: new(m.sum)}
	m.writeNative(h)
	m.writeClassic(h)
	to.Label, to.Histogram = m.labels, h
	return nil
}

// writeNative writes the buckets as one span from the first that counts to the last, each as its difference to the one before. The
// count is their sum: Prometheus refuses a native histogram in which the two differ.
func (m *metric) writeNative(h *dto.Histogram) {
	first, last, count := 0, 0, m.native[0]
	for i := 1; i < cells; i++ {
		if m.native[i] == 0 {
			continue
		}
		if first == 0 {
			first = i
		}
		last = i
		count += m.native[i]
	}
	h.SampleCount, h.ZeroCount = new(count), new(m.native[0])
	if first == 0 {
		return
	}
	h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(m.scale.floor*perDouble + first)), Length: new(uint32(last - first + 1))}}
	before := int64(0)
	for i := first; i <= last; i++ {
		n := int64(m.native[i])
		h.PositiveDelta = append(h.PositiveDelta, n-before)
		before = n
	}
}

// writeClassic writes the cumulative buckets. One that was counted in the moment between is left for the next time.
func (m *metric) writeClassic(h *dto.Histogram) {
	n := uint64(0)
	for i, bound := range m.scale.bounds {
		n += m.classic[i]
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(min(n, *h.SampleCount))})
	}
}
