package main

import (
	"slices"
	"strconv"
)

// axis is one way in which a load grows: some curves, each through some points.
type axis struct {
	name  string
	title string
	along string // what grows
	brief bool   // a part of a second is enough: nothing that matters happens once a second
	steps []step
}

func (a axis) label() string { return a.name }

// step is one point of a curve.
type step struct {
	curve string
	at    float64
	load  load
}

// axes are all of them. small keeps the ends of each, as a trial does.
func axes(small bool) []axis {
	all := []axis{
		{name: "connections", title: "connections, of which 64 have a request under way", along: "connections", brief: true,
			steps: connectionSteps(small)},
		{name: "rush", title: "connections that all have a request under way", along: "connections, all busy", brief: true,
			steps: rushSteps(small)},
		{name: "skus", title: "SKUs, chosen at random", along: "SKUs", steps: skuSteps(small)},
		{name: "routes", title: "routes, chosen at random", along: "routes", brief: true,
			steps: grow(small, "sold out", []int{1, 10, 100}, func(l *load, n int) { l.GonePart, l.Routes = 100, n })},
		{name: "keys", title: "keys of a rate", along: "keys", brief: true, steps: keySteps(small)},
		{name: "batches", title: "orders under way", along: "orders under way", steps: batchSteps(small)},
		{name: "sale", title: "sales of one SKU to its last unit", along: "requests", steps: saleSteps(small)},
		{name: "idle", title: "SKUs on sale without requests", along: "SKUs", steps: idleSteps(small)},
	}
	return all
}

// grow makes a curve of the usual load, changed for each number.
func grow(small bool, curve string, numbers []int, change func(l *load, n int)) (steps []step) {
	if small {
		numbers = []int{numbers[0], numbers[min(1, len(numbers)-1)]}
	}
	for _, n := range numbers {
		steps = append(steps, step{curve, float64(n), usual().with(func(l *load) { change(l, n) })})
	}
	return steps
}

func connectionSteps(small bool) (steps []step) {
	for _, who := range []struct{ gate, curve string }{
		{"sluice", "Sluice, sold out"}, {"sluice", "Sluice, limited"}, {"sluice", "Sluice, forwarded"},
		{"bare", "bare fasthttp"}, {"naive", "naive fasthttp, forwarded"},
		{"nginx", "nginx, sold out"}, {"nginx", "nginx, limited"}, {"nginx", "nginx, forwarded"},
	} {
		counts := []int{64, 256, 1000, 4000, 10_000}
		if who.gate != "sluice" {
			counts = []int{64, 1000, 10_000}
		}
		steps = append(steps, grow(small, who.curve, counts, func(l *load, n int) {
			l.Gate, l.Connections = who.gate, n
			switch who.curve {
			case "Sluice, sold out", "nginx, sold out":
				l.GonePart = 100
			case "Sluice, limited", "bare fasthttp", "nginx, limited":
				l.LimitedPart = 100
			default:
				l.PagePart = 100
			}
		})...)
	}
	return steps
}

func rushSteps(small bool) (steps []step) {
	for _, who := range []struct{ gate, curve string }{{"sluice", "Sluice, limited"}, {"bare", "bare fasthttp"},
		{"nginx", "nginx, limited"}} {
		steps = append(steps, grow(small, who.curve, []int{64, 1000, 10_000}, func(l *load, n int) {
			l.Gate, l.Connections, l.Underway, l.LimitedPart = who.gate, n, n, 100
		})...)
	}
	return steps
}

func skuSteps(small bool) []step {
	counts := []int{1, 100, 10_000, 100_000}
	soldOut := func(gate string) func(*load, int) {
		return func(l *load, n int) { l.Gate, l.GonePart, l.Gone = gate, 100, n }
	}
	return slices.Concat(
		grow(small, "sold out", counts, soldOut("sluice")),
		grow(small, "checked", counts[:3], func(l *load, n int) { l.CheckPart, l.Open = 100, n }),
		grow(small, "reserved", counts[:3], func(l *load, n int) { l.OrderPart, l.Open = 100, n }),
		grow(small, "nginx, sold out", counts, soldOut("nginx")),
		grow(small, "bare fasthttp", []int{1, 100_000}, soldOut("bare")))
}

func keySteps(small bool) []step {
	return grow(small, "forwarded", []int{1000, 10_000, 100_000, 1_000_000},
		func(l *load, n int) { l.PagePart, l.Keys = 100, n })
}

func batchSteps(small bool) []step {
	return grow(small, "reserved", []int{8, 16, 32, 128, 512}, func(l *load, n int) {
		l.OrderPart, l.Connections, l.Underway = 100, n, n
	})
}

// saleSteps let a crowd grow over a stock, a stock under a crowd, and the fleet under both.
func saleSteps(small bool) (steps []step) {
	sale := func(l *load, crowd, units, instances int) {
		l.OrderPart, l.Connections, l.Underway = 100, 512, 512
		l.Requests, l.Units, l.Instances = crowd, units, instances
	}
	if small {
		return grow(true, "100 units", []int{1000, 2000}, func(l *load, n int) { sale(l, n, 100, 1) })
	}
	crowds := []int{10_000, 40_000, 160_000}
	steps = append(steps, grow(false, "1,000 units", crowds, func(l *load, n int) { sale(l, n, 1000, 1) })...)
	steps = append(steps, grow(false, "1,000 units, 4 instances", crowds, func(l *load, n int) { sale(l, n, 1000, 4) })...)
	return append(steps, grow(false, "10,000 units", crowds[1:], func(l *load, n int) { sale(l, n, 10_000, 1) })...)
}

func idleSteps(small bool) (steps []step) {
	for _, instances := range []int{1, 4} {
		counts := []int{1, 100, 10_000}
		if instances > 1 {
			counts = counts[:2]
		}
		steps = append(steps, grow(small, strconv.Itoa(instances)+" instances", counts, func(l *load, n int) {
			l.Underway, l.Open, l.Instances = 0, n, instances
		})...)
	}
	return steps
}
