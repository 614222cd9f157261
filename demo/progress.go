package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// How often progress is shown: redrawn on a terminal, a line of its own elsewhere.
const (
	redrawn = 100 * time.Millisecond
	lined   = time.Second
)

// progress shows a sale as it goes. Whether anybody can still read it does not matter to the sale: errors of its
// writer are ignored.
type progress struct {
	out      io.Writer
	every    time.Duration
	terminal bool
	colour   bool
	drawn    int // lines on the terminal that the next drawing replaces
}

func newProgress(out io.Writer) *progress {
	if !isTerminal(out) {
		return &progress{out: out, every: lined}
	}
	return &progress{out: out, every: redrawn, terminal: true, colour: os.Getenv("NO_COLOR") == ""}
}

// isTerminal reports whether lines can be drawn over on out.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	stat, err := f.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

// follow shows what look sees until gone is closed, and then once more.
func (p *progress) follow(gone <-chan struct{}, look func() Report) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.show(look())
		case <-gone:
			p.show(look())
			return
		}
	}
}

func (p *progress) show(r Report) {
	if !p.terminal {
		_, _ = io.WriteString(p.out, plainLine(r))
		return
	}
	lines := panel(r, p.colour)
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn) // up, to draw over
	}
	b.WriteString("\x1b[?25l\x1b[?7l") // no cursor, and no wrapping: a wrapped line would count as two
	for _, line := range lines {
		b.WriteString("\r\x1b[K" + line + "\n")
	}
	b.WriteString("\x1b[?25h\x1b[?7h") // given back at once: whatever ends us, the terminal is as it was
	p.drawn = len(lines)
	_, _ = io.WriteString(p.out, b.String())
}

// plainLine is progress for logs and pipes.
func plainLine(r Report) string {
	ledger := ""
	if l := r.Ledger; l != nil {
		ledger = fmt.Sprintf(", ledger %d free %d held %d sold", l.Free, l.Held, l.Sold)
	}
	return fmt.Sprintf("%s: sold %d of %d, oversold %d%s, asked %d, admitted %d, refused %d, failed %d, in the shop %d, still trying %d\n",
		seconds(r.Took), r.Shop.Orders, r.Shop.Units, r.Shop.Oversold, ledger, r.Asked, r.Admitted, r.RefusedInAll(), r.Failed(), r.Shop.InFlight, r.trying())
}
