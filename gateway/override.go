package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/stockgate/fleet"
)

// Overridable are the keys that an operator may change for a while; those of repeated tables without their [name].
var Overridable = slices.Concat([]string{"mode"}, overridableLimits(),
	[]string{"limits.observe_only", "limits.rate.rate", "limits.rate.burst", "limits.in_flight.max",
		"route.max_in_flight"})

const maxOverrides = 100

// CheckOverridable rejects a key that only the file may change.
func CheckOverridable(key string) error {
	plain := key
	if i := strings.IndexByte(key, '['); i >= 0 {
		if j := strings.LastIndexByte(key, ']'); j > i {
			plain = key[:i] + key[j+1:]
		}
	}
	if slices.Contains(Overridable, plain) {
		return nil
	}
	return fmt.Errorf("override %.80q: %w: the keys that can be overridden are %s; a keyed rate is written "+
		"limits.rate[NAME].burst, a limit in flight limits.in_flight[NAME].max, "+
		"a route route[NAME].max_in_flight, one limit limits.observe_only[NAME]",
		key, admin.ErrInvalid, strings.Join(Overridable, ", "))
}

// Overrides implements admin.Controller.
func (h *controller) Overrides() []admin.Override {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inForce()
}

// inForce are the overrides but for those of the fleet that there is no room for here. mu is held, or changing.
func (h *controller) inForce() []admin.Override { return fitting(h.overrides) }

func fitting(all []admin.Override) []admin.Override {
	return slices.DeleteFunc(slices.Clone(all), func(o admin.Override) bool { return o.Unfit })
}

// Override implements admin.Controller. One of the fleet is written into its list before anything else is changed.
func (h *controller) Override(ctx context.Context, want admin.Override) (admin.Override, error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	x := h.g.fleet.current()
	if want.Scope == "" {
		want.Scope = widest(x, want.SKU)
	}
	switch {
	case want.Scope == admin.ScopeFleet && x == nil:
		return want, errAlone
	case want.Scope == admin.ScopeInstance && x != nil && want.SKU != "":
		return want, fmt.Errorf("override %q: %w: its ledger is that of all instances; leave --instance out", want.SKU,
			admin.ErrConflict)
	}
	at := slices.IndexFunc(h.overrides, func(o admin.Override) bool {
		return o.Key == want.Key && o.SKU == want.SKU && o.Scope == want.Scope
	})
	if at < 0 && len(h.overrides) >= maxOverrides {
		return want, fmt.Errorf("override: %w: there are %d already; undo some", admin.ErrConflict, maxOverrides)
	}
	others := slices.Clone(h.overrides)
	if at >= 0 {
		want.Former, want.Before = others[at].ID, others[at].Before
		others = slices.Delete(others, at, at+1)
	}
	want.Since, want.Until = time.Now().UTC(), want.Until.UTC()
	next, already, err := h.g.running.Load(), false, error(nil)
	if want.SKU != "" {
		already, err = h.mayShut(ctx, &want)
	} else if next, err = h.overruled(&want, others); err == nil {
		already = sameValue(h.g.running.Load(), next, want.Key) && !slices.ContainsFunc(others, func(o admin.Override) bool {
			return o.Key == want.Key // it hides here what changes elsewhere, or is hidden
		})
	}
	if err == nil {
		err = h.number(ctx, x, &want)
	}
	if err != nil {
		return want, err
	}
	if want.SKU != "" {
		err = h.shut(ctx, &want)
	} else if next != h.g.running.Load() {
		err = h.enforce(next, &want)
	}
	if err != nil && want.Fault == "" {
		return want, err
	}
	if want.Unfit = want.Fault != "" && want.SKU == ""; want.Unfit && at >= 0 {
		if next, _, _ := h.laidOver(h.filed, fitting(others)); h.enforce(next, &admin.Override{}) != nil {
			h.log.Error("an override that was replaced is still in force here", "of", want.Key)
		}
	}
	others = append(others, want)
	slices.SortStableFunc(others, byEnd)
	h.write(func() { h.overrides = others })
	h.awake()
	want.Already = already
	return want, err
}

// widest is the scope of an override of which an operator names none: all instances. One that is alone, and cannot
// sign what it would tell others, changes itself.
func widest(x *fleet.Fleet, sku string) string {
	if x == nil || sku == "" && !x.Signs() && x.Share().Of == 1 {
		return admin.ScopeInstance
	}
	return admin.ScopeFleet
}

