package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed load.lua
var loadScript []byte

// burst is what wrk saw: as many requests as one connection after another gets answered.
type burst struct {
	requests int
	took     time.Duration
	p50, p99 time.Duration
	rejected int // answers above 399
	broken   int // not answered at all
}

// wrk asks a gate for a span. It is the one load that is not of internal/load: written in C, it leaves most of the
// two cores to what is measured.
func (f *field) wrk(ctx context.Context, g *gate, s scenario, connections int, span time.Duration) (burst, error) {
	which, how := "same", "sent"
	if s.unique {
		which = "unique"
	}
	if g.asked {
		how = "asked"
	}
	cmd := exec.CommandContext(ctx, "wrk", "-t", strconv.Itoa(min(connections, runtime.NumCPU())), "-c",
		strconv.Itoa(connections), "-d", strconv.Itoa(max(1, int(span.Seconds())))+"s", "--timeout", "10s", "-s", f.script,
		"http://"+g.front, "--", s.method, s.path, which, f.run(), how)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	text, err := cmd.CombinedOutput()
	if err != nil {
		return burst{}, fmt.Errorf("run wrk: %w: %s", err, text)
	}
	return readBurst(string(text))
}

// readBurst finds the line that load.lua writes.
func readBurst(text string) (burst, error) {
	var b burst
	_, line, found := strings.Cut(text, "measured ")
	if !found {
		return b, fmt.Errorf("read what wrk wrote: no line of load.lua in %q", text)
	}
	var took, p50, p99 int64 // µs
	if _, err := fmt.Sscan(line, &b.requests, &took, &p50, &p99, &b.rejected, &b.broken); err != nil {
		return b, fmt.Errorf("read what wrk wrote: %w", err)
	}
	b.took, b.p50, b.p99 = micros(took), micros(p50), micros(p99)
	return b, nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// is says whether the answers were those of the scenario: a fast wrong answer is worth nothing.
func (b burst) is(s scenario) error {
	admitted := b.requests - b.rejected
	switch few := b.requests/100 + 10; {
	case b.requests == 0:
		return fmt.Errorf("%s: nothing was answered", s.name)
	case b.broken > few:
		return fmt.Errorf("%s: %d of %d broke off", s.name, b.broken, b.requests)
	case s.mixed:
	case s.rejected && admitted > few:
		return fmt.Errorf("%s: %d of %d were admitted", s.name, admitted, b.requests)
	case !s.rejected && b.rejected > few:
		return fmt.Errorf("%s: %d of %d were rejected", s.name, b.rejected, b.requests)
	}
	return nil
}
