package sale

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/periodic"
	"sluice/stockgate"
	"sluice/stockgate/layout"
)

// Writes is what a Writer writes.
type Writes struct {
	Stock  map[string]map[string]int // units by sale and SKU; a sale that is missing has none
	Status bool                      // the status follows the sales

	// Ended reports whether the ledger of a SKU has ended before its sale, where that is known. nil = there is no ledger.
	Ended func(ctx context.Context, sku string) (ended, known bool)
}

// Writer tells the shop's own keys of sales: the stock before the start, and the status when a sale opens, is paused,
// is resumed and ends. It looks at the sales four times a second until it is closed.
//
// Stock is written before the start alone, at most once for each sale, whatever its hours become. What is there is not
// overwritten. The status follows the sale that is on, and its ledger where that has ended. A write that fails is
// repeated. So is one that Redis has lost, with the mark that it was written: the mark is read every verifyEvery. What
// the shop has written since stays, and so does what another instance has.
type Writer struct {
	schedule *Schedule
	redis    *stockgate.Redis
	log      *slog.Logger
	writes   atomic.Pointer[Writes]
	stop     context.CancelFunc
	done     sync.WaitGroup

	otherStatus atomic.Pointer[string] // nil = none

	// Of the goroutine alone. What was written was written into the keys of this layout.
	layout *layout.Layout
	// By SKU, or by sale and SKU.
	open    map[string]writtenStatus // a SKU that is missing has none
	others  map[string]otherStatus
	marked  map[string]bool      // Redis knows that the stock was written, or was there
	retryAt map[string]time.Time // a write that failed is not repeated before
	logged  map[string]bool      // the log has its error
}

// writtenStatus is a status of which Redis had the mark at a time.
type writtenStatus struct {
	open bool
	n    int64 // of the writes until then, see layout.SetStatus
	at   time.Time
}

// otherStatus is a status that another instance has written, and since when it is seen.
type otherStatus struct {
	since  time.Time
	open   bool
	logged bool
}

const (
	lookEvery    = 250 * time.Millisecond
	verifyEvery  = 5 * time.Second
	mostVerified = 50               // SKUs of one look
	keptOpen     = 30 * time.Second // an instance that keeps a SKU open says so more often
	otherFor     = 5 * time.Second  // another status is reported then: not all instances are reloaded at once
	retryAfter   = 2 * time.Second
	writeTimeout = time.Second
	keepMark     = 24 * time.Hour // behind the end of a sale: a sale of its name is not filled again
)

// NewWriter returns a Writer that follows schedule.
func NewWriter(schedule *Schedule, redis *stockgate.Redis, p Writes, log *slog.Logger) *Writer {
	w := &Writer{schedule: schedule, redis: redis, log: log}
	w.Use(p)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.done.Go(func() { w.run(ctx) })
	return w
}

// Use writes what p says from now on.
func (w *Writer) Use(p Writes) { w.writes.Store(&p) }

// Close ends the writing.
func (w *Writer) Close() {
	w.stop()
	w.done.Wait()
}

func (w *Writer) run(ctx context.Context) {
	periodic.Now(ctx, lookEvery, func(ctx context.Context) {
		if l := w.redis.Layout(); l != w.layout {
			w.layout, w.open, w.marked = l, map[string]writtenStatus{}, map[string]bool{}
			w.retryAt, w.logged, w.others = map[string]time.Time{}, map[string]bool{}, map[string]otherStatus{}
		}
		w.fill(ctx)
		w.writeStatus(ctx)
	})
}

// fill writes the stock of sales that have not begun, while the clocks agree. Of the sales of a SKU it looks at the one
// that is on or comes next. One that has begun is only marked: if it is postponed then, its stock is not written again.
func (w *Writer) fill(ctx context.Context) {
	writes := w.writes.Load()
	if _, wrong := w.schedule.Skew(); wrong || len(writes.Stock) == 0 {
		return
	}
	for _, s := range w.schedule.All() {
		if s.State == Ended {
			continue
		}
		for _, sku := range slices.Sorted(maps.Keys(writes.Stock[s.Name])) {
			if name := s.Name + " " + sku; !w.marked[name] && w.due(name) && w.schedule.Sells(s.Name, sku) {
				w.fillOne(ctx, &s, sku, int64(writes.Stock[s.Name][sku]), name)
			}
		}
	}
}

func (w *Writer) fillOne(ctx context.Context, s *SaleStatus, sku string, units int64, name string) {
	f := layout.Filling{Sale: s.Name, Ends: s.Ends, Units: units, Keep: time.Until(s.Ends) + keepMark,
		// A write that is late must not come after the start.
		Write: s.Starts.Sub(w.schedule.Wall()) > writeTimeout, Now: w.schedule.Wall()}
	var done layout.Filled
	err := w.try(ctx, name, sku, func(ctx context.Context) (err error) {
		done, err = w.redis.Fill(ctx, sku, f)
		return err
	})
	if err == nil && done == layout.Later {
		w.retryAt[name] = time.Now().Add(retryAfter)
		return
	}
	w.marked[name] = err == nil
	switch {
	case err != nil || !f.Write:
	case done == layout.Written:
		w.log.Info("sale: stock written into the shop's key", "sale", s.Name, "sku", sku, "units", units)
	case done == layout.There:
		w.log.Info("sale: the shop's key has stock already; it is left as it is", "sale", s.Name, "sku", sku)
	case done == layout.Moved:
		w.log.Warn("sale: its stock was written for other hours; it is not written again: give a new sale a new name",
			"sale", s.Name, "sku", sku)
	}
}

