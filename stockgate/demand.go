package stockgate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"sluice/internal/periodic"
	"sluice/proxy/metrics"
	"sluice/stockgate/layout"
)

// WatchOptions say what a Watch follows.
type WatchOptions struct {
	Counters *metrics.Counters
	Named    []string // SKUs that metrics name whatever is asked for: those of sales
	Most     int      // SKUs that metrics name; 0 = none

	Gate   *Gate                 // nil = no stock is read
	Source Source                // of Gate
	Reads  bool                  // the routes look at the shop's keys, so that they may be read here too
	Ledger func(sku string) bool // whether it has a ledger; nil = there are none

	Now func() int64 // the clock of Gate, in ns
	Log *slog.Logger
}

const (
	lookEvery   = time.Second
	watchAtOnce = 320 // SKUs in one round trip
	oldReading  = int64(5 * time.Second)
	candidates  = 64 // most wanted names, of which clients may have invented some
	maxHot      = 10 // SKUs that are shown as hot

	hotRequests = 1000 // recent ones for a SKU, from which on the log names it
	hotShare    = 10   // and per cent of all
)

// Watch follows which SKUs clients ask for, and what the shop's own keys have left of them, for metrics, the dashboard
// and the log. It looks once a second until it is closed, and decides about no request. Metrics name a bounded number
// of SKUs, and none that a client invented: those of sales, and of the others the most wanted that have stock. It is a
// prometheus.Collector and safe for concurrent use.
type Watch struct {
	o       WatchOptions
	stop    context.CancelFunc
	stopped chan struct{}

	turn   int             // the chunk that is read next; of the goroutine alone
	logged map[string]bool // hot SKUs that the log has named; likewise

	mu       sync.Mutex
	reads    bool
	named    []string         // sorted
	left     map[string]int64 // units by SKU, where they are known
	readings map[string]*readings
	others   uint64 // readings of SKUs without a name
	hot      []metrics.HotSKU
}

// readings count what the gate has read of one SKU, also when the gate has forgotten it meanwhile.
type readings struct{ all, before uint64 }

// NewWatch returns a Watch. The caller closes it.
func NewWatch(o WatchOptions) *Watch {
	w := newWatch(o)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.run(ctx)
	return w
}

// newWatch makes a Watch that does not look by itself.
func newWatch(o WatchOptions) *Watch {
	w := &Watch{o: o, stopped: make(chan struct{}), logged: map[string]bool{}, left: map[string]int64{},
		readings: map[string]*readings{}}
	w.Use(o.Named, o.Reads)
	return w
}

// Close ends the looking.
func (w *Watch) Close() {
	w.stop()
	<-w.stopped
}

// Use adds the SKUs of a new configuration, as far as there is room, and says whether its routes look at the shop's
// keys. What is named stays named: a counter that went would begin anew.
func (w *Watch) Use(named []string, reads bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads = reads && w.o.Gate != nil
	w.name(named)
}

// name names those of skus that are new, as far as there is room. mu is held.
func (w *Watch) name(skus []string) {
	added := []string{}
	for _, sku := range skus {
		at, found := slices.BinarySearch(w.named, sku)
		if found || len(w.named) >= w.o.Most || !utf8.ValidString(sku) {
			continue
		}
		w.named = slices.Insert(w.named, at, sku)
		w.readings[sku] = &readings{}
		if r, ok := w.lastReading(sku); ok {
			w.readings[sku].before = r.Readings
		}
		added = append(added, sku)
	}
	if len(added) > 0 {
		w.o.Counters.NameSKUs(added...)
	}
}

func (w *Watch) lastReading(sku string) (r SKUReading, ok bool) {
	if w.o.Gate == nil {
		return r, false
	}
	return w.o.Gate.LastReading(sku)
}

func (w *Watch) run(ctx context.Context) {
	defer close(w.stopped)
	periodic.After(ctx, lookEvery, w.look)
}

