package ledger

import (
	"context"
	"sync"
	"sync/atomic"
)

// Mirror shows the free units of a ledger somewhere else, as of the version of h: in the shop's own key, for the pages
// that read it. It reports false where a later version is shown already, and may be called again after an error.
type Mirror func(ctx context.Context, sku string, h StockVersion) (written bool, err error)

// mirrorState is how far one SKU is with that. The queue's mutex guards it.
type mirrorState struct {
	want   StockVersion // the newest that is to be shown
	busy   bool         // a goroutine shows it
	failed bool         // the log says so
}

// mirrorWriter writes mirrors in the background.
type mirrorWriter struct {
	*core
	writes sync.WaitGroup
	ended  atomic.Bool // no more writes begin
}

// reflect has the free units of v shown, soon: one write for a SKU is under way at a time, and the next one is of the
// newest version then. So writes follow each other at the pace of Redis, and the mirror is right within a round trip of
// the last change; an older version never overwrites a later one. What a verifying or frozen ledger says may be
// more than is free, and is not shown. mu is held.
func (r *mirrorWriter) reflect(q *skuQueue, s *cachedStock) {
	if r.live.Load().mirror == nil || r.ended.Load() || s.unusable() || s.State == Frozen ||
		!q.mirror.want.Older(s.StockVersion) {
		return
	}
	q.mirror.want = s.StockVersion
	if !q.mirror.busy {
		q.mirror.busy = true
		r.writes.Go(func() { r.writeMirror(q) })
	}
}

// writeMirror writes until the newest version is shown. Where Redis rejects a write, the next version or sweep has it
// shown.
func (r *mirrorWriter) writeMirror(q *skuQueue) {
	for h, ok := q.toShow(StockVersion{}); ok; h, ok = q.toShow(h) {
		ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
		written, err := r.show(ctx, q.sku, h)
		cancel()
		r.countMirror(written, err)
		if err != nil {
			r.giveUpShowing(q, err)
			return
		}
	}
}

// show writes what is free. A ledger that was archived has no total, and its key stays as it was.
func (r *mirrorWriter) show(ctx context.Context, sku string, h StockVersion) (written bool, err error) {
	if h.State == Ended && h.Free == 0 && h.Held == 0 {
		if s, ok, err := r.store.ReadStock(ctx, sku); err != nil || ok && s.Total == 0 && s.State == Ended {
			return false, err
		}
	}
	mirror := r.live.Load().mirror
	if mirror == nil {
		return false, nil // it ended meanwhile
	}
	return mirror(ctx, sku, h)
}

// toShow returns what is to be shown after done, or false when that is the newest; then busy is false.
func (q *skuQueue) toShow(done StockVersion) (StockVersion, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if done != (StockVersion{}) {
		q.mirror.failed = false
	}
	q.mirror.busy = done.Older(q.mirror.want)
	return q.mirror.want, q.mirror.busy
}

// giveUpShowing lets the next stock version, also the same one, be shown. It logs once that the mirror cannot be
// written.
func (r *mirrorWriter) giveUpShowing(q *skuQueue, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.mirror.failed {
		r.o.Log.Error("what is free cannot be shown in the shop's own key", "sku", q.sku, "err", err)
	}
	q.mirror = mirrorState{failed: true}
}

// checkMirror looks whether the mirror of a SKU is right, also after the instance that changed the ledger last has
// died before it wrote. Only maintenance calls it.
func (r *maintenance) checkMirror(ctx context.Context, q *skuQueue) {
	if r.live.Load().mirror == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	if s, ok, err := r.store.ReadStock(ctx, q.sku); err == nil && ok {
		r.batches.learnVersion(q, s.StockVersion)
	}
}

// What became of a write of the mirror.
const (
	mirrorWritten = "written"
	mirrorOlder   = "older"
	mirrorFailed  = "failed"
)

func (r *mirrorWriter) countMirror(written bool, err error) {
	result := mirrorOlder
	switch {
	case err != nil:
		result = mirrorFailed
	case written:
		result = mirrorWritten
	}
	r.mirrorWrites.WithLabelValues(result).Inc()
}
