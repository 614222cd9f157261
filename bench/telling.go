package main

import (
	"context"
	"fmt"
	"os"
)

// telling is what a refusal costs Sluice when it also tells of it, as the default configuration does: "logged" to a file and in
// memory, "traced" with a collector that takes everything, or "" for neither.
func (f *field) telling(how string) func(context.Context, results, int) error {
	return func(ctx context.Context, r results, _ int) error {
		name := how
		if name == "" {
			name = "silent"
		}
		for _, k := range f.contenders([]string{"sluice"}, false) {
			k.tells = how
			got, err := f.play(ctx, k, scenarioOf("limited"), f.connections[0])
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			r.add(cell{name, k.name, f.connections[0]}, got)
			fmt.Fprintf(os.Stderr, "  %-12s %4d  %-8s %s\n", name, f.connections[0], k.name, got)
		}
		return nil
	}
}
