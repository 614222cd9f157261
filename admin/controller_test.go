package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/config"
)

// wheel is a gate of which nothing but one override can be said.
type wheel struct {
	bad  []config.Problem
	over []Override
}

func (wheel) Status() Status {
	return Status{Version: "dev", Started: time.Unix(1, 0), Mode: "enforce", Phase: "serving",
		Checks: []Probed{{"shop", true, false, "up"}}, Reload: Reload{OK: true}}
}

func (wheel) Limits() []Limit {
	return []Limit{{Name: "window", Numbers: []Number{{Key: "limits.window.max", InForce: 5, Configured: 5}}, Now: []Now{},
		Reasons: []string{"window"}}}
}
func (wheel) Targets() []Target { return []Target{{Target: "http://shop", Up: true}} }
func (wheel) Settings() Settings {
	return Settings{
		File:     "config.toml",
		Settings: []Setting{{Setting: config.Setting{Key: "mode", Value: "enforce", Origin: "default"}, Live: true}},
	}
}

func (g *wheel) Reload(context.Context, bool) (Reloaded, error) {
	if g.bad != nil {
		return Reloaded{}, &BadFile{g.bad}
	}
	return Reloaded{Config: "abc", Changed: []config.Change{{Key: "mode", Before: "enforce", After: "observe"}}}, nil
}
func (g *wheel) Drain(_ context.Context, fleet bool, _ string) (DrainStarted, error) {
	if fleet {
		return DrainStarted{Phase: "draining", Instances: []string{"a", "b"}}, nil
	}
	return DrainStarted{Phase: "draining"}, nil
}

func (g *wheel) Fleet(context.Context) (Fleet, error) {
	return Fleet{Name: "shop", Self: "a", Instances: []Instance{{ID: "a", Mode: "enforce", Mostly: "rate"}},
		Differ: []string{}}, nil
}

func (g *wheel) LimitKey(_ context.Context, ask KeyQuestion, scope string) (KeyStates, error) {
	return KeyStates{Limit: ask.Limit, Values: ask.Values,
		Instances: []KeyState{{Instance: "a", Left: 3, Max: 5, Reset: ask.Reset, Override: scope}}}, nil
}

func (g *wheel) Overrides() []Override { return g.over }
func (g *wheel) Override(_ context.Context, want Override) (Override, error) {
	want.ID, want.Before, want.Since, want.Scope = "1", 20, time.Now(), ScopeInstance
	g.over = []Override{want}
	return want, nil
}

func (g *wheel) Undo(_ context.Context, id string) (Override, error) {
	if len(g.over) == 0 || g.over[0].ID != id {
		return Override{}, fmt.Errorf("%q: %w", id, ErrNoOverride)
	}
	o := g.over[0]
	g.over = nil
	return o, nil
}

func (*wheel) Leave(string) {}

func gated(t *testing.T, g *wheel) (http.Handler, *API) {
	t.Helper()
	api := &API{Gate: g, Controller: g, History: still(t), Log: slog.New(slog.DiscardHandler)}
	return api.Handler(), api
}

