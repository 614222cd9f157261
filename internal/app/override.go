package app

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
	"sluice/internal/app/limits"
)

// Overridable are the keys that an operator may change for a while; those of repeated tables without their [name].
var Overridable = slices.Concat([]string{"mode"}, limits.OverridableKeys(),
	[]string{"limits.observe_only", "limits.rate.rate", "limits.rate.burst", "route.max_in_flight"})

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
		"limits.rate[NAME].burst, "+
		"a route route[NAME].max_in_flight, one limit limits.observe_only[NAME]",
		key, admin.ErrInvalid, strings.Join(Overridable, ", "))
}

// Overrides implements admin.Controller.
func (h *controller) Overrides() []admin.Override {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.overrides)
}

// Override implements admin.Controller.
func (h *controller) Override(ctx context.Context, want admin.Override) (admin.Override, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.overrides, func(o admin.Override) bool { return o.Key == want.Key && o.SKU == want.SKU })
	if at < 0 && len(h.overrides) >= maxOverrides {
		return want, fmt.Errorf("override: %w: there are %d already; undo some", admin.ErrConflict, maxOverrides)
	}
	next := slices.Clone(h.overrides)
	if at >= 0 {
		want.Former, want.Before = next[at].ID, next[at].Before
		next = slices.Delete(next, at, at+1)
	}
	var err error
	if want.SKU != "" {
		err = h.shut(ctx, &want)
	} else {
		err = h.overrule(&want, next)
	}
	if err != nil {
		return want, err
	}
	h.lastID++
	want.ID, want.Since, want.Until = strconv.FormatInt(h.lastID, 10), time.Now().UTC(), want.Until.UTC()
	h.overrides = append(next, want)
	slices.SortStableFunc(h.overrides, func(x, y admin.Override) int { return x.Until.Compare(y.Until) })
	h.awake()
	return want, nil
}

// overrule puts want into force above the others.
func (h *controller) overrule(want *admin.Override, others []admin.Override) error {
	if err := CheckOverridable(want.Key); err != nil {
		return err
	}
	before, err := h.filed.ValueOf(want.Key)
	if err != nil {
		return fmt.Errorf("override: %w: %w", admin.ErrInvalid, err)
	}
	next, kept, unfit := h.laidOver(h.filed, append(slices.Clone(others), *want))
	if len(unfit) > 0 || len(kept) != len(others)+1 {
		_, err := h.filed.With(valuesOf(append(slices.Clone(others), *want)))
		return fmt.Errorf("override %q: %w: %w", want.Key, admin.ErrInvalid, err)
	}
	if _, err := h.g.change(h.running, next); err != nil {
		return fmt.Errorf("override %q: %w: %w", want.Key, admin.ErrInvalid, err)
	}
	h.running = next
	want.Before, want.TOML = before, config.InTOML(want.Key, want.Value)
	return nil
}

func valuesOf(overrides []admin.Override) map[string]any {
	values := map[string]any{}
	for _, o := range overrides {
		if o.SKU == "" {
			values[o.Key] = o.Value
		}
	}
	return values
}

// shut has the SKU's ledger say what is wanted.
func (h *controller) shut(ctx context.Context, want *admin.Override) error {
	l := h.ledgers()
	if l == nil {
		return fmt.Errorf("override %q: %w: no ledger is kept here: the shop decides whether it sells", want.SKU,
			admin.ErrConflict)
	}
	s, err := l.Stock(ctx, want.SKU)
	if err != nil {
		return err
	}
	if want.Before == nil {
		want.Before = s.Ledger.State
	}
	if s.Ledger.State == "frozen" || s.Ledger.State == "doubted" {
		return fmt.Errorf("override %q: %w: it is %s, and sells nothing", want.SKU, admin.ErrConflict, s.Ledger.State)
	}
	if want.Before == "waiting" || want.Before == "over" { // its hours decide again
		want.Before = "on"
	}
	_, err = l.SetState(ctx, want.SKU, fmt.Sprint(want.Value))
	return err
}