// look brings everything up to date.
func (w *Watch) look(ctx context.Context) {
	now := w.o.Now()
	wanted := w.o.Counters.HotSKUs(candidates, now)
	if w.o.Most == 0 {
		wanted = nil
	}
	w.mu.Lock()
	reads, skus, before := w.reads, slices.Clone(w.named), w.left
	w.mu.Unlock()
	for _, one := range wanted {
		if _, found := slices.BinarySearch(skus, one.SKU); !found && utf8.ValidString(one.SKU) {
			skus = append(skus, one.SKU)
		}
	}
	left := map[string]int64{}
	if reads {
		left = w.readLeft(ctx, now, skus, before)
	}
	hot, fresh, all := w.known(wanted, left)
	w.mu.Lock()
	w.left, w.hot = left, hot
	w.name(fresh)
	w.countReadings()
	w.mu.Unlock()
	w.logHot(hot, left, all)
}

// readLeft returns what is left of skus, as far as that is known: by the gate where it has read lately, else by a
// reading of our own, of one chunk each time.
func (w *Watch) readLeft(ctx context.Context, now int64, skus []string, before map[string]int64) map[string]int64 {
	left, unread := map[string]int64{}, []string{}
	for _, sku := range skus {
		if r, ok := w.lastReading(sku); ok && now-r.At <= oldReading {
			left[sku] = r.Free
			continue
		}
		unread = append(unread, sku)
		if units, ok := before[sku]; ok {
			left[sku] = units
		}
	}
	if len(unread) == 0 {
		return left
	}
	first := w.turn * watchAtOnce
	if first >= len(unread) {
		w.turn, first = 0, 0
	}
	w.turn++
	chunk := unread[first:min(first+watchAtOnce, len(unread))]
	found := make([]layout.Reading, len(chunk))
	err := w.o.Source.Read(ctx, chunk, found)
	for i, sku := range chunk {
		if delete(left, sku); err == nil && found[i].Fault == nil && found[i].Exists {
			left[sku] = max(found[i].Free, 0)
		}
	}
	return left
}

// known returns those of wanted that have stock, at most maxHot, and the names among them for which there was none
// yet. all is how many recent requests there were for any SKU, about.
func (w *Watch) known(wanted []metrics.HotSKU, left map[string]int64) (hot []metrics.HotSKU, fresh []string,
	all uint64) {
	for _, one := range wanted {
		all += one.Requests
		w.mu.Lock()
		_, named := slices.BinarySearch(w.named, one.SKU)
		w.mu.Unlock()
		if _, ok := left[one.SKU]; !named && !ok && (w.o.Ledger == nil || !w.o.Ledger(one.SKU)) {
			continue
		}
		if !utf8.ValidString(one.SKU) {
			continue
		}
		if fresh = append(fresh, one.SKU); len(hot) < min(maxHot, w.o.Most) {
			hot = append(hot, one)
		}
	}
	return hot, fresh, all
}

// countReadings follows the gate's counts. mu is held.
func (w *Watch) countReadings() {
	if w.o.Gate == nil {
		return
	}
	named := uint64(0)
	for sku, r := range w.readings {
		if now, ok := w.lastReading(sku); ok {
			if now.Readings < r.before {
				r.before = 0 // the gate has forgotten the SKU, and met it again
			}
			r.all, r.before = r.all+now.Readings-r.before, now.Readings
		}
		named += r.all
	}
	if all := w.o.Gate.Readings(); all > named {
		w.others = max(w.others, all-named)
	}
}

// logHot names a SKU once, until the requests for it are fewer than half of what makes it hot.
func (w *Watch) logHot(hot []metrics.HotSKU, left map[string]int64, all uint64) {
	still := map[string]bool{}
	for _, one := range hot {
		isHot := one.Requests >= hotRequests && one.Requests*100 >= all*hotShare
		if isHot && !w.logged[one.SKU] {
			stock := "unknown"
			if units, ok := left[one.SKU]; ok {
				stock = fmt.Sprint(units)
			}
			w.o.Log.Info("a SKU is hot: many recent requests ask for it", "sku", one.SKU, "requests", one.Requests,
				"percent", one.Requests*100/all, "left", stock)
		}
		if isHot || w.logged[one.SKU] && one.Requests >= hotRequests/2 {
			still[one.SKU] = true
		}
	}
	w.logged = still
}
