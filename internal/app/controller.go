package app

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
	"sluice/config/report"
	"sluice/internal/sorted"
)

// controller is who changes a running gate: a file that was read again, an operator's overrides, and their ends. One
// change is made at a time, all of it or nothing. It has so many methods because
// it is admin.Controller, and each part of a change is one.
type controller struct {
	g   *Gateway
	log *slog.Logger

	read     func() (*config.Config, error)        // the files again; nil = there are none
	onReload func(running *config.Config, ok bool) // hears how that went; nil = no one is told
	drain    chan struct{}                         // an operator asked for it; nil = the process cannot be ended here
	mode     bool                                  // the command line said --mode, which no file changes

	ledgers func() admin.Ledgers // nil = none is kept

	reading sync.Mutex // of the files; locked before mu

	mu        sync.Mutex
	filed     *config.Config   // as the files say
	running   *config.Config   // with the overrides
	overrides []admin.Override // of the fleet and of this instance, the earliest end first
	unfit     []admin.Override // of the fleet, that the configuration here has no room for
	unsettled []admin.Override // of SKUs, whose ledgers have still to hear of them

	lastID, lastNumber int64 // of this instance's own

	reloaded admin.Reload
	waits    []string // keys of filed that wait for a restart
	fault    string   // of the last reload; "" = it was good

	wake, stop, stopped chan struct{}
}

func newController(g *Gateway, log *slog.Logger) *controller {
	h := &controller{g: g, log: log, filed: g.Config, running: g.Config, ledgers: g.ledgers,
		reloaded: admin.Reload{At: time.Now().UTC(), OK: true},
		wake:     make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	go h.expireOverrides()
	return h
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
	if h.read == nil {
		return admin.Reloaded{}, errNoFile
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	next, err := h.read() // a disk may be slow; who asks how the gate is does not wait for it
	if bad := (*report.Error)(nil); errors.As(err, &bad) {
		err = bad.OfRunning()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var done admin.Reloaded
	if err == nil {
		done, err = h.apply(next, drop)
	}
	if h.onReload != nil {
		h.onReload(h.filed, err == nil)
	}
	h.reloaded = admin.Reload{At: time.Now().UTC(), OK: err == nil}
	if err != nil {
		h.g.reloaded.Set(0)
		h.reloaded.Problems = problemsOf(err)
		if !retry || err.Error() != h.fault {
			h.log.Error("configuration not reloaded; the running one stays", "err", err)
		}
		h.fault = err.Error()
		return done, &admin.BadFile{Problems: h.reloaded.Problems}
	}
	h.fault = ""
	return done, nil
}

// reloadUnasked is a reload that no operator of the API asked for: by a signal, or since a file has changed.
func (h *controller) reloadUnasked(retry bool) {
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

// apply has the gate run next, below what is overridden.
func (h *controller) apply(next *config.Config, drop bool) (done admin.Reloaded, err error) {
	kept, dropped := slices.Concat(h.overrides, h.unfit), []admin.Override(nil)
	if drop {
		kept, dropped = split(kept)
	}
	effective, kept, unfit := h.laidOver(next, kept)
	ofFleet, unfit := unfitOfFleet(unfit)
	changed, err := h.g.change(h.running, effective)
	if err != nil {
		return done, err
	}
	waits := waiting(h.g.Config, next)
	diff, sellElsewhere := config.Changes(h.filed, next), otherStock(h.filed, next)
	h.filed, h.running, h.overrides, h.unfit, h.waits = next, effective, kept, ofFleet, waits
	h.g.reloaded.Set(1) // before the log line: an operator who reads it may look at the metrics
	h.g.restartPending.Set(float64(len(waits)))
	for _, o := range append(dropped, unfit...) {
		done.Dropped = append(done.Dropped, o.ID)
		h.recordExpiry(o, "override.drop", "override dropped at a reload")
	}
	for _, o := range kept {
		done.Kept = append(done.Kept, o.ID)
	}
	done.Config, done.Restart, done.Changed = next.Version(), waits, inForce(diff)
	h.log.Info("configuration reloaded", "changed", changed, "config", next.Version(), "diff", said(diff),
		"overrides_kept", len(kept), "overrides_dropped", len(done.Dropped))
	if len(sellElsewhere) > 0 {
		h.log.Warn("routes sell from another stock now: their gate changed between check and reserve; set that stock, and "+
			"change all instances", "routes", sellElsewhere)
	}
	if len(waits) > 0 {
		h.log.Warn("these keys change only with a restart, and stay as they were", "keys", waits, "why", whyRestart(waits))
	}
	return done, nil
}

// split keeps the overrides of SKUs, which no file says anything of, and those of the fleet, which hold for all
// instances.
func split(all []admin.Override) (kept, keys []admin.Override) {
	for _, o := range all {
		if o.SKU != "" || o.Scope == admin.ScopeFleet {
			kept = append(kept, o)
		} else {
			keys = append(keys, o)
		}
	}
	return kept, keys
}

// laidOver is c as far as it is live with what is overridden, and what of it there is no room for: a rate that has
// gone, a number that contradicts a new one. What is overridden here alone is above what is for the fleet. Those kept
// are in the order of their ends.
func (h *controller) laidOver(c *config.Config, all []admin.Override) (
	effective *config.Config, kept, unfit []admin.Override,
) {
	c = h.g.Config.Keep(c, ChangesOnReload)
	effective = c
	all = slices.Clone(all)
	sorted.By(all, func(x, y admin.Override) int { return cmp.Compare(x.Scope, y.Scope) }) // "fleet" is first
	for _, o := range all {
		if o.SKU == "" {
			next, err := effective.With(map[string]any{o.Key: o.Value})
			if err != nil {
				o.Fault = err.Error()
				unfit = append(unfit, o)
				continue
			}
			effective = next
			o.Before, _ = c.ValueOf(o.Key) // With has found it
		}
		kept = append(kept, o)
	}
	sorted.By(kept, func(x, y admin.Override) int { return x.Until.Compare(y.Until) })
	return effective, kept, unfit
}

// unfitOfFleet are those of all that hold on other instances, and may hold here with another file.
func unfitOfFleet(all []admin.Override) (fleet, own []admin.Override) {
	for _, o := range all {
		if o.Scope == admin.ScopeFleet {
			fleet = append(fleet, o)
		} else {
			own = append(own, o)
		}
	}
	return fleet, own
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

// inForce are the changes of a file that a reload makes; one below an override shows when that ends.
func inForce(diff []config.Change) []admin.Changed {
	changed := []admin.Changed{}
	for _, c := range diff {
		if ChangesOnReload(c.Key) {
			changed = append(changed, admin.Changed(c))
		}
	}
	return changed
}

func problemsOf(err error) (problems []admin.Problem) {
	if bad := (*report.Error)(nil); errors.As(err, &bad) {
		for _, p := range bad.Problems {
			problems = append(problems, admin.Problem(p))
		}
		return problems
	}
	return []admin.Problem{{Message: err.Error()}}
}

// Reload implements admin.Controller.
func (h *controller) Reload(_ context.Context, drop bool) (admin.Reloaded, error) {
	return h.reload(drop, false)
}
