package demo

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

var escape = regexp.MustCompile(`\x1b\[[?0-9;]*[A-Za-z]`)

func TestTerminalIsDrawnOverExactly(t *testing.T) {
	var b strings.Builder
	p := &progress{out: &b, terminal: true, colour: true}
	p.show(sound())
	lines := strings.Count(b.String(), "\n")
	b.Reset()
	p.show(sound())
	if want := fmt.Sprintf("\x1b[%dA", lines); !strings.HasPrefix(b.String(), want) || strings.Count(b.String(), "\n") != lines {
		t.Errorf("%d lines were drawn, and then %q", lines, b.String())
	}
	if !strings.HasSuffix(b.String(), "\x1b[?25h\x1b[?7h") {
		t.Error("the cursor is not given back")
	}
}

func TestPanelStaysWithin80Columns(t *testing.T) {
	busy := sound()
	busy.Asked, busy.Admitted, busy.Shop.Oversold, busy.Shop.InFlight = 999_999, 999_999, 5, 3000
	busy.Refused = nil
	for reason := range meanings {
		busy.Refused = append(busy.Refused, Refused{reason, 60_000})
	}
	for _, r := range []Report{{}, {Shoppers: 1, Asked: 1}, sound(), busy} {
		for _, line := range panel(r, true) {
			if n := utf8.RuneCountInString(escape.ReplaceAllString(line, "")); n > 80 {
				t.Errorf("%d columns: %q", n, line)
			}
		}
		for _, line := range panel(r, false) {
			if escape.MatchString(line) {
				t.Errorf("coloured against the wish: %q", line)
			}
		}
	}
}

func TestBarIsAlwaysAsWideAndShowsSmallParts(t *testing.T) {
	plain := func(_, text string) string { return text }
	for _, c := range []struct {
		parts []part
		whole int64
		want  string
	}{
		{nil, 0, strings.Repeat("·", 24)},
		{[]part{{1, "", "a"}}, 1, strings.Repeat("a", 24)},
		{[]part{{100, "", "a"}, {1900, "", "b"}}, 2000, "a" + strings.Repeat("b", 23)},
		{[]part{{1, "", "a"}, {1, "", "b"}}, 1 << 40, "ab" + strings.Repeat("·", 22)},
		{[]part{{-3, "", "a"}, {9, "", "b"}}, 3, strings.Repeat("b", 24)},
	} {
		if got := bar(c.parts, c.whole, plain); got != c.want {
			t.Errorf("%v of %d: %q, want %q", c.parts, c.whole, got, c.want)
		}
	}
}

func TestWithoutATerminalThereIsOneLineASecondAndALast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		gone := make(chan struct{})
		time.AfterFunc(2500*time.Millisecond, func() { close(gone) })
		newProgress(&b).follow(gone, sound)
		if n := strings.Count(b.String(), "\n"); n != 3 || escape.MatchString(b.String()) {
			t.Errorf("%d lines in 2.5 s, want 3 plain ones:\n%s", n, b.String())
		}
		if !strings.Contains(b.String(), "sold 101 of 101, oversold 0, asked 6256, admitted 111, refused 6135") {
			t.Errorf("a line does not say how it goes:\n%s", b.String())
		}
	})
}

func TestFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) {
		t.Error("lines would be drawn over in a file")
	}
}
