package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"sluice/admin"
	"sluice/internal/adminclient"
	"sluice/internal/periodic"
)

// What a terminal is told: another page to draw on, and the old one back.
const (
	enterPage = "\x1b[?1049h\x1b[?25l"
	leavePage = "\x1b[?25h\x1b[?1049l"
	clearPage = "\x1b[H\x1b[2J"
)

// Watch draws the gate's status once a second until the operator ends it. Where there is no terminal it prints a line a
// second. at is the gate's address, as --admin takes it.
func Watch(to adminclient.Client, at string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if !terminal(os.Stdout) {
		return follow(ctx, to, os.Stdout)
	}
	restore := readKeys(os.Stdin)
	defer restore()
	go func() { // it ends with the process: a read from a terminal cannot be called back
		key := make([]byte, 1)
		for {
			if n, err := os.Stdin.Read(key); n == 0 || err != nil {
				return
			}
			if key[0] == 'q' || key[0] == 'Q' || key[0] == 3 {
				cancel()
				return
			}
		}
	}()
	fmt.Print(enterPage)
	defer fmt.Print(leavePage)
	var w watched
	for {
		w.refresh(ctx, to)
		b := View{Admin: at, colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
		b.Width, b.Height = terminalSize(os.Stdout)
		b.Height -= 2 // the line below, and the cursor's
		text := w.page(b, time.Now()) + b.in(quiet, "q ends this")
		if _, err := io.WriteString(os.Stdout, clearPage+strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
			return err
		}
		if !periodic.Pause(ctx, time.Second) {
			return nil
		}
	}
}

// watched is what is known of the gate.
type watched struct {
	status  *admin.Status // nil = it has never answered
	seconds []admin.Second
	at      time.Time // of status
	fault   error     // why the last look failed
}

func (w *watched) refresh(ctx context.Context, to adminclient.Client) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var s admin.Status
	if w.fault = to.Call(ctx, "GET", "/status", nil, &s); w.fault != nil {
		return
	}
	w.status, w.at = &s, time.Now()
	if s.Second != nil && (len(w.seconds) == 0 || w.seconds[len(w.seconds)-1].At < s.Second.At) {
		w.seconds = append(w.seconds, *s.Second)
		w.seconds = w.seconds[max(0, len(w.seconds)-60):]
	}
}

// page never shows old numbers as if they were live.
func (w *watched) page(b View, now time.Time) string {
	switch {
	case w.status == nil && w.fault != nil:
		return b.in(bad, b.cut(w.fault.Error())) + "\n"
	case w.fault != nil:
		return b.Draw(w.status, w.seconds, fmt.Sprintf("CONNECTION LOST: these numbers are %s old (%v)",
			now.Sub(w.at).Round(time.Second), w.fault))
	}
	return b.Draw(w.status, w.seconds, "")
}

// follow prints a line a second, for who reads it later.
func follow(ctx context.Context, to adminclient.Client, out io.Writer) error {
	for {
		var w watched
		if w.refresh(ctx, to); w.fault != nil {
			if ctx.Err() != nil {
				return nil
			}
			return w.fault
		}
		if s := w.status.Second; s != nil {
			if _, err := fmt.Fprintf(out, "%s in %d admitted %d rejected %d in flight %d queue %d p99 %gms\n",
				time.Unix(s.At, 0).Format(time.RFC3339), s.Requests, s.Admitted, s.Requests-s.Admitted, s.Upstream.InFlight,
				s.Upstream.Queue, s.Upstream.P99); err != nil {
				return err
			}
		}
		if !periodic.Pause(ctx, time.Second) {
			return nil
		}
	}
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
