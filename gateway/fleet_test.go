package gateway

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/fleet"
)

// inFleet is the configuration of a gate in the fleet of a Redis.
func inFleet(t *testing.T, server *redistest.Server, more string) *config.Config {
	t.Helper()
	text := "name = \"shop\"\n" + steered + "[stock]\nsource = \"redis\"\n" +
		"[stock.redis]\naddresses = [\"" + server.Addr + "\"]\ntimeout = \"2s\"\n" +
		more
	c, err := config.Parse("config.toml", []byte(text), config.NoEnvironment, Validate)
	if err != nil {
		t.Fatal(err)
	}
	c.Stock.Reserve.Secret = "of all instances of the shop"
	return c
}

// joined is a gate in the fleet of a Redis.
func joined(t *testing.T, server *redistest.Server, more string) *Gateway {
	t.Helper()
	g := gatewayOf(t, inFleet(t, server, more))
	if err := g.fleet.join(); err != nil {
		t.Fatal(err)
	}
	return g
}

const otherRate = "[[limits.rate]]\nname = \"per_user\"\nkey = \"$cookie_uid\"\nrate = \"5/s\"\nburst = 5\n"

// An instance whose file has no room for an override of the fleet goes on, says so, and obeys it with another file.
func TestFleet_OverrideThatHasNoRoomIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := joined(t, server, otherRate), joined(t, server, "")
	o := a.controller.must(t, "limits.rate[per_user].burst", 9.0)
	if o.Scope != admin.ScopeFleet {
		t.Fatalf("%+v", o)
	}
	unfit := func() string {
		var one admin.Instance
		if err := json.Unmarshal([]byte(b.fleet.summary()), &one); err != nil {
			t.Fatal(err)
		}
		return strings.Join(one.Unfit, " ")
	}
	testkit.Eventually(t, "b says that it has no room", func() bool { return unfit() == "limits.rate[per_user].burst" })
	next := a.controller.config() // as if b got the other's file
	b.controller.changing.Lock()
	_, err := b.controller.apply(next, true) // also where its own overrides are dropped
	b.controller.changing.Unlock()
	if err != nil || unfit() != "" {
		t.Fatalf("%v, no room for %q", err, unfit())
	}
	if v, _ := b.running.Load().ValueOf("limits.rate[per_user].burst"); v != 9 {
		t.Errorf("the burst is %v, want 9", v)
	}
	if _, err := b.controller.Undo(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is undone at the other", func() bool { return len(a.controller.Overrides()) == 0 })
}