// writeStatus writes the status of each SKU whose sale has opened or closed; while the clocks differ, only of sales that
// have begun or that it has opened. A sale that has not begun closes what was written here. What another instance has opened it closes only
// once none has kept it open for a while: that one may have a later file.
func (w *Writer) writeStatus(ctx context.Context) {
	defer w.report()
	writes := w.writes.Load()
	if !writes.Status || !w.redis.HasStatus() {
		clear(w.others)
		return
	}
	all, shared := w.schedule.All(), w.redis.SharesStatus()
	if shared && len(all) > 1 {
		clear(w.others)
		if !w.logged[""] {
			w.logged[""] = true
			w.log.Warn("the status of the shop is one for all SKUs, and there are several sales: it is not written; name the "+
				"SKU in it", "key", "stock.layout.status_key")
		}
		return
	}
	skus, sharing := map[string]Phase{}, map[string][]string{} // of a status that several have, by the first of them
	_, wrong := w.schedule.Skew()
	for _, s := range all {
		for _, sku := range s.SKUs {
			first := sku
			if shared {
				first = s.SKUs[0]
			}
			if p, ok := w.schedule.Phase([]byte(sku)); ok && !p.Doubt && (p.Begun || !wrong || w.open[first].open) {
				skus[first], sharing[first] = p, append(sharing[first], sku)
			}
		}
	}
	maps.DeleteFunc(w.others, func(sku string, _ otherStatus) bool { _, ok := skus[sku]; return !ok })
	verified := 0
	for _, sku := range w.longestAgo(skus) {
		if !w.due(sku) {
			continue
		}
		want := skus[sku].State == On
		if want && writes.Ended != nil {
			known := false
			if want, known = anySells(ctx, writes, sharing[sku]); !known { // the status stays as it is
				w.retryAt[sku] = time.Now().Add(retryAfter)
				continue
			}
		}
		was, ok := w.open[sku]
		again := ok && was.open == want
		if again && (was.n == 0 || time.Since(was.at) < verifyEvery || verified == mostVerified) {
			continue
		}
		change := layout.StatusChange{Open: want}
		switch {
		case again:
			change.Known = was.n
			verified++
		case !ok && skus[sku].State == Waiting:
			change.Patience = keptOpen
		}
		var mark layout.StatusMark
		w.logged[sku] = w.logged[sku] || again // an error then is that Redis is away, which the log has
		err := w.try(ctx, sku, sku, func(ctx context.Context) (err error) {
			mark, err = w.redis.SetStatus(ctx, sku, change)
			return err
		})
		if err != nil {
			continue
		}
		w.compare(sku, want, mark.Open, change.Patience)
		if mark.Open && change.Patience > 0 {
			w.retryAt[sku] = time.Now().Add(verifyEvery)
			continue
		}
		w.open[sku] = writtenStatus{want, mark.Writes, time.Now()}
		switch {
		case mark.Written && again:
			w.log.Warn("sale: Redis has lost the status; it is written into the shop's key again", "sku", sku,
				"on_sale", want)
		case mark.Written:
			w.log.Info("sale: status written into the shop's key", "sku", sku, "on_sale", want)
		}
	}
}

// anySells reports whether a SKU of some has a ledger that has not ended, where that is known.
func anySells(ctx context.Context, writes *Writes, some []string) (sells, known bool) {
	known = true
	for _, sku := range some {
		ended, ok := writes.Ended(ctx, sku)
		if ok && !ended {
			return true, true
		}
		known = known && ok
	}
	return false, known
}

// compare notes since when another instance has written another status than this one wants. One that this instance will
// change after its patience is reported when it has not.
func (w *Writer) compare(sku string, want, open bool, patience time.Duration) {
	if want == open {
		delete(w.others, sku)
	} else if _, seen := w.others[sku]; !seen {
		w.others[sku] = otherStatus{since: time.Now().Add(patience), open: open}
	}
}

// report tells of a status of another instance that has stayed for a while. The log has each once.
func (w *Writer) report() {
	var first *string
	for _, sku := range slices.Sorted(maps.Keys(w.others)) {
		o := w.others[sku]
		if time.Since(o.since) < otherFor {
			continue
		}
		words := map[bool]string{true: "on sale", false: "not on sale"}
		text := fmt.Sprintf("another instance has written into the shop's key that %q is %s, and by this one it is %s: make "+
			"the files the same, and restart this instance", sku, words[o.open], words[!o.open])
		if first == nil {
			first = &text
		}
		if !o.logged {
			o.logged = true
			w.others[sku] = o
			w.log.Warn("sale: " + text)
		}
	}
	w.otherStatus.Store(first)
}

// OtherStatus tells of a status that another instance has written and that is not that of this one; "" = there is none.
func (w *Writer) OtherStatus() string {
	if text := w.otherStatus.Load(); text != nil {
		return *text
	}
	return ""
}

// longestAgo are the SKUs, those first whose status was written or verified the longest ago.
func (w *Writer) longestAgo(skus map[string]Phase) []string {
	return slices.SortedFunc(maps.Keys(skus), func(a, b string) int {
		return cmp.Or(w.open[a].at.Compare(w.open[b].at), cmp.Compare(a, b))
	})
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
