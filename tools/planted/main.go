// Command planted asks whether the tests can fail: it plants known bugs in copies of the tree, one at a time, and
// wants each caught by the tests that its patch names.
//
//	planted [-runs 5] [-parallel 2] [-only NAME] [-applies] ROOT
//
// It first runs the same tests without any bug: there they must pass. The tree itself is never changed. A patch that
// does not apply any more, or after which the tests do not compile, is a mistake and no catch.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	runs := flag.Int("runs", 5, "times that a bug may go unnoticed before it counts as missed")
	parallel := flag.Int("parallel", 2, "bugs that are tried at once")
	only := flag.String("only", "", "a part of the names of the bugs to try; all by default")
	applies := flag.Bool("applies", false, "only look whether every patch still applies")
	flag.Parse()
	if flag.NArg() != 1 || *runs < 1 || *parallel < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := trial{root: flag.Arg(0), runs: *runs, applies: *applies}
	if err := t.all(ctx, *only, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// trial is how bugs are tried.
type trial struct {
	root    string
	runs    int
	applies bool // look at the patches alone
}

// all tries every bug whose name has a part, so many at once, and prints a line each.
func (t trial) all(ctx context.Context, part string, parallel int) error {
	bugs, err := readBugs(filepath.Join(t.root, "tools", "planted", "bugs"), part)
	if err != nil {
		return err
	}
	var (
		begin  = time.Now()
		turn   = make(chan struct{}, parallel)
		mu     sync.Mutex
		missed []string
		wait   sync.WaitGroup
	)
	try := func(name string, do func() (string, error)) {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			start := time.Now()
			said, err := do()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missed = append(missed, name)
				said = "NOT CAUGHT: " + err.Error()
			}
			fmt.Printf("%-18s %4.0f s  %s\n", name, time.Since(start).Seconds(), said)
		})
	}
	if !t.applies {
		try("(no bug)", func() (string, error) { return t.healthy(ctx, bugs) })
	}
	for _, b := range bugs {
		try(b.file, func() (string, error) { return t.planted(ctx, b) })
	}
	wait.Wait()
	fmt.Printf("%d bugs, %.0f s\n", len(bugs), time.Since(begin).Seconds())
	if len(missed) > 0 {
		return fmt.Errorf("not as wanted: %s", strings.Join(missed, ", "))
	}
	return nil
}

// healthy wants all tests to pass where nothing is wrong.
func (t trial) healthy(ctx context.Context, bugs []bug) (string, error) {
	tree, err := copyOf(ctx, t.root)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tree)
	n := 0
	for _, s := range suites(bugs) {
		switch failed, text, err := s.run(ctx, tree); {
		case err != nil:
			return "", err
		case len(failed) > 0:
			return "", fmt.Errorf("without any bug %s fails:\n%s", strings.Join(failed, ", "), text)
		}
		n += len(s.tests)
	}
	return fmt.Sprintf("%d tests pass", n), nil
}

// planted wants a bug to be caught, by every suite that it names.
func (t trial) planted(ctx context.Context, b bug) (string, error) {
	tree, err := copyOf(ctx, t.root)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tree)
	if err := b.plant(ctx, tree); err != nil || t.applies {
		return "applies", err
	}
	var said []string
	for _, s := range b.suites {
		by, err := t.catch(ctx, s, tree)
		if err != nil {
			return "", err
		}
		said = append(said, by)
	}
	return strings.Join(said, "; "), nil
}

// catch runs a suite until it fails.
func (t trial) catch(ctx context.Context, s suite, tree string) (by string, err error) {
	for n := 1; n <= t.runs; n++ {
		failed, _, err := s.run(ctx, tree)
		if err != nil {
			return "", err
		}
		if len(failed) > 0 {
			return fmt.Sprintf("%s, run %d", strings.Join(failed, ", "), n), nil
		}
	}
	return "", fmt.Errorf("%s: %s passes %d times", s.folder, strings.Join(s.tests, ", "), t.runs)
}