// What is overridden here alone is above what is for the fleet, whichever came first.
func TestFleet_OwnOverrideIsAboveTheFleets(t *testing.T) {
	t.Parallel()
	g := joined(t, redistest.Start(t), "")
	own := admin.Override{Key: "limits.concurrency.max_in_flight", Value: 5.0, Until: time.Now().Add(time.Minute),
		Scope: admin.ScopeInstance}
	own, err := g.controller.Override(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	g.controller.must(t, "limits.concurrency.max_in_flight", 7.0)
	if n := maxInFlight(g); n != 5 {
		t.Errorf("%v in flight, want 5", n)
	}
	if _, err := g.controller.Undo(t.Context(), own.ID); err != nil || maxInFlight(g) != 7 {
		t.Errorf("%v, %v in flight, want 7", err, maxInFlight(g))
	}
}

// An override of the fleet that this instance had no room for stays out of force when the next override is made, also
// where there would be room by then. A list of the fleet, or a file, lays it over again, and tells it.
func TestFleet_OverrideWithoutRoomStaysOutWhenTheNextIsMade(t *testing.T) {
	t.Parallel()
	g := joined(t, redistest.Start(t), "")
	h := g.controller
	const most, each = "limits.window.max", "limits.window.max_per_sku" // each is at most most, which is 100 in the file
	later := func(hours int) time.Time { return time.Now().Add(time.Duration(hours) * time.Hour) }
	h.fleetChanged([]fleet.Change{
		{Name: "key " + each, Number: 9, Signed: true, Until: later(2), Text: `{"key": "` + each + `", "value": 150}`},
		{Name: "key " + most, Number: 10, Signed: true, Until: later(1), Text: `{"key": "` + most + `", "value": 200}`},
	}, false)
	before, err := h.g.running.Load().ValueOf(each)
	if _, unfit := h.standing(); err != nil || !slices.Equal(unfit, []string{each}) {
		t.Fatalf("%v, no room for %q, want %q", err, unfit, each)
	}
	h.must(t, "limits.concurrency.max_in_flight", 7.0)
	if _, err := h.Override(t.Context(), admin.Override{Key: "limits.concurrency.max_queue", Value: 9.0,
		Until: later(1), Scope: admin.ScopeInstance}); err != nil {
		t.Fatal(err)
	}
	now, _ := h.g.running.Load().ValueOf(each)
	if inForce, unfit := h.standing(); now != before || inForce != 3 || !slices.Equal(unfit, []string{each}) {
		t.Errorf("%s is %v, before %v; %d are in force, no room for %q", each, now, before, inForce, unfit)
	}
}

// What is known here and not in the list holds on until its end: an override is made before the list is read that has
// it. What is not understood, or may not be changed, is passed over.
func TestFleet_TakesOverWhatItUnderstandsOfAList(t *testing.T) {
	t.Parallel()
	g := joined(t, redistest.Start(t), "")
	h := g.controller
	h.changing.Lock()
	h.mu.Lock()
	h.overrides = []admin.Override{{ID: "f1", Number: 1, SKU: "1001", Value: "paused", Before: "on",
		Scope: admin.ScopeFleet, Until: time.Now().Add(time.Hour)}}
	h.mu.Unlock()
	h.changing.Unlock()
	h.fleetChanged([]fleet.Change{{Name: "key mode", Number: 9, Signed: true, Until: time.Now().Add(time.Hour),
		Text: `{"key": "mode", "value": "observe"}`}}, false)
	all := h.Overrides()
	if len(all) != 2 || all[0].SKU+all[1].SKU != "1001" || g.Status().Mode != "observe" {
		t.Errorf("%+v", all)
	}
	h.fleetChanged([]fleet.Change{{Name: "key server.listen", Number: 10, Signed: true, Until: time.Now().Add(time.Hour),
		Text: `{"key": "server.listen", "value": "x"}`}, {Name: "key mode", Number: 11, Signed: true, Text: "no JSON"},
		{Name: "sku 1001", Number: 1, Removed: true}}, false)
	if all := h.Overrides(); len(all) != 0 || g.Status().Mode != "enforce" {
		t.Errorf("%+v in mode %s, want what is understood and may be changed", all, g.Status().Mode)
	}
}

// What is written into Redis by hand changes no key of the configuration, with a secret or without one, and drains
// nothing. Without a secret a fleet cannot be changed as a whole, and says how it could.
func TestFleet_WithoutASignatureNoKeyIsOverriddenAndNothingDrains(t *testing.T) {
	t.Parallel()
	for _, secret := range []config.Secret{"of all instances of the shop", ""} {
		server := redistest.Start(t) // of its own: the first gateway claims the name with its secret
		c := inFleet(t, server, "")
		c.Stock.Reserve.Secret = secret
		g, err := New(c, Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		g.controller.drain = make(chan struct{}, 1)
		if err := g.fleet.join(); err != nil {
			t.Fatal(err)
		}
		raw := func(text string) string { return "9 99999999999999 99999999999999 on - " + text }
		server.Client.HSet(t.Context(), "sluice:shop:fleet:{shop}:changes", "key mode",
			raw(`{"key": "mode", "value": "observe"}`), "#version", "9 "+string(secret))
		server.Client.HSet(t.Context(), "sluice:shop:fleet:{shop}:tasks", "9", raw(`random {"drain": true, "by": "x"}`),
			"#version", "9 "+string(secret))
		beats := func() float64 { return metricOf(t, g, "sluice_fleet_heartbeats_total") }
		for before := beats(); beats() < before+2; { // the second summary is behind what the first heartbeat told
			testkit.Eventually(t, "it beats", func() bool { return beats() > before })
		}
		if n := len(g.controller.Overrides()); n != 0 || g.Status().Mode != "enforce" || len(g.controller.drain) != 0 {
			t.Errorf("secret %q: %d overrides, mode %s, drains %d", secret, n, g.Status().Mode, len(g.controller.drain))
		}
		_, err = g.controller.Override(t.Context(), admin.Override{Key: "limits.concurrency.max_in_flight", Value: 7.0,
			Until: time.Now().Add(time.Hour), Scope: admin.ScopeFleet})
		if _, all := g.controller.Drain(t.Context(), true, "an operator"); secret == "" &&
			(!errors.Is(err, errUnsigned) || !errors.Is(all, errUnsigned)) {
			t.Errorf("%v, %v: want that a secret is needed", err, all)
		}
	}
}

// An operator who names no scope means all instances. The only one is all of them, and needs no signature.
func TestFleet_OverrideWithoutASignatureIsOfTheOnlyInstance(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	join := func() *Gateway {
		c := inFleet(t, server, "")
		c.Stock.Reserve.Secret = ""
		g := gatewayOf(t, c)
		if err := g.fleet.join(); err != nil {
			t.Fatal(err)
		}
		return g
	}
	a := join()
	if o := a.controller.must(t, "limits.concurrency.max_in_flight", 7.0); o.Scope != admin.ScopeInstance {
		t.Errorf("the override is of the %s", o.Scope)
	}
	join()
	testkit.Eventually(t, "there are two", func() bool { return a.fleet.current().Share().Of == 2 })
	_, err := a.controller.Override(t.Context(), admin.Override{Key: "limits.concurrency.max_in_flight", Value: 8.0,
		Until: time.Now().Add(time.Hour)})
	if !errors.Is(err, errUnsigned) {
		t.Errorf("%v: want that a secret is needed", err)
	}
}

// A drain of the fleet may be under way when this instance stops.
func TestFleet_TaskThatOutlastsTheMembershipIsAnswered(t *testing.T) {
	t.Parallel()
	g := joined(t, redistest.Start(t), "")
	g.fleet.close()
	if answer := g.fleet.do(`{"drain": true, "by": "another"}`); !strings.Contains(answer, "not ended from here") {
		t.Errorf("%s", answer)
	}
}

// metricOf is the sum of all series of a metric.
func metricOf(t *testing.T, g *Gateway, name string) (sum float64) {
	t.Helper()
	all, err := g.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		for _, one := range family.GetMetric() {
			if family.GetName() == name {
				sum += one.GetGauge().GetValue() + one.GetCounter().GetValue()
			}
		}
	}
	return sum
}
