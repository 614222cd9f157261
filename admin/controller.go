package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sluice/config"
)

// Controller changes the running gate. Its errors may be ErrInvalid, ErrConflict, errors.As a *BadFile, and of an
// override ErrNoOverride.
type Controller interface {
	// Reload reads the configuration again. drop ends every override of a limit; otherwise those are kept that the new
	// configuration has room for.
	Reload(ctx context.Context, drop bool) (Reloaded, error)

	// Drain finishes what is under way, and then ends the process: of this instance, or of all that run in the fleet.
	Drain(ctx context.Context, fleet bool, who string) (DrainStarted, error)

	// Fleet is what all instances have told of themselves.
	Fleet(ctx context.Context) (Fleet, error)

	// LimitKey tells how a key stands, on the instances of the scope.
	LimitKey(ctx context.Context, ask KeyQuestion, scope string) (KeyStates, error)

	Overrides() []Override

	// Override puts want into force, in place of another of the same key, SKU and scope. Its Key or SKU, Value, Until and
	// Who are given; Scope "" is the fleet where there is one.
	Override(ctx context.Context, want Override) (Override, error)

	// Undo ends an override before its time.
	Undo(ctx context.Context, id string) (Override, error)

	// Leave ends the override of a SKU, if there is one, and leaves the SKU as an operator has set it meanwhile.
	Leave(sku string)
}

// Scopes of a change.
const (
	ScopeFleet    = "fleet"    // all instances, also those that start later
	ScopeInstance = "instance" // the one that is asked
)

// KeyQuestion names a key of a limit.
type KeyQuestion struct {
	Limit  string   `json:"limit"`
	Values []string `json:"values"`
	Reset  bool     `json:"reset"`
}

// DrainStarted is what a drain came to.
type DrainStarted struct {
	Phase     string   `json:"phase"`
	Instances []string `json:"instances"` // that drain
	Missing   []string `json:"missing"`   // that have not answered
}

// scopeOf reads a scope; "" = the widest one there is.
func scopeOf(text string) (string, error) {
	if text != "" && text != ScopeFleet && text != ScopeInstance {
		return "", fmt.Errorf(`scope %.20q: %w: it is "fleet" or "instance"`, text, ErrInvalid)
	}
	return text, nil
}

// BadFile is why a configuration was not taken. The one before runs on.
type BadFile struct{ Problems []config.Problem } // never empty

// Error implements error.
func (b *BadFile) Error() string { return "the configuration was not reloaded; the running one stays" }

// Reloaded is what a reload came to.
type Reloaded struct {
	Config  string          `json:"config"`
	Changed []config.Change `json:"changed"` // of the file, and in force now, or as soon as an override of it ends
	Kept    []string        `json:"kept"`    // IDs of overrides that go on
	Dropped []string        `json:"dropped"` // ended by request, or since the new configuration has no room for them

	Warnings []string `json:"warnings"` // what has to be done elsewhere for the new configuration
}

// reload handles {"overrides": "keep"} and {"overrides": "drop"}; no body means keep.
func (a *API) reload(w http.ResponseWriter, r *http.Request) (any, error) {
	want := struct{ Overrides string }{"keep"}
	if r.ContentLength != 0 {
		if err := decode(w, r, &want); err != nil || want.Overrides != "keep" && want.Overrides != "drop" {
			return nil, statusError{http.StatusBadRequest,
				`the body must be {"overrides": "keep"} or {"overrides": "drop"}; without one they are kept`}
		}
	}
	done, err := a.Controller.Reload(r.Context(), want.Overrides == "drop")
	if bad := (*BadFile)(nil); errors.As(err, &bad) {
		a.record(r, AuditEntry{What: "config.reject", Detail: bad.Text()}, "admin: reload asked for")
	}
	if err != nil {
		return nil, err
	}
	done.Changed, done.Kept, done.Dropped = orEmpty(done.Changed), orEmpty(done.Kept), orEmpty(done.Dropped)
	done.Warnings = orEmpty(done.Warnings)
	a.record(r, AuditEntry{What: "config.reload", Object: done.Config, After: done}, "admin: reload asked for", "config",
		done.Config)
	return done, nil
}

