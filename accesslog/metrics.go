package accesslog

import "github.com/prometheus/client_golang/prometheus"

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
	_, lost := l.recent.counts()
	for cause, n := range map[string]uint64{"full": lost, "failed": l.failed.Load()} {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(n), cause)
	}
}
