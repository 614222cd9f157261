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
	"sluice/stockgate/exchange"
)

// Overridable are the keys that an operator may change for a while; those of repeated tables without their [name].
var Overridable = slices.Concat([]string{"mode"}, limits.OverridableKeys(),
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
	return slices.Clone(h.overrides)
}

// Override implements admin.Controller. One of the fleet is made in Redis before it is in force here.
func (h *controller) Override(ctx context.Context, want admin.Override) (admin.Override, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.g.fleet.exchange()
	if want.Scope == "" {
		want.Scope = admin.ScopeInstance
		if x != nil {
			want.Scope = admin.ScopeFleet
		}
	}
	if want.Scope == admin.ScopeFleet && x == nil {
		return want, errAlone
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
	next, err := h.running, error(nil)
	if want.SKU != "" {
		err = h.shut(ctx, &want)
	} else {
		next, err = h.overruled(&want, others)
	}
	if err == nil {
		err = h.number(ctx, x, &want)
	}
	if err == nil && next != h.running {
		err = h.enforce(next, &want)
	}
	if err != nil {
		return want, err
	}
	h.overrides = append(others, want)
	slices.SortStableFunc(h.overrides, func(x, y admin.Override) int { return x.Until.Compare(y.Until) })
	h.awake()
	return want, nil
}

// number gives want its ID: in Redis, by which all instances learn of it, or here.
func (h *controller) number(ctx context.Context, x *exchange.Exchange, want *admin.Override) error {
	if want.Scope != admin.ScopeFleet {
		h.lastID++
		want.ID = strconv.FormatInt(h.lastID, 10)
		return nil
	}
	return putOverride(ctx, x, want)
}

// enforce has the gate run next, with want above the others.
func (h *controller) enforce(next *config.Config, want *admin.Override) error {
	if _, err := h.g.change(h.running, next); err != nil {
		return fmt.Errorf("override %q: %w: %w", want.Key, admin.ErrInvalid, err)
	}
	h.running = next
	return nil
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
	next, kept, unfit := h.laidOver(h.filed, append(slices.Clone(others), *want))
	if len(unfit) > 0 || len(kept) != len(others)+1 {
		_, err := h.filed.With(valuesOf(append(slices.Clone(others), *want)))
		return nil, fmt.Errorf("override %q: %w: %w", want.Key, admin.ErrInvalid, err)
	}
	want.Before, want.TOML = before, config.InTOML(want.Key, want.Value)
	return next, nil
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
		if at = slices.IndexFunc(h.unfit, func(o admin.Override) bool { return o.ID == id }); at < 0 {
			return admin.Override{}, fmt.Errorf("%.40q: %w", id, admin.ErrNoOverride)
		}
		o := h.unfit[at]
		_, err := h.removeFromFleet(ctx, &o)
		return o, err
	}
	o := h.overrides[at]
	mine, err := h.removeFromFleet(ctx, &o)
	if err != nil {
		return o, err
	}
	return o, h.end(ctx, at, mine)
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
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if _, err := h.removeFromFleet(ctx, &o); err != nil {
		h.log.Error("an operator has set the state of a SKU, and its override of the fleet stays until its end: undo it",
			"sku", sku, "override", o.ID, "err", err)
		return
	}
	h.overrides = slices.Delete(slices.Clone(h.overrides), at, at+1)
	h.g.trail.Record(admin.AuditEntry{Role: "sluice", What: "override.drop", Object: sku, Detail: "override " + o.ID,
		Before: o.Value},
		"override dropped: an operator has set the state of its SKU", "of", sku, "value", o.Value)
}

// end ends the override at a place of the list. mine tells that this instance opens its SKU again, and no other does.
func (h *controller) end(ctx context.Context, at int, mine bool) error {
	o, others := h.overrides[at], slices.Delete(slices.Clone(h.overrides), at, at+1)
	if o.SKU != "" {
		if mine {
			if err := h.reopen(ctx, o); err != nil {
				return err
			}
		}
		h.overrides = others
		return nil
	}
	next, kept, unfit := h.laidOver(h.filed, others)
	if _, err := h.g.change(h.running, next); err != nil {
		return fmt.Errorf("end the override of %q: %w", o.Key, err)
	}
	ofFleet, unfit := unfitOfFleet(unfit)
	h.running, h.overrides, h.unfit = next, kept, append(h.unfit, ofFleet...)
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
		mine, err := o.Scope != admin.ScopeFleet || o.Claimed, error(nil)
		if o.SKU != "" && !mine {
			mine, err = h.removeFromFleet(ctx, &o)
			h.overrides[0].Claimed = mine
		}
		if err == nil {
			err = h.end(ctx, 0, mine)
		}
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