// sameValue reports whether two configurations have the same value at key.
func sameValue(a, b *config.Config, key string) bool {
	x, errX := a.ValueOf(key)
	y, errY := b.ValueOf(key)
	return errX == nil && errY == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// number gives want its ID: in Redis, by which all instances learn of it, or here.
func (h *controller) number(ctx context.Context, x *fleet.Fleet, want *admin.Override) error {
	switch {
	case want.Scope == admin.ScopeFleet && want.SKU == "" && !x.Signs():
		return errUnsigned
	case want.Scope == admin.ScopeFleet:
		return putOverride(ctx, x, want)
	}
	h.lastID++
	h.lastNumber = max(time.Now().UnixMilli(), h.lastNumber+1)
	want.ID, want.Number = strconv.FormatInt(h.lastID, 10), h.lastNumber
	return nil
}

// enforce has the gate run next, with want above the others. One of the fleet that cannot be in force here holds on the
// other instances.
func (h *controller) enforce(next *config.Config, want *admin.Override) error {
	err := h.g.swap(next)
	switch {
	case err == nil:
		return nil
	case want.Scope == admin.ScopeFleet:
		want.Fault = err.Error()
		return fmt.Errorf("override %s of %q holds on the fleet, but not on this instance: %w: %w", want.ID, want.Key,
			admin.ErrInvalid, err)
	}
	return fmt.Errorf("override %q: %w: %w", want.Key, admin.ErrInvalid, err)
}

// overruled is the configuration with want above the others.
func (h *controller) overruled(want *admin.Override, others []admin.Override) (*config.Config, error) {
	if err := CheckOverridable(want.Key); err != nil {
		return nil, err
	}
	before, err := h.filed.ValueOf(want.Key)
	if err != nil {
		return nil, fmt.Errorf("override: %w: %w", admin.ErrInvalid, err)
	}
	next, kept, dropped := h.laidOver(h.filed, append(fitting(others), *want))
	for _, o := range append(dropped, kept...) {
		if o.Unfit {
			return nil, fmt.Errorf("override %q: %w: %s", want.Key, admin.ErrInvalid, o.Fault)
		}
	}
	want.Before, want.TOML = before, config.InTOML(want.Key, want.Value)
	return next, nil
}

// Undo implements admin.Controller. A SKU is opened before its override leaves the list of the fleet.
func (h *controller) Undo(ctx context.Context, id string) (admin.Override, error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	at := slices.IndexFunc(h.overrides, func(o admin.Override) bool { return o.ID == id })
	if at < 0 {
		return admin.Override{}, fmt.Errorf("%.40q: %w", id, admin.ErrNoOverride)
	}
	o := h.overrides[at]
	if o.SKU != "" {
		if err := h.open(ctx, &o); err != nil {
			return o, err
		}
	}
	if err := h.remove(ctx, &o); err != nil {
		return o, err
	}
	return o, h.drop(at)
}

// remove takes o off the list of the fleet, and says what was changed where that fails.
func (h *controller) remove(ctx context.Context, o *admin.Override) error {
	err := h.removeFromFleet(ctx, o)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fleet.ErrReplaced):
		return fmt.Errorf("undo %s: %w: %w; sluice override list shows it in a second", o.ID, admin.ErrNoOverride, err)
	case o.SKU != "":
		return fmt.Errorf("undo %s: %q is no longer %v by it, but it may still be listed until %s: undo it again: %w",
			o.ID, o.SKU, o.Value, o.Until.Format(time.RFC3339), err)
	case fleet.Unmade(err):
		return fmt.Errorf("undo %s: nothing is changed: %w", o.ID, err)
	}
	return fmt.Errorf("undo %s: it may be undone on all instances: sluice override list tells in a second or two: %w",
		o.ID, err)
}

// Leave implements admin.Controller.
func (h *controller) Leave(sku string) {
	h.changing.Lock()
	defer h.changing.Unlock()
	at := slices.IndexFunc(h.overrides, func(o admin.Override) bool { return o.SKU == sku && sku != "" })
	if at < 0 {
		return
	}
	o := h.overrides[at]
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := h.removeFromFleet(ctx, &o); err != nil && !errors.Is(err, fleet.ErrReplaced) {
		h.log.Error("an operator has set the state of a SKU; its override may stay in the list until its end, and changes "+
			"nothing any more", "sku", sku, "override", o.ID, "err", err)
		return
	}
	others := slices.Delete(slices.Clone(h.overrides), at, at+1)
	h.write(func() { h.overrides = others })
	h.g.trail.Record(admin.AuditEntry{Role: "sluice", What: "override.drop", Object: sku, Detail: "override " + o.ID,
		Before: o.Value},
		"override dropped: an operator has set the state of its SKU", "of", sku, "value", o.Value)
}