func TestController_OverrideHasAKeyAValueAndAnEnd(t *testing.T) {
	h, _ := gated(t, &wheel{})
	soon := time.Now().Add(time.Hour).Format(time.RFC3339)
	for body, want := range map[string]int{
		`{"key": "limits.window.max", "value": 5, "for": "10m"}`:                          200,
		`{"key": "limits.window.max", "value": 5, "until": "` + soon + `"}`:               200,
		`{"key": "mode", "value": "observe", "for": "1h"}`:                                200,
		`{"sku": "1001", "value": "paused", "for": "1h"}`:                                 200,
		`{"key": "limits.window.max", "value": 5}`:                                        400,
		`{"key": "limits.window.max", "for": "10m"}`:                                      400,
		`{"key": "limits.window.max", "value": null, "for": "10m"}`:                       400,
		`{"key": "limits.window.max", "value": [5], "for": "10m"}`:                        400,
		`{"key": "limits.window.max", "value": 5, "for": "10"}`:                           400,
		`{"key": "limits.window.max", "value": 5, "for": "-10m"}`:                         400,
		`{"key": "limits.window.max", "value": 5, "for": "25h"}`:                          400,
		`{"key": "limits.window.max", "value": 5, "for": "10m", "until": "` + soon + `"}`: 400,
		`{"key": "limits.window.max", "sku": "1001", "value": 5, "for": "10m"}`:           400,
		`{"value": 5, "for": "10m"}`:                                                      400,
		`{"sku": "1001", "value": "on", "for": "1h"}`:                                     400,
		`{"sku": "{", "value": "paused", "for": "1h"}`:                                    400,
		`{"key": "mode", "value": "observe", "for": "1h", "more": 1}`:                     400,
		``: 400, `[]`: 400,
	} {
		if w := ask(h, "POST", "/api/v1/overrides", body, nil); w.Code != want {
			t.Errorf("%s: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	if w := ask(h, "DELETE", "/api/v1/overrides/1", "", nil); w.Code != 200 {
		t.Errorf("undo: %d %s", w.Code, w.Body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if w := ask(h, method, "/api/v1/overrides/1", "", nil); w.Code != 404 {
			t.Errorf("%s of one that has ended: %d %s", method, w.Code, w.Body)
		}
	}
}

func TestController_BadFileIsShownWithLineAndKey(t *testing.T) {
	h, _ := gated(t, &wheel{bad: []config.Problem{
		{File: "config.toml", Line: 7, Key: "limits.window.maxx", Message: "unknown key"},
		{File: "config.toml", Line: 9, Key: "mode", Message: "wrong"}}})
	w := ask(h, "POST", "/api/v1/reload", "", nil)
	if w.Code != 422 || !strings.Contains(w.Body.String(), `"line":7,"key":"limits.window.maxx"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/api/v1/audit", "", nil); !strings.Contains(w.Body.String(),
		"config.toml:7: limits.window.maxx: unknown key (and 1 more)") {
		t.Errorf("the audit does not tell: %s", w.Body)
	}
	if w := ask(h, "POST", "/api/v1/reload", `{"overrides": "perhaps"}`, nil); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestController_EveryChangeIsOnRecordAndNoLookIs(t *testing.T) {
	h, api := gated(t, &wheel{})
	api.Store = &shelf{left: 3}
	named := func(r *http.Request) { r.Header.Set("Sluice-Operator", "ada@office") }
	for _, path := range []string{"status", "limits", "targets", "config", "overrides", "history", "audit", "sales",
		"stock", "stock/1001"} {
		if w := ask(h, "GET", "/api/v1/"+path, "", named); w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	ask(h, "POST", "/api/v1/stock/1001", `{"set": 9}`, named)
	ask(h, "POST", "/api/v1/stock/1001", `{"set": -9}`, named) // rejected: nothing was changed
	ask(h, "POST", "/api/v1/overrides", `{"key": "limits.window.max", "value": 5, "for": "10m"}`, named)
	ask(h, "DELETE", "/api/v1/overrides/1", "", nil)
	ask(h, "POST", "/api/v1/reload", "", nil)
	ask(h, "POST", "/api/v1/drain", "", nil)
	var told struct{ Audit []AuditEntry }
	if err := json.Unmarshal(ask(h, "GET", "/api/v1/audit", "", nil).Body.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	want := []string{"gate.drain", "config.reload", "override.undo", "override.set", "stock.change"}
	for i, d := range told.Audit {
		if i >= len(want) || d.What != want[i] || d.Role != "operator" || d.From != "127.0.0.1:5555" {
			t.Fatalf("audit: %+v, want %v", told.Audit, want)
		}
	}
	if len(told.Audit) != len(want) || told.Audit[4].Who != "ada@office" || told.Audit[4].Before != 3.0 ||
		told.Audit[4].After != 9.0 || told.Audit[3].Until.IsZero() {
		t.Errorf("audit: %+v", told.Audit)
	}
	lines := ask(h, "GET", "/api/v1/audit?after=3", "",
		func(r *http.Request) { r.Header.Set("Accept", "application/x-ndjson") })
	if got := strings.Count(lines.Body.String(), "\n"); got != 2 || !strings.HasPrefix(lines.Body.String(), `{"id":4,`) {
		t.Errorf("as lines: %s", lines.Body)
	}
}

func TestController_WhatIsNotThereIsToldWithWhatIs(t *testing.T) {
	h, _ := gated(t, &wheel{})
	w := ask(h, "GET", "/api/v1/limit", "", nil)
	if w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(w.Body.String(), "limits, targets") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = ask(h, "PUT", "/api/v1/overrides/1", "", nil)
	if w.Code != 405 || w.Header().Get("Allow") != "GET, DELETE" ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestController_KeyOfALimitIsAskedForByItsValues(t *testing.T) {
	h, api := gated(t, &wheel{})
	for target, want := range map[string]string{
		"?value=u1&scope=fleet": `"left":3`, "?value=u1": `"left":3`, "": "write ?value=",
		"?value=u1&scope=all":                 "it is \"fleet\"",
		"?value=" + strings.Repeat("x", 3000): "write ?value=",
	} {
		if w := ask(h, "GET", "/api/v1/limits/per_user/key"+target, "", nil); !strings.Contains(
			strings.ReplaceAll(w.Body.String(), `\"`, `"`), want) {
			t.Errorf("%.40s: %s, want %s", target, w.Body, want)
		}
	}
	ask(h, "DELETE", "/api/v1/limits/per_user/key?value=u1", "", nil)
	if deeds := api.AuditLog.since(0, 10); len(deeds) != 1 || deeds[0].What != "limit.reset" ||
		deeds[0].Object != "per_user" {
		t.Errorf("on record: %+v", deeds)
	}
}

func TestController_DrainOfTheFleetMustBeAskedFor(t *testing.T) {
	h, _ := gated(t, &wheel{})
	for body, want := range map[string]string{"": `"instances":[]`, `{"scope": "fleet"}`: `"instances":["a","b"]`,
		`{"scope": "all"}`: "this instance alone drains"} {
		if w := ask(h, "POST", "/api/v1/drain", body, nil); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", body, w.Body, want)
		}
	}
}