// Text is the first problem, and how many more there are.
func (b *BadFile) Text() string {
	text := b.Problems[0].String()
	if more := len(b.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// drain handles no body, or {"scope": "fleet"}: that all instances drain must be said.
func (a *API) drain(w http.ResponseWriter, r *http.Request) (any, error) {
	want := struct{ Scope string }{ScopeInstance}
	if r.ContentLength != 0 {
		if err := decode(w, r, &want); err != nil || want.Scope != ScopeFleet && want.Scope != ScopeInstance {
			return nil, statusError{http.StatusBadRequest,
				`the body must be {"scope": "fleet"} or {"scope": "instance"}; without one this instance alone drains`}
		}
	}
	done, err := a.Controller.Drain(r.Context(), want.Scope == ScopeFleet, callerOf(r).name)
	if err != nil {
		return nil, err
	}
	a.record(r, AuditEntry{What: "gate.drain", Detail: want.Scope}, "admin: drain asked for", "scope", want.Scope)
	done.Instances, done.Missing = orEmpty(done.Instances), orEmpty(done.Missing)
	return done, nil
}

// Override is a value other than the configured one, for a while.
type Override struct {
	ID string `json:"id"`
	// a key of the configuration, such as "limits.window.max" or "limits.rate[per_ip].burst"; or
	Key    string    `json:"key,omitempty"`
	SKU    string    `json:"sku,omitempty"` // a SKU of a ledger, whose state is Value
	Value  any       `json:"value"`         // a number, text with its unit, or a boolean; of a SKU "paused" or "ended"
	Before any       `json:"before"`        // what it will be again
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Who    string    `json:"who,omitempty"`
	Scope  string    `json:"scope"`            // "fleet": on all instances; "instance": on this one
	TOML   string    `json:"toml"`             // the same for good, to be copied into the file; "" for a SKU
	Fault  string    `json:"fault,omitempty"`  // why it could not begin or end in time; it is tried again
	Former string    `json:"former,omitempty"` // ID of the override that it took the place of

	// Of the answer to its making alone: Value was in force already.
	Already bool `json:"already_in_force,omitempty"`

	Number int64 `json:"-"` // by which ledgers and the list of the fleet know it
	Unfit  bool  `json:"-"` // it is of the fleet, and not in force here; Fault says why the file has no room for it
}

// ErrNoOverride is returned for an ID that is not in force.
var ErrNoOverride = errors.New("no such override")

// What an override may last.
const (
	shortestOverride = time.Second
	longestOverride  = 24 * time.Hour
)

func (a *API) overrides(w http.ResponseWriter, _ *http.Request) (any, error) {
	return map[string]any{"overrides": orEmpty(a.Controller.Overrides())}, nil
}

func (a *API) override(w http.ResponseWriter, r *http.Request) (any, error) {
	for _, o := range a.Controller.Overrides() {
		if o.ID == r.PathValue("id") {
			return o, nil
		}
	}
	return nil, fmt.Errorf("%.40q: %w", r.PathValue("id"), ErrNoOverride)
}

const overrideForm = `the body must be {"key": "limits.window.max", "value": 50, "for": "10m"} or {"sku": "1001", ` +
	`"value": "paused", "until": "2026-11-11T00:10:00+08:00"}`

// wantedOverride reads what is to be overridden.
func wantedOverride(w http.ResponseWriter, r *http.Request, now time.Time) (o Override, err error) {
	var want struct {
		Key, SKU   string
		Value      json.RawMessage
		For, Scope string
		Until      time.Time
	}
	if err := decode(w, r, &want); err != nil || (want.Key == "") == (want.SKU == "") ||
		(want.For == "") == want.Until.IsZero() {
		return o, fmt.Errorf("%w: %s", ErrInvalid, overrideForm)
	}
	o = Override{Key: want.Key, SKU: want.SKU, Until: want.Until, Who: callerOf(r).name}
	if o.Scope, err = scopeOf(want.Scope); err != nil {
		return o, err
	}
	switch err := json.Unmarshal(want.Value, &o.Value); o.Value.(type) {
	case float64, string, bool:
	default:
		return o, fmt.Errorf("value: %w: it is a number, a boolean or text, err %v; %s", ErrInvalid, err, overrideForm)
	}
	if want.For != "" {
		span, err := time.ParseDuration(want.For)
		if err != nil {
			return o, fmt.Errorf(`for %.20q: %w: write it like "90s", "10m" or "2h"`, want.For, ErrInvalid)
		}
		o.Until = now.Add(span)
	}
	if span := o.Until.Sub(now); span < shortestOverride || span > longestOverride {
		return o, fmt.Errorf("until %s: %w: an override lasts 1s to 24h; what is meant for longer belongs into the file",
			o.Until.Format(time.RFC3339), ErrInvalid)
	}
	if o.SKU != "" {
		if err := CheckSKU(o.SKU); err != nil {
			return o, err
		}
		if o.Value != "paused" && o.Value != "ended" {
			return o, fmt.Errorf(`value: %w: a SKU can be "paused" or "ended" for a while`, ErrInvalid)
		}
	}
	return o, nil
}

func (a *API) setOverride(w http.ResponseWriter, r *http.Request) (any, error) {
	want, err := wantedOverride(w, r, time.Now())
	if err != nil {
		return nil, err
	}
	done, err := a.Controller.Override(r.Context(), want)
	if err != nil {
		return nil, err
	}
	a.record(r, done.auditEntry("override.set", done.Before, done.Value), "admin: override set", "of", done.label(),
		"value", done.Value, "before", done.Before, "until", done.Until)
	return done, nil
}

func (a *API) undo(w http.ResponseWriter, r *http.Request) (any, error) {
	done, err := a.Controller.Undo(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	a.record(r, done.auditEntry("override.undo", done.Value, done.Before), "admin: override undone", "of", done.label(),
		"value", done.Before, "before", done.Value)
	return done, nil
}

func (o *Override) label() string {
	if o.SKU != "" {
		return o.SKU
	}
	return o.Key
}

func (o *Override) auditEntry(what string, before, after any) AuditEntry {
	return AuditEntry{What: what, Object: o.label(), Detail: "override " + o.ID + ", " + o.Scope, Before: before,
		After: after, Until: o.Until}
}
