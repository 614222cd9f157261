package accesslog

import "github.com/prometheus/client_golang/prometheus"

// cause says why a line was lost.
type cause int

const (
	full   cause = iota // every slot was full
	failed              // the output returned an error
	numCauses
)

func (c cause) String() string { return [numCauses]string{"full", "failed"}[c] }

var (
	writtenDesc = prometheus.NewDesc("sluice_access_log_lines_total",
		"Lines of the access log that were written.", nil, nil)
	droppedDesc = prometheus.NewDesc("sluice_access_log_dropped_total",
		"Lines of the access log that were lost: the buffer was full, or the output failed. "+
			"Rejections that rejected_per_second leaves out are not counted.", []string{"cause"}, nil)
)

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(l, ch) }

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(writtenDesc, prometheus.CounterValue, float64(l.written.Load()))
	for c := range numCauses {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(l.dropped[c].Load()), c.String())
	}
}

// lost returns the number of lost lines.
func (l *Log) lost() (n uint64) {
	for i := range l.dropped {
		n += l.dropped[i].Load()
	}
	return n
}
