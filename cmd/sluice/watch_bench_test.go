package main

import "testing"

// What the numbers of a second cost a gate: they are gathered once a second while somebody can ask for them.
func BenchmarkGatherASecond(b *testing.B) {
	g, _ := steer(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.metrics.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
