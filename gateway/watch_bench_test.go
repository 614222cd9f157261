package gateway

import "testing"

// What the numbers of a second cost a gate: they are read once a second while a control API serves them.
func BenchmarkReadASecond(b *testing.B) {
	g, _ := steer(b)
	shown := g.dashboardMetrics()
	b.ReportAllocs()
	for b.Loop() {
		_ = g.proxy.Counters().Traffic()
		if _, err := shown.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

// What the page of metrics costs, beside.
func BenchmarkGatherAll(b *testing.B) {
	g, _ := steer(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Metrics.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
