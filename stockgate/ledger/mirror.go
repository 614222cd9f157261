package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/stockgate/ledger/protocol"
)

// Mirror shows the free units of a ledger somewhere else, as of the version of h: in the shop's own key, for the pages
// that read it. It reports false where a later version is shown already, and may be called again after an error.
type Mirror func(ctx context.Context, sku string, h protocol.StockVersion) (written bool, err error)

// mirrorState is how far one SKU is with that. The queue's mutex guards it.
type mirrorState struct {
	want   protocol.StockVersion // the newest that is to be shown
	busy   bool                  // a goroutine shows it
	failed bool                  // the log says so
}

// mirrorWriter writes mirrors in the background.
type mirrorWriter struct {
	*core
	writes sync.WaitGroup
	ended  atomic.Bool // no more writes begin
}

const (
	mirrorTries = 4 // then a sweep tries again, in a second or later
	mirrorAgain = 50 * time.Millisecond
)

// reflect has the free units of v shown, soon: one write for a SKU is under way at a time, and the next one is of the
// newest version then. So writes follow each other at the pace of Redis, and the mirror is right within a round trip of
// the last change; an older version never overwrites a later one. What a verifying or frozen ledger says may be
// more than is free, and is not shown. mu is held.
func (r *mirrorWriter) reflect(q *skuQueue, s *cachedStock) {
	if r.o.Mirror == nil || r.ended.Load() || s.unusable() || s.State == protocol.Frozen ||
		!q.mirror.want.Older(s.StockVersion) {
		return
	}
	q.mirror.want = s.StockVersion
	if !q.mirror.busy {
		q.mirror.busy = true
		r.writes.Go(func() { r.writeMirror(q) })
	}
}

// writeMirror writes until the newest version is shown, or Redis has rejected too many writes.
func (r *mirrorWriter) writeMirror(q *skuQueue) {
	tries := 0
	for h, ok := q.toShow(protocol.StockVersion{}); ok; {
		ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
		written, err := r.show(ctx, q.sku, h)
		cancel()
		r.mirrorWrites.count(written, err)
		if tries++; err == nil {
			tries = 0
			h, ok = q.toShow(h)
			continue
		}
		r.reportMirror(q, err)
		if tries == mirrorTries || !pause(r.ctx, mirrorAgain<<tries) {
			q.giveUpShowing()
			return
		}
		h, ok = q.toShow(protocol.StockVersion{})
	}
}

// show writes what is free. A ledger that was archived has no total, and its key stays as it was.
func (r *mirrorWriter) show(ctx context.Context, sku string, h protocol.StockVersion) (written bool, err error) {
	if h.State == protocol.Ended && h.Free == 0 && h.Held == 0 {
		if s, ok, err := r.store.ReadStock(ctx, sku); err != nil || ok && s.Total == 0 && s.State == protocol.Ended {
			return false, err
		}
	}
	return r.o.Mirror(ctx, sku, h)
}

// toShow returns what is to be shown after done, or false when that is the newest; then busy is false.
func (q *skuQueue) toShow(done protocol.StockVersion) (protocol.StockVersion, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if done != (protocol.StockVersion{}) {
		q.mirror.failed = false
	}
	q.mirror.busy = done.Older(q.mirror.want)
	return q.mirror.want, q.mirror.busy
}

// giveUpShowing lets the next hint, the same one too, be shown.
func (q *skuQueue) giveUpShowing() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mirror.busy, q.mirror.want = false, protocol.StockVersion{}
}

// reportMirror logs once that the mirror cannot be written.
func (r *mirrorWriter) reportMirror(q *skuQueue, err error) {
	q.mu.Lock()
	said := q.mirror.failed
	q.mirror.failed = true
	q.mu.Unlock()
	if !said {
		r.o.Log.Error("what is free cannot be shown in the shop's own key", "sku", q.sku, "err", err)
	}
}

// checkMirror looks whether the mirror of a SKU is right, also after the instance that changed the ledger last has
// died before it wrote. Only maintenance calls it.
func (r *maintenance) checkMirror(ctx context.Context, q *skuQueue) {
	if r.o.Mirror == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	if s, ok, err := r.store.ReadStock(ctx, q.sku); err == nil && ok {
		r.batches.learnHint(q, s.StockVersion)
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
