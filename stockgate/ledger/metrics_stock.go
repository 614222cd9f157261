package ledger

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counted are a SKU's numbers as the last audit read them.
type counted struct{ total, held, sold float64 }

// counted is raw in numbers; ok is false where one of them is none.
func (r *raw) counted() (c *counted, ok bool) {
	c = &counted{}
	for text, to := range map[*string]*float64{&r.total: &c.total, &r.held: &c.held, &r.sold: &c.sold} {
		n, err := strconv.ParseInt(*text, 10, 64)
		if err != nil {
			return nil, false
		}
		*to = float64(n)
	}
	return c, true
}

func (c *counted) add(other *counted) {
	c.total += other.total
	c.held += other.held
	c.sold += other.sold
}

// collectStock tells the numbers of at most MetricSKUs ledgers, the first by name, and those of the rest together. No
// client can make a ledger, so that no label comes from a request.
func (d *Desk) collectStock(ch chan<- prometheus.Metric) {
	named, rest := d.summary.of(d)
	for _, l := range named {
		if c := l.counted.Load(); c != nil {
			c.emit(ch, l.sku)
		}
	}
	if rest != nil {
		rest.emit(ch, "_other")
	}
}

// Up to so many ledgers are put in order and added up whenever somebody asks. To do so with more takes no more than a part of
// the time: audits come to each of them once in many seconds anyway.
const (
	fewLedgers   = 1000
	summaryRests = 50
)

// summary is which ledgers have metrics of their own, and the numbers of all others. It is safe for concurrent use.
type summary struct {
	mu    sync.Mutex
	named []*line
	rest  *counted // nil = there are no others
	until time.Time
}

func (s *summary) of(d *Desk) (named []*line, rest *counted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if began.Before(s.until) {
		return s.named, s.rest
	}
	lines := slices.DeleteFunc(d.lines.each(), func(l *line) bool { return l.counted.Load() == nil })
	slices.SortFunc(lines, func(a, b *line) int { return cmp.Compare(a.sku, b.sku) })
	n := min(len(lines), d.o.MetricSKUs)
	s.named, s.rest = slices.Clone(lines[:n]), nil
	for _, l := range lines[n:] {
		if s.rest == nil {
			s.rest = &counted{}
		}
		if c := l.counted.Load(); c != nil {
			s.rest.add(c)
		}
	}
	if len(lines) > fewLedgers {
		s.until = time.Now().Add(summaryRests * time.Since(began))
	}
	return s.named, s.rest
}

// Ledgers come and go, their metrics are always described.
var stockDescs = [...]*prometheus.Desc{
	prometheus.NewDesc("sluice_stock_total", "Units of a ledger for sale in all, as of its last audit.", []string{"sku"}, nil),
	prometheus.NewDesc("sluice_stock_held", "Units of a ledger that are held, as of its last audit.", []string{"sku"}, nil),
	prometheus.NewDesc("sluice_stock_sold", "Units of a ledger that are sold, as of its last audit.", []string{"sku"}, nil),
	prometheus.NewDesc("sluice_stock_free", "Units of a ledger that nobody has, as of its last audit.", []string{"sku"}, nil),
}

func (c *counted) emit(ch chan<- prometheus.Metric, sku string) {
	for i, v := range [...]float64{c.total, c.held, c.sold, c.total - c.held - c.sold} {
		ch <- prometheus.MustNewConstMetric(stockDescs[i], prometheus.GaugeValue, v, sku)
	}
}
