package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sluice/admin"
	"sluice/config"
)

// controller is who changes a running gateway: a file that was read again, an operator's overrides, and their ends. One
// change is made at a time, all of it or nothing.
type controller struct {
	g   *Gateway
	log *slog.Logger

	load  func() (*config.Config, error) // reads the files again; nil = there are none
	files *configFiles                   // that load reads
	drain chan struct{}                  // an operator asked for it; nil = the process cannot be ended here
	mode  bool                           // the command line said --mode, which no file changes

	reading sync.Mutex // of the files; locked before changing

	// changing is locked for a change, which may wait for Redis; mu, within it, while what others read is written. Who
	// changes reads without mu.
	changing           sync.Mutex
	closed             bool             // nothing changes any more
	unsettled          []admin.Override // of SKUs, whose ledgers have still to hear of them
	lastID, lastNumber int64            // of this instance's own

	mu        sync.Mutex       // of what follows, and of what is in force
	filed     *config.Config   // as the files say
	overrides []admin.Override // of the fleet and of this instance, the earliest end first
	reloaded  admin.Reload
	fault     string // of the last reload; "" = it was good

	wake, stop, stopped chan struct{}
}

func newController(g *Gateway, log *slog.Logger) *controller {
	return &controller{g: g, log: log, filed: g.Config,
		reloaded: admin.Reload{At: time.Now().UTC(), OK: true},
		wake:     make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// stopChanges ends all changes, after the one that is under way.
func (h *controller) stopChanges() {
	h.changing.Lock()
	defer h.changing.Unlock()
	h.closed = true
}

// write changes what others read.
func (h *controller) write(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// close ends the waiting for the ends of overrides. What they paused in Redis stays so, and is told.
func (h *controller) close() {
	close(h.stop)
	<-h.stopped
	for _, o := range h.Overrides() {
		if o.SKU != "" && o.Scope == admin.ScopeInstance {
			h.log.Warn("this instance ends before its override of a SKU: it stays as it is until an operator says otherwise",
				"sku", o.SKU, "state", o.Value, "until", o.Until)
		}
	}
}

// config is what the files say.
func (h *controller) config() *config.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.filed
}

// errNoFile is the answer where nothing can be read again.
var errNoFile = fmt.Errorf("reload: %w: no configuration file is behind this gateway", admin.ErrConflict)

// reload reads the files again. A bad one changes nothing, and is told of; but not once more where it is only tried
// again and nothing has changed. drop ends the overrides of keys; otherwise those stay that the new file has room for.
func (h *controller) reload(drop, retry bool) (admin.Reloaded, error) {
	if h.load == nil {
		return admin.Reloaded{}, errNoFile
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	h.files.changed()
	next, err := h.read() // a disk may be slow; who asks how the gate is does not wait for it
	if bad := (*config.Error)(nil); errors.As(err, &bad) {
		err = bad.OfRunning()
	}
	h.changing.Lock()
	defer h.changing.Unlock()
	var done admin.Reloaded
	if err == nil {
		done, err = h.apply(next, drop)
	}
	h.files.set(h.filed.Files(), err != nil)
	told, fault, before := admin.Reload{At: time.Now().UTC(), OK: err == nil}, "", h.fault
	if err != nil {
		h.g.reloaded.Set(0)
		told.Problems, fault = problemsOf(err), err.Error()
	}
	h.write(func() { h.reloaded, h.fault = told, fault })
	if err == nil {
		return done, nil
	}
	if !retry || fault != before {
		h.log.Error("configuration not reloaded; the running one stays", "err", err)
	}
	return done, &admin.BadFile{Problems: told.Problems}
}

// reloadUnasked is a reload that no operator of the API asked for: by a signal, or since a file has changed.
func (h *controller) reloadUnasked(retry bool) {
	if retry && !h.faulty() {
		return // the file was read, and was good, since the retry fell due
	}
	done, err := h.reload(false, retry)
	deed := admin.AuditEntry{Role: "sluice", What: "config.reload", Object: done.Config, After: done}
	if bad := (*admin.BadFile)(nil); errors.As(err, &bad) {
		deed = admin.AuditEntry{Role: "sluice", What: "config.reject", Detail: bad.Text()}
		if retry {
			return // it is on record already
		}
	}
	h.g.trail.Record(deed, "")
}

// read reads the files again, unless one would be waited for without end.
func (h *controller) read() (*config.Config, error) {
	if err := h.files.readable(); err != nil {
		return nil, err
	}
	return h.load()
}

// faulty reports whether the last reading of the files failed.
func (h *controller) faulty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault != ""
}

// apply has the gateway run next, below what is overridden.
func (h *controller) apply(next *config.Config, drop bool) (done admin.Reloaded, err error) {
	kept, dropped := h.overrides, []admin.Override(nil)
	if drop {
		// no file says anything of SKUs, and what is of the fleet holds for all instances
		stays := func(o admin.Override) bool { return o.SKU != "" || ofFleet(o) }
		kept = slices.DeleteFunc(slices.Clone(h.overrides), func(o admin.Override) bool { return !stays(o) })
		dropped = slices.DeleteFunc(slices.Clone(h.overrides), stays)
	}
	effective, kept, unfit := h.laidOver(next, kept)
	changed := changedKeys(h.g.running.Load(), effective)
	if err := h.g.swap(effective); err != nil {
		return done, err
	}
	diff := config.Changes(h.filed, next)
	done.Warnings = otherStock(h.filed, next)
	h.write(func() { h.filed, h.overrides = next, kept })
	h.g.reloaded.Set(1) // before the log line: an operator who reads it may look at the metrics
	for _, o := range append(dropped, unfit...) {
		done.Dropped = append(done.Dropped, o.ID)
		h.recordExpiry(o, "override.drop", "override dropped at a reload")
	}
	for _, o := range h.inForce() {
		done.Kept = append(done.Kept, o.ID)
	}
	done.Config, done.Changed = next.Version(), diff
	h.log.Info("configuration reloaded", "changed", changed, "config", next.Version(), "diff", said(diff),
		"overrides_kept", len(done.Kept), "overrides_dropped", len(done.Dropped))
	for _, w := range done.Warnings {
		h.log.Warn(w, "hint", "the gate must be the same on all instances")
	}
	return done, nil
}

// ofFleet reports whether o holds on all instances: one that has no room here may have it with another file.
func ofFleet(o admin.Override) bool { return o.Scope == admin.ScopeFleet }

// byEnd is the order of overrides.
func byEnd(x, y admin.Override) int { return x.Until.Compare(y.Until) }

// laidOver is c with what is overridden. There may be no room for it: a rate has gone, a number
// contradicts a new one. Then one of the fleet is marked, and another one is dropped. What is overridden here alone is
// above what is for the fleet. Those kept are in the order of their ends.
func (h *controller) laidOver(c *config.Config, all []admin.Override) (
	effective *config.Config, kept, dropped []admin.Override,
) {
	effective = c
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y admin.Override) int { return cmp.Compare(x.Scope, y.Scope) }) // "fleet" is first
	for _, o := range all {
		if o.SKU == "" {
			next, err := effective.With(map[string]any{o.Key: o.Value})
			switch {
			case err != nil:
				o.Unfit, o.Fault = true, err.Error()
			case o.Unfit:
				o.Unfit, o.Fault = false, ""
			}
			if !o.Unfit {
				effective = next
				o.Before, _ = c.ValueOf(o.Key) // With has found it
			}
		}
		if o.Unfit && !ofFleet(o) {
			dropped = append(dropped, o)
		} else {
			kept = append(kept, o)
		}
	}
	slices.SortStableFunc(kept, byEnd)
	return effective, kept, dropped
}

// maxDiff bounds the changes that one line of the log tells.
const maxDiff = 40

func said(diff []config.Change) []string {
	lines := make([]string, 0, min(len(diff), maxDiff))
	for _, c := range diff[:min(len(diff), maxDiff)] {
		lines = append(lines, c.String())
	}
	if more := len(diff) - maxDiff; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

func problemsOf(err error) []config.Problem {
	if bad := (*config.Error)(nil); errors.As(err, &bad) {
		return bad.Problems
	}
	return []config.Problem{{Message: err.Error()}}
}

// Reload implements admin.Controller.
func (h *controller) Reload(_ context.Context, drop bool) (admin.Reloaded, error) {
	return h.reload(drop, false)
}
