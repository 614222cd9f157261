package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/load"
	"sluice/internal/loadtest"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// loadTest is what a load test says in JSON.
type loadTest struct {
	loadtest.Result
	said
}

// runLoadTest runs one on a configuration, with units of which the shop can sell many more a second.
func runLoadTest(t *testing.T, path string, args ...string) (r loadTest) {
	t.Helper()
	r.said = run(t, "", append([]string{"loadtest", "--config", path, "--json"}, args...)...)
	if r.code == 0 {
		if err := json.Unmarshal([]byte(r.out), &r.Result); err != nil {
			t.Fatalf("%v\n%s", err, r.out)
		}
	}
	return r
}

// everything is all that a Redis holds, by key; the time to live is not a part of it.
func everything(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range s.Client.Keys(t.Context(), "*").Val() {
		text, err := s.Client.Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		all[key] = text
	}
	return all
}

// A sale of SKU 1001 that is as far as it can be before it begins, in all the keys that there are.
func prepared(t *testing.T, s *redistest.Server, path, sku string) map[string]string {
	t.Helper()
	ok(t, "stock", "set", "--config", path, sku, "77")
	for _, command := range []string{"SET sluice:shop:secret 00112233445566778899aabbccddeeff",
		"SET sluice:shop:instances 3",
		"HSET sluice:shop:sales double paused",
		"SET seckill:stock:1001 77", "ZADD sluice:shop:skus 0 1001", "ZADD sluice:shop:fleet 1 other",
		"SADD seckill:users:1001 7"} {
		var words []any
		for _, w := range strings.Fields(command) {
			words = append(words, w)
		}
		if err := s.Client.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return everything(t, s)
}

func TestLoadTest_TouchesNothingThatIsSold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gate, settings string }{
		{"reserve", "stock.reserve.write_back = true\nstock.reserve.status_url = " +
			"\"http://127.0.0.1:1/orders/{serial}\"\nstock.reserve.on_not_found = \"cancel_then_release\""},
		{"check", "stock.layout.users_key = \"seckill:users:$sku\"\nlimits.window.scope = \"fleet\""},
		{"check", "stock.layout.type = \"hash_sold\"\nstock.layout.key = " +
			"\"goods:$sku_1:$sku_2\"\nstock.max_in_flight_per_unit = 2"},
		{"limit", "stock.sold_out_on = { status = [409] }"},
	} {
		t.Run(c.gate, func(t *testing.T) {
			redis := redistest.Start(t)
			path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\n"+c.settings+"\n"+
				strings.Replace(routes, `"check"`, strconv.Quote(c.gate), 1))
			before := prepared(t, redis, path,
				map[bool]string{true: "1001:red", false: "1001"}[strings.Contains(c.settings, "$sku_2")])
			r := runLoadTest(t, path, "--buyers", "600", "--stock", "60", "--over", "100ms")
			if r.code != 0 || r.Shop.Orders != 60 || r.Buyer.Bought != 60 || !r.SoldOut || r.Err() != nil {
				t.Errorf("%s: exit code %d, %+v, %+v, %v\n%s", c.gate, r.code, r.Shop, r.Buyer, r.Err(), r.complaint)
			}
			if c.gate != "limit" && (r.Ledger == nil || r.Ledger.Sold != 60 || r.Ledger.Free != 0) {
				t.Errorf("%s: books %+v, the shop %+v", c.gate, r.Ledger, r.Shop)
			}
			if c.gate == "reserve" && r.Redis.Calls["ledger reserve"] == 0 ||
				c.gate == "check" && r.Redis.Calls["stock read"] == 0 {
				t.Errorf("%s: calls %v", c.gate, r.Redis.Calls)
			}
			after := everything(t, redis)
			for key := range after {
				if _, there := before[key]; !there {
					t.Errorf("%s: %q is left over", c.gate, key)
				}
			}
			for key, text := range before {
				if after[key] != text {
					t.Errorf("%s: %q is another", c.gate, key)
				}
			}
		})
	}
}

