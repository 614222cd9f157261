package accesslog

import (
	"io"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/proxy/reject"
)

func TestMetrics_CountWrittenAndLostLines(t *testing.T) {
	l := logTo(t, io.Discard, nil)
	records := 0
	for ; l.recent.lost == 0; records++ {
		l.Log(testRecord(reject.SoldOut))
	}
	lost := float64(l.recent.lost)
	l.Start(none)
	l.Close()
	<-l.stopped // which Close does not wait for on a slow machine
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(l)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue()
		}
	}
	// The lines, and one that sums up what was lost.
	lines := float64(records) - lost + 1
	if got["sluice_access_log_dropped_total"] != lost || got["sluice_access_log_lines_total"] != lines {
		t.Errorf("%v", got)
	}
}
