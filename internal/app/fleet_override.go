package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/admin"
	"sluice/stockgate/exchange"
)

// changeOf is the name of an override of the fleet, as a change.
func changeOf(o *admin.Override) string {
	if o.SKU != "" {
		return "sku " + o.SKU
	}
	return "key " + o.Key
}

// keptForSKU is how long an override of a SKU is kept after its end: an instance must open the SKU again.
const keptForSKU = time.Hour

// putOverride makes want an override of the fleet, and gives it its ID.
func putOverride(ctx context.Context, x *exchange.Exchange, want *admin.Override) error {
	told := *want
	told.ID, told.Former, told.TOML = "", "", ""
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	keep := time.Duration(0)
	if want.SKU != "" {
		keep = keptForSKU
	}
	made, err := x.Put(ctx, changeOf(want), string(text), time.Until(want.Until), keep)
	if err != nil {
		return fmt.Errorf("override: nothing is changed: %w; to change this instance alone: --instance", err)
	}
	want.ID = "f" + strconv.FormatInt(made.Number, 36)
	return nil
}

// removeFromFleet ends o on all instances, where it is one of the fleet. mine tells that no other instance has ended
// it.
func (h *controller) removeFromFleet(ctx context.Context, o *admin.Override) (mine bool, err error) {
	if o.Scope != admin.ScopeFleet {
		return true, nil
	}
	x := h.g.fleet.exchange()
	if x == nil {
		return false, errAlone
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(o.ID, "f"), 36, 64)
	if err != nil {
		return false, fmt.Errorf("override %.40q: %w", o.ID, err)
	}
	return x.Remove(ctx, changeOf(o), number)
}

// overrideOf is the override of a change; ok is false for one that is not understood, as of a newer version.
func overrideOf(c exchange.Change) (o admin.Override, ok bool) {
	if json.Unmarshal([]byte(c.Text), &o) != nil || changeOf(&o) != c.Name {
		return o, false
	}
	o.ID, o.Scope, o.Until, o.Fault = "f"+strconv.FormatInt(c.Number, 36), admin.ScopeFleet, c.Until.UTC(), ""
	return o, true
}

// fleetChanged takes over what the fleet's overrides are now. One whose key this instance cannot override is told, and
// tried again with the next file.
func (h *controller) fleetChanged(changes []exchange.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := slices.Concat(h.overrides, h.unfit)
	var next, came []admin.Override
	for _, c := range changes {
		o, ok := overrideOf(c)
		if !ok || o.SKU == "" && (CheckOverridable(o.Key) != nil || !o.Until.After(time.Now())) {
			continue
		}
		at := slices.IndexFunc(before, func(b admin.Override) bool { return b.ID == o.ID })
		if at < 0 {
			came = append(came, o)
		} else {
			o.Until, o.TOML = before[at].Until, before[at].TOML
		}
		next = append(next, o)
	}
	for _, b := range before {
		if b.Claimed { // Redis has it no more, and this instance has still to open the SKU
			next = append(next, b)
		}
	}
	gone := slices.DeleteFunc(slices.Clone(before), func(b admin.Override) bool {
		return b.Scope != admin.ScopeFleet || slices.ContainsFunc(next, func(o admin.Override) bool { return o.ID == b.ID })
	})
	if len(came)+len(gone) == 0 {
		return
	}
	_, mine := unfitOfFleet(before)
	running, kept, unfit := h.laidOver(h.filed, append(mine, next...))
	if _, err := h.g.change(h.running, running); err != nil {
		h.log.Error("overrides of the fleet are not in force here", "err", err)
		return
	}
	ofFleet, dropped := unfitOfFleet(unfit)
	h.running, h.overrides, h.unfit = running, kept, ofFleet
	h.recordFleet(came, gone, dropped)
	h.awake()
}

// recordFleet puts on record what came, and what went before its end.
func (h *controller) recordFleet(came, gone, dropped []admin.Override) {
	for _, o := range came {
		fault := ""
		for _, u := range h.unfit {
			if u.ID == o.ID {
				fault = u.Fault
			}
		}
		h.g.trail.Record(admin.AuditEntry{Role: "sluice", Who: o.Who, What: "override.set", Object: o.Key + o.SKU,
			Detail: "override " + o.ID + ", fleet", After: o.Value, Until: o.Until},
			"override of the fleet", "of", o.Key+o.SKU, "value", o.Value, "until", o.Until, "not_here", fault)
	}
	for _, o := range gone {
		h.recordExpiry(o, "override.end", "override of the fleet ended")
	}
	for _, o := range dropped {
		h.recordExpiry(o, "override.drop", "override dropped: beside one of the fleet it has no room")
	}
}

// standing is how many overrides are in force here, and which of the fleet are not.
func (h *controller) standing() (inForce int, unfit []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.unfit[:min(len(h.unfit), 5)] {
		unfit = append(unfit, bounded(o.Key))
	}
	return len(h.overrides), unfit
}