// What is under way at the end is no oversold unit.
func TestLoadTest_OpenBooksAreNotBroken(t *testing.T) {
	testkit.Nightly(t, "it plays sales in real time")
	t.Parallel()
	redis := redistest.Start(t)
	for name, c := range map[string]struct {
		settings string
		args     []string
	}{
		"a shop that fails": {reserveRoutes, []string{"--shop-errors", "20"}},
		"orders under way": {routes, []string{"--shop-capacity", "1", "--shop-latency", "100ms", "--patience",
			"500ms"}},
	} {
		path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\n"+c.settings)
		r := runLoadTest(t, path, append([]string{"--buyers", "200", "--stock", "100", "--over", "100ms"}, c.args...)...)
		if r.code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.complaint)
		}
	}
}

func TestLoadTest_NeedsNoRedisWhereTheGateNeedsNone(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"reserve", "check"} {
		path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+
			strings.Replace(routes, `"check"`, strconv.Quote(gate), 1))
		plot := filepath.Join(t.TempDir(), "sale.svg")
		r := runLoadTest(t, path, "--buyers", "300", "--stock", "30", "--shape", "ramp", "--over", "500ms", "--plot", plot)
		if r.code != 0 || r.Shop.Orders != 30 || r.Ledger == nil || r.Ledger.Free != 0 {
			t.Errorf("%s: exit code %d, %+v, %+v\n%s", gate, r.code, r.Shop, r.Ledger, r.complaint)
		}
		if text, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(text), "<svg ") {
			t.Errorf("%s: %v, %.40s", gate, err, text)
		}
	}
}

// The signal of a terminal leaves no keys behind. They have an end also where the process is killed.
func TestLoadTest_RemovesItsKeysAtTheEnd(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\n"+reserveRoutes)
	keys := func() int64 { return redis.Client.DBSize(t.Context()).Val() }
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		cmd := exec.Command(binary, "loadtest", "--config", path, "--buyers", "500", "--stock", "400", "--shape", "ramp",
			"--over", "20s")
		cmd.Env = surroundings()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		soon(t, "it sells", func() bool { return keys() > 4 })
		soon(t, "its keys end by themselves", func() bool {
			for _, key := range redis.Client.Keys(t.Context(), "*").Val() {
				if ttl := redis.Client.TTL(t.Context(), key).Val(); ttl < 0 {
					return false
				}
			}
			return true
		})
		if err := cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("interrupted: %v", err)
		}
		soon(t, "its keys are gone", func() bool { return keys() == 0 })
	}
}

