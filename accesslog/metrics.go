package accesslog

import "github.com/prometheus/client_golang/prometheus"

// cause is why a line was lost.
type cause int

const (
	full   cause = iota // more came than could be written
	failed              // the output took it not
	numCauses
)

func (c cause) String() string { return [numCauses]string{"full", "failed"}[c] }

func writtenDesc() *prometheus.Desc {
	return prometheus.NewDesc("sluice_access_log_lines_total", "Lines of the access log that were written.", nil, nil)
}

func droppedDesc() *prometheus.Desc {
	return prometheus.NewDesc("sluice_access_log_dropped_total", "Lines of the access log that were lost: the buffer was full, or the output failed. Refusals that were left out by refused_first and refused_every are not among them.", []string{"cause"}, nil)
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) {
	ch <- writtenDesc()
	ch <- droppedDesc()
}

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(writtenDesc(), prometheus.CounterValue, float64(l.written.Load()))
	for c := range numCauses {
		ch <- prometheus.MustNewConstMetric(droppedDesc(), prometheus.CounterValue, float64(l.dropped[c].Load()), c.String())
	}
}

// lost is how many lines were lost in all.
func (l *Log) lost() (n uint64) {
	for i := range l.dropped {
		n += l.dropped[i].Load()
	}
	return n
}
