package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/internal/periodic"
)

var slowReaders100k = scenario{
	name:        "slow-readers-100k",
	description: "4,000 clients read a page of 100 KiB at a few bytes a second, beside honest orders",
	run:         attackByReading100k,
}

const (
	readers100k = 4000
	window100k  = 16 << 10 // bytes
	mostSlower  = 3.0      // times nginx's p99, in the middle one of the runs
)

func attackByReading100k(ctx context.Context, e *env) (rows []row, err error) {
	runs, lasts := 3, 10*time.Second
	if e.short {
		runs, lasts = 1, 4*time.Second
	}
	var ratios []float64
	for i := range runs {
		ours, theirs, err := e.attackBoth(ctx, "upstream.max_conns = 4096\n"+orderRoutes,
			func(ctx context.Context, p *peer) (*tally, error) { return ordersBesideReaders(ctx, p, lasts) })
		if err != nil {
			return nil, err
		}
		rows = append(rows, besides(ours, theirs)...)
		ratios = append(ratios, ours.took.P99/max(theirs.took.P99, 1e-3))
		rows = append(rows, row{figure: fmt.Sprintf("run %d: p99, times nginx's", i+1),
			sluice: fmt.Sprintf("%.1f", ratios[i])})
	}
	slices.Sort(ratios)
	middle := ratios[len(ratios)/2]
	return append(rows, row{figure: "p99, times nginx's, the middle run", sluice: fmt.Sprintf("%.1f", middle),
		bound: fmt.Sprintf("<= %.0f", mostSlower), broken: !e.short && middle > mostSlower}), nil
}

// ordersBesideReaders places honest orders while others read slowly.
func ordersBesideReaders(ctx context.Context, p *peer, lasts time.Duration) (*tally, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range connections(readers100k) {
		c, err := startReading(ctx, i, p.address, "/article", window100k)
		if err != nil {
			return nil, err
		}
		defer c.Close()
	}
	periodic.Pause(ctx, 3*time.Second) // all of them have begun
	ctx, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	return shopHonestly(ctx, p.address)
}
