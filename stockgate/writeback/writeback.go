// Package writeback tells the shop's own keys of sales: the stock before the start, and the status when a sale opens, is
// paused, is resumed and ends.
//
// It promises that stock is written before the start alone, and never over what is there; that each change of a sale is
// written once, by whichever instance is first; and that an earlier change never overwrites a later one. A write that
// fails is repeated. It decides about no request, and writes nothing but what Plan says.
package writeback

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/stockgate"
	"sluice/stockgate/sale"
)

// Plan is what is written.
type Plan struct {
	Stock  map[string]map[string]int // units by sale and SKU; a sale that is missing has none
	Status bool                      // the status follows the sales
}

// Writer looks at the sales four times a second until it is closed.
type Writer struct {
	schedule *sale.Schedule
	redis    *stockgate.Redis
	log      *slog.Logger
	plan     atomic.Pointer[Plan]
	stop     context.CancelFunc
	done     sync.WaitGroup

	// Of the goroutine alone, by SKU, or by sale and SKU.
	statuses map[string]status    // the status that was written
	filled   map[string]bool      // stock was written, or was there
	retryAt  map[string]time.Time // a write that failed is not repeated before
	logged   map[string]bool      // the log has its error
}

// status is whether a SKU is on sale, as of a time (Unix ms).
type status struct {
	open  bool
	since int64
}

const (
	lookEvery    = 250 * time.Millisecond
	retryAfter   = 2 * time.Second
	writeTimeout = time.Second
	keepFilled   = 24 * time.Hour // behind the end of a sale: its lists are not filled again
)

// New returns a Writer that follows schedule.
func New(schedule *sale.Schedule, redis *stockgate.Redis, p Plan, log *slog.Logger) *Writer {
	w := &Writer{schedule: schedule, redis: redis, log: log, statuses: map[string]status{}, filled: map[string]bool{},
		retryAt: map[string]time.Time{}, logged: map[string]bool{}}
	w.Use(p)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.done.Go(func() { w.run(ctx) })
	return w
}

// Use writes by another plan from now on.
func (w *Writer) Use(p Plan) { w.plan.Store(&p) }

// Close ends the writing.
func (w *Writer) Close() {
	w.stop()
	w.done.Wait()
}

func (w *Writer) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		w.fill(ctx)
		w.writeStatus(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// fill writes the stock of sales that have not begun, while the clocks agree.
func (w *Writer) fill(ctx context.Context) {
	plan := w.plan.Load()
	if _, wrong := w.schedule.Skew(); wrong || len(plan.Stock) == 0 {
		return
	}
	for _, s := range w.schedule.All() {
		left := s.Starts.Sub(w.schedule.Wall())
		if s.State != sale.Waiting || left <= writeTimeout { // a write that is late must not come after the start
			continue
		}
		id := fmt.Sprintf("%s %d", s.Name, s.Starts.Unix())
		for _, sku := range slices.Sorted(maps.Keys(plan.Stock[s.Name])) {
			units, name := int64(plan.Stock[s.Name][sku]), id+" "+sku
			if w.filled[name] || !w.due(name) {
				continue
			}
			filled := false
			err := w.try(ctx, name, sku, func(ctx context.Context) (err error) {
				filled, err = w.redis.Fill(ctx, sku, units, id, time.Until(s.Ends)+keepFilled)
				return err
			})
			w.filled[name] = err == nil
			if filled {
				w.log.Info("sale: stock written into the shop's key", "sale", s.Name, "sku", sku, "units", units)
			}
		}
	}
}

// writeStatus writes the status of each SKU whose sale has changed.
func (w *Writer) writeStatus(ctx context.Context) {
	if !w.plan.Load().Status || !w.redis.HasStatus() {
		return
	}
	all := w.schedule.Changes()
	if w.redis.SharesStatus() && len(all) > 1 {
		if !w.logged[""] {
			w.logged[""] = true
			w.log.Warn("the status of the shop is one for all SKUs, and there are several sales: it is not written; name the "+
				"SKU in it", "key", "stock.layout.status_key")
		}
		return
	}
	now := map[string]status{}
	for _, s := range all {
		if s.Since == 0 {
			continue
		}
		for _, sku := range s.SKUs {
			one := status{s.State == sale.On, s.Since}
			if was, ok := now[sku]; !ok || one.since > was.since || one.since == was.since && one.open {
				now[sku] = one
			}
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(now)) {
		want, was := now[sku], w.statuses[sku]
		if want == was || want.open == was.open && was.since > want.since || !w.due(sku) {
			continue
		}
		if want.since <= was.since { // other hours came with a reload
			want.since = w.schedule.Wall().UnixMilli()
		}
		written := false
		err := w.try(ctx, sku, sku, func(ctx context.Context) (err error) {
			written, err = w.redis.SetStatus(ctx, sku, want.open, want.since)
			return err
		})
		if err != nil {
			continue
		}
		w.statuses[sku] = want
		if written {
			w.log.Info("sale: status written into the shop's key", "sku", sku, "on_sale", want.open)
		}
	}
}

// due reports whether a write may be tried now.
func (w *Writer) due(name string) bool { return !time.Now().Before(w.retryAt[name]) }

// try writes once. An error is logged once until a write succeeds.
func (w *Writer) try(ctx context.Context, name, sku string, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := write(ctx)
	if err == nil {
		delete(w.retryAt, name)
		delete(w.logged, name)
		return nil
	}
	w.retryAt[name] = time.Now().Add(retryAfter)
	if !w.logged[name] && ctx.Err() != context.Canceled {
		w.logged[name] = true
		w.log.Error("sale: the shop's key could not be written; it is tried again", "sku", sku, "err", err)
	}
	return err
}
