package loadtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/load"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// Without the right to INFO the ledger does not open, and only the gateway's log has the reason.
func TestRun_GatewayThatDoesNotBecomeReadyShowsItsLog(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Client.Do(t.Context(), "ACL", "SETUSER", "default", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	text := fmt.Sprintf(`name = "shop"
upstream.targets = ["http://127.0.0.1:1"]
stock.source = "redis"
stock.redis = { topology = "single", addresses = [%q], timeout = "2s" }
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
`, server.Addr)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := SandboxOptions{Config: path, Stock: 1, ShopCapacity: 1,
		Crowd: Crowd{Buyers: 1, Shape: Spike, GiveUpAfter: time.Second, Tries: 1}}
	_, err := o.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not become ready: ledger") ||
		!strings.Contains(err.Error(), "cannot open the ledger") || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("%v, want the cause", err)
	}
	if keys := server.Client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("%q are left over", keys)
	}
}

// A key that a killed load test leaves behind has an end, if it is a tenth of a second old. Ticks of the watch count
// the time: a slow machine makes fewer of them.
func TestTestedGateway_KeysGetAnEndEachTenthOfASecond(t *testing.T) {
	server := redistest.Start(t)
	link, err := redisconn.New(redisconn.Options{Topology: redisconn.Single, Addresses: []string{server.Addr},
		ConnectTimeout: 10 * time.Second, Timeout: 10 * time.Second, PoolSize: 1, BreakerErrors: 10, BreakerPause: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	r := &testedGateway{keys: []string{"a", "b"}, link: link, took: load.NewStopwatch()}
	server.Client.Set(t.Context(), "a", "1", 0)
	ctx, stop := context.WithCancel(t.Context())
	r.done.Go(func() { r.watch(ctx) })
	ticks := func() int64 { return r.took.Times().Count }
	const second = int64(time.Second / pingEvery)
	testkit.Eventually(t, "the ticks of a second pass", func() bool { return ticks() >= second })
	stop()
	r.done.Wait()
	const most = second / 5 // ticks from one end to the next; late ones come one after another
	if ends := server.Calls("pexpire") / int64(len(r.keys)); ends*most < ticks()-most {
		t.Errorf("each key was given an end %d times in %d ticks of %s", ends, ticks(), pingEvery)
	}
	if left := server.Client.TTL(t.Context(), "a").Val(); left <= 0 || left > leftFor {
		t.Errorf("the key ends in %s", left)
	}
}

func TestLogTail_KeepsTheLastWholeLines(t *testing.T) {
	var l logTail
	fault := errors.New("fault")
	if err := l.explain(fault); err != fault {
		t.Errorf("an empty log adds to it: %v", err)
	}
	line := func(i int) string { return fmt.Sprintf("line %d of a log\n", i) }
	const lines = 2000
	for i := range lines {
		fmt.Fprint(&l, line(i))
	}
	err := l.explain(fault)
	if !errors.Is(err, fault) {
		t.Errorf("%v is another error", err)
	}
	_, kept, _ := strings.Cut(err.Error()+"\n", "\n")
	n := strings.Count(kept, "\n")
	want := ""
	for i := lines - n; i < lines; i++ {
		want += line(i)
	}
	if kept != want || len(kept) > maxTail || len(kept) <= maxTail-len(line(lines)) {
		t.Errorf("%d bytes in %d lines: %q", len(kept), n, kept)
	}
}

// Advice is about the limits that the gate of the load test has: what is not enforced rejects no request.
func TestSandbox_AdviceIsAboutTheLimitsThatBind(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   func(*Limits)
	}{
		"as they are": {func(*config.Config) {}, func(*Limits) {}},
		"windows of a fleet": {
			func(c *config.Config) { c.Limits.Window.Scope, c.Fleet.Instances = "fleet", 2 },
			func(l *Limits) { l.Max, l.MaxPerSKU = 50, 2 },
		},
		"windows that only count": {
			func(c *config.Config) { c.Limits.ObserveOnly = []string{"window"} },
			func(l *Limits) { l.Max, l.MaxPerSKU = 0, 0 },
		},
		"places that only count": {
			func(c *config.Config) { c.Limits.ObserveOnly = []string{"concurrency"} },
			func(l *Limits) { l.InFlight, l.InFlightKey = 0, "" },
		},
		"all that only counts": {
			func(c *config.Config) { c.Mode = "observe" },
			func(l *Limits) { l.Max, l.MaxPerSKU, l.InFlight, l.InFlightKey = 0, 0, 0, "" },
		},
		"places of the route": {
			func(c *config.Config) { c.Routes[0].MaxInFlight = 5 },
			func(l *Limits) { l.InFlight, l.InFlightKey = 5, `max_in_flight of route "order"` },
		},
	} {
		conf := config.Default()
		conf.Routes = []config.Route{{Name: "order", Match: "POST /order/{sku}", Gate: "reserve", SKU: "$path_sku"}}
		conf.Limits.Window.Max, conf.Limits.Window.MaxPerSKU, conf.Limits.Concurrency.MaxInFlight = 100, 3, 40
		conf.Server.TrustedProxies = []string{"10.0.0.0/8", "127.0.0.0/8"}
		want := Limits{
			Window: 10 * time.Millisecond, Max: 100, MaxPerSKU: 3, InFlightKey: "limits.concurrency.max_in_flight", InFlight: 40,
			Queue:        512,
			PerUnit:      2,
			QueueTimeout: 200 * time.Millisecond, MaxOpen: conf.Limits.Connection.MaxConnections, Trusts: true,
			ResponseTimeout: 5 * time.Second, Reserves: true,
		}
		c.change(conf)
		c.want(&want)
		if got := (&sandbox{Route: "order"}).limits(conf); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
