package ledger

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Mirror shows the free units of a ledger somewhere else, as of the version of h: in the shop's own key, for the pages
// that read it. It reports false where a later version is shown already, and may be called again after an error.
type Mirror func(ctx context.Context, sku string, h Hint) (written bool, err error)

// mirrored is how far one line is with that. The line's mutex guards it.
type mirrored struct {
	want   Hint // the newest that is to be shown
	busy   bool // somebody shows it
	failed bool // the log says so
}

const (
	mirrorTries = 4 // then a sweep tries again, in a second or later
	mirrorAgain = 50 * time.Millisecond
)

// reflect has the free units of v shown, soon: one write for a SKU is under way at a time, and the next one is of the
// newest version then. So writes follow each other at the pace of Redis, and the mirror is right within a round trip of
// the last change; an older version never overwrites a later one. What a doubted or frozen ledger says may be
// more than is free, and is not shown. mu is held.
func (d *Desk) reflect(l *line, v *view) {
	if d.o.Mirror == nil || d.still.Load() || v.blank() || v.State == Frozen || !l.mirror.want.before(v.Hint) {
		return
	}
	l.mirror.want = v.Hint
	if !l.mirror.busy {
		l.mirror.busy = true
		d.mirrors.Go(func() { d.show(l) })
	}
}

// show writes until the newest version is shown, or Redis has refused too often.
func (d *Desk) show(l *line) {
	tries := 0
	for h, ok := l.toShow(Hint{}); ok; {
		ctx, cancel := context.WithTimeout(d.ctx, d.o.Timeout)
		written, err := d.o.Mirror(ctx, l.sku, h)
		cancel()
		d.shown.count(written, err)
		if tries++; err == nil {
			tries = 0
			h, ok = l.toShow(h)
			continue
		}
		d.complain(l, err)
		if tries == mirrorTries || !d.pause(d.ctx, mirrorAgain<<tries) {
			l.giveUpShowing()
			return
		}
		h, ok = l.toShow(Hint{})
	}
}

// toShow returns what is to be shown after done, or false when that is the newest; then nobody is busy any more.
func (l *line) toShow(done Hint) (Hint, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done != (Hint{}) {
		l.mirror.failed = false
	}
	l.mirror.busy = done.before(l.mirror.want)
	return l.mirror.want, l.mirror.busy
}

// giveUpShowing lets the next hint, the same one too, be shown.
func (l *line) giveUpShowing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mirror.busy, l.mirror.want = false, Hint{}
}

// complain says once that the mirror cannot be written.
func (d *Desk) complain(l *line, err error) {
	l.mu.Lock()
	said := l.mirror.failed
	l.mirror.failed = true
	l.mu.Unlock()
	if !said {
		d.o.Log.Error("what is free cannot be shown in the shop's own key", "sku", l.sku, "err", err)
	}
}

// remirror looks whether the mirror of a line is right, whoever changed the ledger last: that one may have died before it
// had written. Only the watch calls it.
func (d *Desk) remirror(ctx context.Context, l *line) {
	if d.o.Mirror == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	if s, ok, err := d.store.Look(ctx, l.sku); err == nil && ok {
		d.note(l, s.Hint)
	}
}

// mirrorCounts count writes of the mirror.
type mirrorCounts struct{ written, older, failed atomic.Uint64 }

func (c *mirrorCounts) count(written bool, err error) {
	switch {
	case err != nil:
		c.failed.Add(1)
	case written:
		c.written.Add(1)
	default:
		c.older.Add(1)
	}
}

func (c *mirrorCounts) collect(ch chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("sluice_ledger_mirror_writes_total",
		"Writes of what is free to the shop's own keys; older ones came after a later version.", []string{"result"}, nil)
	for result, n := range map[string]*atomic.Uint64{"written": &c.written, "older": &c.older, "failed": &c.failed} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.Load()), result)
	}
}