// Undo implements admin.Controller.
func (h *controller) Undo(ctx context.Context, id string) (admin.Override, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.overrides, func(o admin.Override) bool { return o.ID == id })
	if at < 0 {
		return admin.Override{}, fmt.Errorf("%.40q: %w", id, admin.ErrNoOverride)
	}
	o := h.overrides[at]
	return o, h.end(ctx, at)
}

// Leave implements admin.Controller.
func (h *controller) Leave(sku string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.overrides, func(o admin.Override) bool { return o.SKU == sku && sku != "" })
	if at < 0 {
		return
	}
	o := h.overrides[at]
	h.overrides = slices.Delete(slices.Clone(h.overrides), at, at+1)
	h.g.trail.Record(admin.AuditEntry{Role: "sluice", What: "override.drop", Object: sku, Detail: "override " + o.ID,
		Before: o.Value},
		"override dropped: an operator has set the state of its SKU", "of", sku, "value", o.Value)
}

// end ends the override at a place of the list.
func (h *controller) end(ctx context.Context, at int) error {
	o, others := h.overrides[at], slices.Delete(slices.Clone(h.overrides), at, at+1)
	if o.SKU != "" {
		if err := h.reopen(ctx, o); err != nil {
			return err
		}
		h.overrides = others
		return nil
	}
	next, kept, unfit := h.laidOver(h.filed, others)
	if _, err := h.g.change(h.running, next); err != nil {
		return fmt.Errorf("end the override of %q: %w", o.Key, err)
	}
	h.running, h.overrides = next, kept
	for _, gone := range unfit { // it stood on the one that has ended
		h.recordExpiry(gone, "override.drop", "override dropped: without another it has no room")
	}
	return nil
}

// reopen has the SKU's ledger say what it said before, unless an operator has said otherwise meanwhile.
func (h *controller) reopen(ctx context.Context, o admin.Override) error {
	l := h.ledgers()
	if l == nil {
		return nil
	}
	s, err := l.Stock(ctx, o.SKU)
	switch {
	case errors.Is(err, admin.ErrNoSKU):
		return nil
	case err != nil:
		return err
	case s.Ledger.State != o.Value:
		return nil
	}
	_, err = l.SetState(ctx, o.SKU, fmt.Sprint(o.Before))
	return err
}

// How long an end may take, and how long until it is tried again where Redis did not answer.
const (
	endWithin   = 5 * time.Second
	endAgain    = 2 * time.Second
	nothingEnds = time.Hour
)

// awake has keep look at the list again.
func (h *controller) awake() {
	select {
	case h.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// expireOverrides ends each override in its time.
func (h *controller) expireOverrides() {
	defer close(h.stopped)
	for {
		next := time.NewTimer(h.endDue())
		select {
		case <-h.stop:
			next.Stop()
			return
		case <-h.wake:
		case <-next.C:
		}
		next.Stop()
	}
}

// endDue ends what is due, and tells how long it is until there is something again.
func (h *controller) endDue() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.overrides) > 0 {
		o := h.overrides[0]
		if wait := time.Until(o.Until); wait > 0 {
			return wait
		}
		ctx, cancel := context.WithTimeout(context.Background(), endWithin)
		err := h.end(ctx, 0)
		cancel()
		if err != nil {
			if o.Fault == "" {
				h.log.Error("an override could not end; trying again", "of", o.Key+o.SKU, "err", err)
			}
			h.overrides[0].Fault = err.Error()
			h.overrides[0].Until = time.Now().UTC().Add(endAgain)
			slices.SortStableFunc(h.overrides, func(x, y admin.Override) int { return x.Until.Compare(y.Until) })
			continue
		}
		h.recordExpiry(o, "override.end", "override ended")
	}
	return nothingEnds
}

// recordExpiry puts the end of an override on record: no request stands for it.
func (h *controller) recordExpiry(o admin.Override, what, message string) {
	h.g.trail.Record(admin.AuditEntry{Role: "sluice", What: what, Object: o.Key + o.SKU, Detail: "override " + o.ID,
		Before: o.Value, After: o.Before},
		message, "of", o.Key+o.SKU, "value", o.Before, "before", o.Value)
}
