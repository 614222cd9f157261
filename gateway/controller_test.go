package gateway

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/storetest"
	"sluice/stockgate/ledger"
)

const steered = `
[server]
listen = ["127.0.0.1:0"]
[upstream]
targets = ["http://127.0.0.1:1"]
[limits.window]
max = 100
[[limits.rate]]
name = "per_ip"
rate = "20/s"
burst = 40
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "pages"
match = "/"
gate = "pass"
[[sale]]
name = "night"
skus = ["1005"]
starts = 2099-11-11T00:00:00+08:00
ends = 2099-11-12T00:00:00+08:00
[access_log]
output = "off"
[admin]
listen = ""
[ops]
listen = ""
`

// gatewayOf is what c wires, until the test ends. It does not listen.
func gatewayOf(t testing.TB, c *config.Config) *Gateway {
	t.Helper()
	g, err := New(c, Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// steer is a gate without a listener, and its files, which a test writes.
func steer(t testing.TB) (g *Gateway, file *string) {
	t.Helper()
	text := steered
	read := func() (*config.Config, error) {
		return config.Parse("config.toml", []byte(text), config.NoEnvironment, Validate)
	}
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	g = gatewayOf(t, c)
	g.controller.load, g.controller.files = read, &configFiles{}
	g.controller.drain = make(chan struct{}, 1)
	g.watch = admin.NewHistory(g.proxy.Counters().Traffic, g.dashboardMetrics())
	g.onClose(g.watch.Close)
	g.useControls()
	return g, &text
}

func (h *controller) must(t *testing.T, key string, value any) admin.Override {
	t.Helper()
	o, err := h.Override(t.Context(), admin.Override{Key: key, Value: value, Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// maxInFlight is the concurrency limit in force; 0 = none is told.
func maxInFlight(g *Gateway) float64 {
	for _, l := range g.Limits() {
		for _, n := range l.Now {
			if l.Name == "concurrency" && n.Name == "limit" {
				return n.Value
			}
		}
	}
	return 0
}

// A retry that fell due before a good file was read applies nothing again, and logs nothing.
func TestReload_RetryEndsWithTheFault(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	good := *file
	var log strings.Builder
	g.controller.log = slog.New(slog.NewTextHandler(&log, nil))
	reloads := func() int { return strings.Count(log.String(), `"configuration reloaded"`) }
	*file = good + "\n[nothing]\n"
	g.controller.reloadUnasked(false)
	*file = good
	g.controller.reloadUnasked(true)
	if !g.controller.reloaded.OK {
		t.Fatalf("%+v", g.controller.reloaded)
	}
	g.controller.reloadUnasked(true)
	if n := reloads(); n != 1 {
		t.Errorf("applied %d times, want once:\n%s", n, &log)
	}
}

func TestController_OverrideIsObeyedAndUndone(t *testing.T) {
	t.Parallel()
	g, _ := steer(t)
	o := g.controller.must(t, "limits.concurrency.max_in_flight", 7.0)
	if maxInFlight(g) != 7 || o.Before != 256 || o.TOML != "[limits.concurrency]\nmax_in_flight = 7\n" {
		t.Errorf("%v in flight, %+v", maxInFlight(g), o)
	}
	again := g.controller.must(t, "limits.concurrency.max_in_flight", 9.0)
	if len(g.controller.Overrides()) != 1 || again.Former != o.ID || again.Before != 256 {
		t.Errorf("%+v", g.controller.Overrides())
	}
	if _, err := g.controller.Undo(t.Context(), o.ID); !errors.Is(err, admin.ErrNoOverride) {
		t.Errorf("one that was replaced is undone: %v", err)
	}
	if _, err := g.controller.Undo(t.Context(), again.ID); err != nil || maxInFlight(g) != 256 {
		t.Errorf("%v, %v in flight", err, maxInFlight(g))
	}
}

// An operator is told that the value of an override is in force already, by the file or by another override.
func TestController_OverrideOfWhatIsInForceSaysSo(t *testing.T) {
	t.Parallel()
	g, _ := steer(t)
	for _, c := range []struct {
		value   any
		already bool
	}{{256.0, true}, {7.0, false}, {7.0, true}, {256.0, false}} {
		o := g.controller.must(t, "limits.concurrency.max_in_flight", c.value)
		if o.Already != c.already || g.controller.Overrides()[0].Already {
			t.Errorf("%v: already in force is %v, want %v; the list has %+v", c.value, o.Already, c.already,
				g.controller.Overrides())
		}
	}
}

func TestController_OverrideThatAFileCouldNotSayIsRejected(t *testing.T) {
	t.Parallel()
	g, _ := steer(t)
	for key, value := range map[string]any{
		"limits.window.max": 5.0, "limits.window.size": "20ms", "limits.rate[nobody].burst": 3.0,
		"limits.rate[per_ip].rate": 3.0, "admin.token_file": "x",
		"limits.concurrency.max_in_flight": 0.0, "": 1.0, "upstream.targets": "http://evil", "mode": "off",
	} {
		_, err := g.controller.Override(t.Context(), admin.Override{Key: key, Value: value, Until: time.Now().Add(time.Hour)})
		if !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("%s = %v: %v", key, value, err)
		}
	}
	if len(g.controller.Overrides()) != 0 {
		t.Errorf("%+v", g.controller.Overrides())
	}
	_, err := g.controller.Override(t.Context(), admin.Override{SKU: "none", Value: "paused",
		Until: time.Now().Add(time.Hour)})
	if !errors.Is(err, admin.ErrNoSKU) {
		t.Errorf("a SKU without a ledger: %v", err)
	}
}

// A reload keeps what is overridden where the new file has room for it, and drops all of it when that is asked for.
func TestController_OverridesAreKeptOrDroppedAtAReload(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	window, rate := g.controller.must(t, "limits.window.max", 50.0), g.controller.must(t, "limits.rate[per_ip].burst", 5.0)
	*file = strings.Replace(steered, "max = 100", "max = 200", 1)
	done, err := g.controller.Reload(t.Context(), false)
	if err != nil || len(done.Kept) != 2 || g.running.Load().Limits.Window.Max != 50 ||
		g.controller.filed.Limits.Window.Max != 200 {
		t.Fatalf("%+v, %v", done, err)
	}
	if o := g.controller.Overrides(); o[0].Before != 200 {
		t.Errorf("%+v does not know what it ends in", o[0])
	}
	*file = strings.Replace(*file, "per_ip", "per_client", 1)
	if done, err = g.controller.Reload(t.Context(), false); err != nil || len(done.Dropped) != 1 ||
		done.Dropped[0] != rate.ID {
		t.Errorf("%+v, %v: the rate has gone", done, err)
	}
	if done, err = g.controller.Reload(t.Context(), true); err != nil || len(done.Dropped) != 1 ||
		done.Dropped[0] != window.ID || g.running.Load().Limits.Window.Max != 200 {
		t.Errorf("%+v, %v: dropped by request", done, err)
	}
}

func TestController_BadFileChangesNothingAndIsTold(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	g.controller.must(t, "limits.window.max", 50.0)
	*file = strings.Replace(steered, "max = 100", "maxx = 100", 1)
	_, err := g.controller.Reload(t.Context(), true)
	var bad *admin.BadFile
	if !errors.As(err, &bad) || bad.Problems[0].Line != 7 || bad.Problems[0].Key != "limits.window.maxx" {
		t.Fatalf("%+v", err)
	}
	if s := g.Status(); s.Reload.OK || len(s.Reload.Problems) == 0 || len(g.controller.Overrides()) != 1 ||
		g.running.Load().Limits.Window.Max != 50 {
		t.Errorf("%+v", s)
	}
}

// Who reloads by the API or the command is told, as the log is, that a route sells from another stock.
func TestReload_OtherStockIsTold(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	*file = strings.Replace(steered, `"reserve"`, `"limit"`, 1)
	ask := httptest.NewRequest("POST", "/api/v1/reload", nil)
	ask.RemoteAddr, ask.Host = "127.0.0.1:5555", "localhost"
	w := httptest.NewRecorder()
	g.control.ServeHTTP(w, ask)
	var done admin.Reloaded
	if err := json.Unmarshal(w.Body.Bytes(), &done); err != nil || len(done.Warnings) != 1 ||
		done.Warnings[0] != "route order sells from the shop's stock now: set it to what is left" {
		t.Errorf("%v: %s", err, w.Body)
	}
}

// Listeners for proxies that ask are opened at the start: a file that adds, changes or drops one is rejected.
func TestReload_DecideNeedsARestart(t *testing.T) {
	read := func(text string) *config.Config {
		c, err := config.Parse("config.toml", []byte(text), config.NoEnvironment, Validate)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const one = steered + "[[decide]]\nlisten = \"127.0.0.1:8092\"\n"
	for _, next := range []string{one + "dialect = \"caddy\"\n", one + "[[decide]]\nlisten = \"127.0.0.1:8093\"\n",
		strings.Replace(one, "8092", "8093", 1), one + "trusted_proxies = [\"10.0.0.0/8\"]\n", steered} {
		for _, files := range [][2]string{{one, next}, {next, one}} {
			err := rejectRestarts(read(files[0]), read(files[1]))
			if err == nil || !strings.Contains(err.Error(), "decide") || !strings.Contains(err.Error(), "restart the gateway") {
				t.Errorf("from %s\nto %s: %v", files[0], files[1], err)
			}
		}
	}
	if err := rejectRestarts(read(one), read(strings.Replace(one, "max = 100", "max = 200", 1))); err != nil {
		t.Error(err)
	}
}

// What an operator said of a SKU meanwhile stands; else it is as it was before.
func TestController_SKUThatWasPausedForAWhileIsSoldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.Ledger(t)
		for _, sku := range []string{"1", "2"} {
			if _, err := store.SetTotal(t.Context(), sku, 5, 0); err != nil {
				t.Fatal(err)
			}
		}
		state := func(sku string) ledger.State {
			s, _, err := store.ReadStock(t.Context(), sku)
			if err != nil {
				t.Fatal(err)
			}
			return s.State
		}
		g := &Gateway{trail: admin.NewAuditLog(slog.New(slog.DiscardHandler))}
		g.running.Store(&config.Config{})
		g.orders.Store(&orderLedger{Store: store})
		h := &controller{g: g,
			log:  slog.New(slog.DiscardHandler),
			wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
		go h.attend()
		for _, sku := range []string{"1", "2"} {
			o := admin.Override{SKU: sku, Value: "paused", Until: time.Now().Add(10 * time.Minute)}
			if _, err := h.Override(t.Context(), o); err != nil || state(sku) != "paused" {
				t.Fatalf("%v, %s", err, state(sku))
			}
		}
		time.Sleep(5 * time.Minute) // of synctest
		if _, err := store.SetState(t.Context(), "2", "ended"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Minute + time.Second) // of synctest
		synctest.Wait()
		if state("1") != "on" || state("2") != "ended" || len(h.Overrides()) != 0 {
			t.Errorf("%s, %s, %v", state("1"), state("2"), h.Overrides())
		}
		h.close()
	})
}

// A SKU that is paused for a while, and then for good, stays so: what an operator closed never opens by itself.
func TestController_WhatIsSaidOfASKUEndsItsOverride(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"paused", "on", "ended"} {
		g, _ := steer(t)
		if _, err := g.ledgers(g.running.Load()).SetTotal(t.Context(), "1001", 5, 0); err != nil {
			t.Fatal(err)
		}
		o := admin.Override{SKU: "1001", Value: "paused", Until: time.Now().Add(time.Hour)}
		if _, err := g.controller.Override(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/api/v1/stock/1001", strings.NewReader(`{"state": "`+state+`"}`))
		r.RemoteAddr, r.Host = "127.0.0.1:5555", "localhost:8090"
		w := httptest.NewRecorder()
		g.control.ServeHTTP(w, r)
		if w.Code != 200 || len(g.controller.Overrides()) != 0 {
			t.Errorf("%s: %d %s, %+v", state, w.Code, w.Body, g.controller.Overrides())
		}
		for _, o := range g.controller.Overrides() {
			_, _ = g.controller.Undo(t.Context(), o.ID) // as its end does
		}
		if now, err := g.ledgers(g.running.Load()).Stock(t.Context(), "1001"); err != nil || now.Ledger.State != state {
			t.Errorf("it is %s, %v; want %s", now.Ledger.State, err, state)
		}
	}
}

func TestController_TheConfigurationIsShownWithWhereEachValueIsFrom(t *testing.T) {
	t.Parallel()
	g, _ := steer(t)
	o := g.controller.must(t, "limits.rate[per_ip].burst", 5.0)
	r := httptest.NewRequest(http.MethodGet, "/api/v1/config", nil)
	r.RemoteAddr, r.Host = "127.0.0.1:5555", "localhost"
	w := httptest.NewRecorder()
	g.control.ServeHTTP(w, r)
	var told admin.Settings
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	found := map[string]admin.Setting{}
	for _, s := range told.Settings {
		found[s.Key] = s
	}
	for _, want := range []admin.Setting{
		{Setting: config.Setting{Key: "limits.window.max", Value: 100.0, Origin: "config.toml:7"}, Live: true},
		{Setting: config.Setting{Key: "limits.window.size", Value: "10ms", Origin: "default"}, Live: true},
		{Setting: config.Setting{Key: "limits.rate[1].burst", Value: 5.0, Origin: "override " + o.ID}, Live: true},
	} {
		if found[want.Key] != want {
			t.Errorf("%+v, want %+v", found[want.Key], want)
		}
	}
}
