// Command attack plays attacks on a built sluice and on a real nginx beside it, one after the other, and prints what
// each of them cost: memory, processor time, and what became of honest requests.
//
//	attack [-short] [-only NAME] SLUICE
//
// A scenario is one file: a value in the list of scenarios, and its function. The exit code is 1 when a figure is
// beyond its bound.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// scenario is one attack.
type scenario struct {
	name, description string
	run               func(ctx context.Context, e *env) ([]row, error)
}

// scenarios are all attacks, in the order in which they are played.
func scenarios() []scenario {
	return []scenario{bodies, chunks, slowReaders, slowUploads, slowReaders100k, burst}
}

// row is one figure of a scenario.
type row struct {
	figure        string
	sluice, nginx string // "" = not measured
	bound         string // "" = only shown
	broken        bool   // the figure is beyond its bound
}

func main() {
	short := flag.Bool("short", false, "a short form of each, for CI")
	only := flag.String("only", "", "a part of the names of the scenarios to play; all by default")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	broken, err := play(ctx, flag.Arg(0), *only, *short)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
	}
	if err != nil || broken > 0 {
		os.Exit(1)
	}
}

// play runs the scenarios whose names have a part, prints a table for each, and counts the figures beyond their bounds.
func play(ctx context.Context, binary, only string, short bool) (broken int, err error) {
	for _, s := range scenarios() {
		if !strings.Contains(s.name, only) {
			continue
		}
		begun := time.Now()
		rows, err := attack(ctx, s, binary, short)
		if err != nil {
			return broken, fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("\n%s: %s (%.0f s)\n", s.name, s.description, time.Since(begun).Seconds())
		broken += printTable(rows)
	}
	return broken, nil
}

// attack runs one scenario in an environment of its own.
func attack(ctx context.Context, s scenario, binary string, short bool) ([]row, error) {
	e, err := newEnv(binary, short)
	if err != nil {
		return nil, err
	}
	rows, err := s.run(ctx, e)
	e.close()
	return append(rows, e.memoryRow()), err
}

// memoryRow compares the most memory that any sluice of the scenario had with what "sluice check" foretold.
func (e *env) memoryRow() row {
	var ours, theirs, allowed float64
	for _, p := range e.peers {
		if p.ops == "" {
			theirs = max(theirs, p.most)
			continue
		}
		ours, allowed = max(ours, p.most), p.allowed
	}
	r := row{figure: "memory (PSS), at most what check says", bound: fmt.Sprintf("<= %.0f MiB", allowed),
		sluice: fmt.Sprintf("%.0f MiB", ours), broken: ours > allowed}
	if theirs > 0 {
		r.nginx = fmt.Sprintf("%.0f MiB", theirs)
	}
	return r
}

func printTable(rows []row) (broken int) {
	const line = "  %-42s %14s %14s   %-18s %s\n"
	fmt.Printf(line, "", "sluice", "nginx", "bound", "")
	for _, r := range rows {
		verdict := ""
		switch {
		case r.broken:
			verdict = "BROKEN"
			broken++
		case r.bound != "":
			verdict = "ok"
		}
		fmt.Printf(line, r.figure, r.sluice, r.nginx, r.bound, verdict)
	}
	return broken
}
