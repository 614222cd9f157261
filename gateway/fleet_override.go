package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/admin"
	"sluice/stockgate/fleet"
)

const ofSKU = "sku "

// changeOf is the name of an override of the fleet, as a change.
func changeOf(o *admin.Override) string {
	if o.SKU != "" {
		return ofSKU + o.SKU
	}
	return "key " + o.Key
}

// keptForSKU is how long an override of a SKU is kept after its end: an instance must open the SKU again.
const keptForSKU = time.Hour

// putOverride writes want into the list of the fleet, and gives it its ID.
func putOverride(ctx context.Context, x *fleet.Fleet, want *admin.Override) error {
	told := *want
	told.ID, told.Former, told.TOML = "", "", ""
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	keep, alone := time.Duration(0), "; to change this instance alone: --instance"
	if want.SKU != "" {
		keep, alone = keptForSKU, ""
	}
	made, err := x.Put(ctx, changeOf(want), string(text), time.Until(want.Until), keep)
	switch {
	case fleet.Unmade(err):
		return fmt.Errorf("override: nothing is changed: %w%s", err, alone)
	case err != nil:
		return fmt.Errorf("override: it may be made, and holds on all instances then: sluice override list tells in a "+
			"second or two: %w", err)
	}
	want.ID, want.Number = idOf(made.Number), made.Number
	return nil
}

func idOf(number int64) string { return "f" + strconv.FormatInt(number, 36) }

// removeFromFleet takes o off the list that has it.
func (h *controller) removeFromFleet(ctx context.Context, o *admin.Override) error {
	if x := h.g.fleet.current(); o.Scope == admin.ScopeFleet && x != nil {
		return x.Remove(ctx, changeOf(o), o.Number)
	}
	return nil // it is this instance's alone
}

// overrideOf is the override of a change; ok is false for one that is not understood, as of a newer version.
func overrideOf(c fleet.Change) (o admin.Override, ok bool) {
	if json.Unmarshal([]byte(c.Text), &o) != nil || changeOf(&o) != c.Name {
		return o, false
	}
	o.ID, o.Number, o.Scope = idOf(c.Number), c.Number, admin.ScopeFleet
	o.Until, o.Fault = c.Until.UTC(), ""
	return o, o.SKU != "" || CheckOverridable(o.Key) == nil
}

// fleetChanged takes over what the list of the fleet says now. again tells that ledgers may have lost what they were
// told of it: they are told all of it once more.
func (h *controller) fleetChanged(changes []fleet.Change, again bool) {
	if h.g.fleet.current() == nil {
		return // this instance has left it
	}
	h.changing.Lock()
	defer h.changing.Unlock()
	before := h.overrides
	next, came := h.listed(changes, before, again)
	gone := slices.DeleteFunc(slices.Clone(before), func(b admin.Override) bool {
		return !ofFleet(b) || slices.ContainsFunc(next, func(o admin.Override) bool { return o.ID == b.ID })
	})
	defer h.awake()
	if len(came)+len(gone) == 0 {
		return
	}
	mine := slices.DeleteFunc(slices.Clone(before), ofFleet)
	running, kept, dropped := h.laidOver(h.filed, append(mine, next...))
	if err := h.g.swap(running); err != nil {
		h.log.Error("overrides of the fleet are not in force here", "err", err)
		return
	}
	h.write(func() { h.overrides = kept })
	h.recordFleet(came, gone, dropped)
}

// listed are the overrides of the fleet that hold on by a list, and those of them that are new. One whose key this
// instance cannot override is told, and tried again with the next file. What is known here and not in the list holds
// until its end: it was made a moment ago.
func (h *controller) listed(changes []fleet.Change, before []admin.Override, again bool,
) (next, came []admin.Override) {
	last := map[string]int64{}
	for _, c := range changes {
		last[c.Name] = c.Number
		if c.Removed {
			if sku, ok := strings.CutPrefix(c.Name, ofSKU); ok && again {
				h.unsettle(admin.Override{SKU: sku, Number: c.Number, Until: time.Now().Add(keptForSKU)})
			}
			continue
		}
		o, ok := overrideOf(c)
		if !ok {
			continue
		}
		if o.SKU == "" && !c.Signed { // a pause changes a ledger, which lies in Redis as open as its pause
			h.log.Warn("an override in Redis is not signed, since there is no stock.reserve.secret_file; it is ignored",
				"of", o.Key, "who", o.Who)
			continue
		}
		at := slices.IndexFunc(before, func(b admin.Override) bool { return b.ID == o.ID })
		ended := !o.Until.After(time.Now())
		switch {
		case ended && at < 0:
			if o.SKU != "" { // the instances that were to end it may have died before
				o.Value, o.Until = nil, time.Now().Add(keptForSKU)
				h.unsettle(o)
			}
			continue
		case at < 0:
			came = append(came, o)
		default:
			o.Until, o.TOML, o.Former = before[at].Until, before[at].TOML, before[at].Former
			o.Fault, o.Unfit = before[at].Fault, before[at].Unfit
		}
		if o.SKU != "" && !ended && (at < 0 || again) {
			h.unsettle(o)
		}
		next = append(next, o)
	}
	for _, b := range before {
		if ofFleet(b) && last[changeOf(&b)] < b.Number {
			next = append(next, b)
		}
	}
	return next, came
}

// recordFleet puts on record what came, and what went before its end.
func (h *controller) recordFleet(came, gone, dropped []admin.Override) {
	for _, o := range came {
		fault := ""
		for _, u := range h.overrides {
			if u.ID == o.ID && u.Unfit {
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
	for _, o := range h.overrides {
		if o.Unfit && len(unfit) < 5 {
			unfit = append(unfit, bounded(o.Key))
		}
	}
	return len(h.inForce()), unfit
}