func TestLoadTest_ImpossibleOneReportsWhy(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sells := func(settings string) string {
		return "upstream.targets = [\"http://127.0.0.1:1\"]\n" + redisAt(redis) + "\n" + settings + "\n" + reserveRoutes
	}
	now := time.Now().UTC()
	sale := func(starts time.Duration) string {
		return fmt.Sprintf("\n[[sale]]\nname = \"double\"\nskus = [\"1001\"]\nstarts = %s\nends = %s\n",
			now.Add(starts).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	}
	on, next := sale(-time.Hour), sale(2*time.Minute)
	script := filepath.Join(t.TempDir(), "look.lua")
	if err := os.WriteFile(script, []byte("return 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		args []string
		code int
		says []string
	}{
		{sells("limits.window.max = \"x\""), nil, 1, []string{"config.toml:6: ", "limits.window.max"}},
		{sells("") + on, nil, 1, []string{"config.toml:", "sale[1]", "is on"}},
		{sells("") + next, []string{"--patience", "2m"}, 1, []string{"config.toml:", "sale[1]", "begins in", "may take"}},
		{"upstream.targets = [\"http://127.0.0.1:1\"]\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n", nil, 1,
			[]string{"route", "nothing to test"}},
		{sells(""), []string{"--route", "other"}, 1, []string{`no route "other"`}},
		{"upstream.targets = [\"http://127.0.0.1:1\"]\n" + redisAt(redis) +
			"\nstock.layout.type = \"script\"\nstock.layout.script_file = " + strconv.Quote(script) + "\n" + routes, nil, 1,
			[]string{"stock.layout.type", "only the shop knows"}},
		{strings.Replace(sells(""), redis.Addr, "127.0.0.1:1", 1), nil, 3, []string{"redis"}},
		{sells(""), []string{"--buyers", "0"}, 2, []string{"--buyers"}},
		{sells(""), []string{"--shape", "square"}, 2, []string{"--shape"}},
	} {
		r := runLoadTest(t, file(t, c.text), c.args...)
		if r.code != c.code {
			t.Errorf("%q %v: exit code %d, want %d\n%s%s", c.text, c.args, r.code, c.code, r.out, r.complaint)
		}
		wants(t, r.complaint, c.says...)
	}
	if n := redis.Client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left over", n)
	}
}

// foretold is a sale that limits decide and not the machine: how many buyers come, what there is, and what then happens
// to a load test of it as to the sale, however fast both are.
type foretold struct {
	settings                 string
	buyers, addresses, units int
	orders                   int64
	home                     loadtest.Home
	rejected                 map[string]int64 // nil = how often clients come back is chance
	inFlight                 int64            // in the shop, at most; 0 = as many as have a connection
	window                   int64            // orders that one admits; 0 = there are none
	advice                   string           // the key of one
}

var sales = map[string]foretold{
	"the stock decides": {
		buyers: 2500, addresses: 2500, units: 350, settings: "limits.window.max = 0\nlimits.window.max_per_sku = 0",
		orders: 350, home: loadtest.Home{Bought: 350, SoldOut: 2150}, rejected: map[string]int64{"sold_out": 2150},
	},
	"few places in the shop": {
		buyers: 600, addresses: 600, units: 250,
		settings: "limits.window.max = 0\nlimits.window.max_per_sku = 0\nlimits.concurrency = { max_in_flight = 3, " +
			"max_queue = 512, queue_timeout = \"1m\" }",
		orders: 250, home: loadtest.Home{Bought: 250, SoldOut: 350}, rejected: map[string]int64{"sold_out": 350}, inFlight: 3,
	},
	"a rate of each address": {
		buyers: 1500, addresses: 300, units: 1000,
		settings: "limits.window.max = 0\nlimits.window.max_per_sku = 0\nlimits.rate = [{ name = \"per_ip\", key = " +
			"\"$remote_addr\", rate = \"1/h\", burst = 3 }]",
		orders: 900, home: loadtest.Home{Bought: 900, GaveUp: 600}, rejected: map[string]int64{"rate": 600},
		advice: "limits.rate",
	},
	"windows": {
		buyers: 150, addresses: 150, units: 60,
		settings: "limits.window.max = 0\nlimits.window.max_per_sku = 1\nresponses.retry_after_jitter = \"0s\"",
		orders:   60, home: loadtest.Home{Bought: 60, SoldOut: 90}, window: 1,
	},
}

// What limits decide happens to the sale as it was foretold: who bought, who was rejected and why, what the shop felt.
func TestLoadTest_PredictsTheSale(t *testing.T) {
	t.Parallel()
	for name, s := range sales {
		t.Run(name, func(t *testing.T) {
			if s.advice == "" && s.inFlight == 0 {
				testkit.Nightly(t, "the load of the machine takes long")
			}
			redis := redistest.Start(t)
			shop, err := load.OpenShop(load.ShopOptions{Units: int64(s.units), Capacity: 16, Latency: time.Millisecond,
				Reserved: true, Body: `{"code":0}`})
			if err != nil {
				t.Fatal(err)
			}
			defer shop.Close()
			g := gate(t, "upstream.targets = [\"http://"+shop.Addr()+"\"]", "server.trusted_proxies = [\"127.0.0.0/8\"]",
				redisAt(redis), s.settings, reserveRoutes)
			ok(t, "stock", "set", "--config", g.file, "1001", fmt.Sprint(s.units))

			r := runLoadTest(t, g.file, "--buyers", fmt.Sprint(s.buyers), "--addresses", fmt.Sprint(s.addresses), "--stock",
				fmt.Sprint(s.units), "--over", "50ms", "--patience", "50s",
				"--connections", "64", "--shop-capacity", "16", "--shop-latency", "1ms")
			if r.code != 0 {
				t.Fatal(r.complaint)
			}
			real, err := loadtest.Run(t.Context(), loadtest.Plan{
				Front: g.front, Order: load.Order{Match: "POST /api/seckill/{sku}/order", ID: "1001", SKU: "$path_sku",
					User: "$cookie_uid", Quantity: "1", Address: "X-Forwarded-For"},
				Crowd: loadtest.Crowd{Buyers: s.buyers, Addresses: s.addresses, Shape: loadtest.Spike,
					Spread: 50 * time.Millisecond, GiveUpAfter: 50 * time.Second, Tries: 20, Connections: 64},
				Shop: shop, Gate: sold{t, g, redis, "1001"},
			})
			if err != nil || real.Err() != nil {
				t.Fatal(err, real.Err())
			}
			s.happened(t, "the load test", &r.Result)
			s.happened(t, "the sale", &real)
			if !slices.ContainsFunc(r.Advice, func(a loadtest.Advice) bool { return s.advice == "" || a.Key == s.advice }) {
				t.Errorf("no advice about %s: %+v", s.advice, r.Advice)
			}
		})
	}
}

// happened wants what was foretold.
func (s *foretold) happened(t *testing.T, to string, r *loadtest.Result) {
	t.Helper()
	if r.Buyer != s.home || r.Shop.Orders != s.orders || r.Shop.Requests != s.orders ||
		r.SoldOut != (s.orders == int64(s.units)) {
		t.Errorf("%s: %+v, %+v", to, r.Buyer, r.Shop)
	}
	if l := r.Ledger; l == nil ||
		*l != (load.Ledger{Total: int64(s.units), Free: int64(s.units) - s.orders, Sold: s.orders, Own: true}) {
		t.Errorf("%s: books %+v", to, l)
	}
	rejected := int64(0)
	for _, n := range r.Rejected {
		rejected += n
	}
	final := maps.Clone(r.Rejected)
	delete(final, "undecided") // how many come before the last order is confirmed is chance
	if r.Requests != rejected+s.orders || r.Broken > 0 || s.rejected != nil && !maps.Equal(final, s.rejected) {
		t.Errorf("%s: %d requests, %d broke off, rejected %v", to, r.Requests, r.Broken, r.Rejected)
	}
	if s.inFlight > 0 && r.Shop.PeakInFlight > s.inFlight {
		t.Errorf("%s: %d in flight", to, r.Shop.PeakInFlight)
	}
	switch w := r.Windows; {
	case s.window == 0 && w.Used > 0:
		t.Errorf("%s: windows %+v", to, w)
	case s.window > 0 && (w.Used*s.window < s.orders || w.Full != w.Used):
		t.Errorf("%s: windows %+v of %d, and %d orders", to, w, s.window, s.orders)
	}
}

// sold looks at the books of a real sale, and at the windows of its gate.
type sold struct {
	t     *testing.T
	gate  *running
	redis *redistest.Server
	sku   string
}

func (s sold) Read(context.Context) (loadtest.GatewayReading, error) {
	a := ledgerOf(s.t, s.redis, s.sku)
	return loadtest.GatewayReading{
		Ledger: &load.Ledger{Total: int64(a.total), Held: int64(a.held), Sold: int64(a.sold),
			Free: int64(a.total - a.held - a.sold), Own: true},
		Windows:   int64(s.gate.metric("sluice_windows_total", `of="sku"`)),
		Saturated: int64(s.gate.metric("sluice_windows_saturated_total", `of="sku"`)),
	}, nil
}
