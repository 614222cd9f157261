package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/rehearsal"
)

// rehearsed is what a rehearsal says in JSON.
type rehearsed struct {
	rehearsal.Result
	said
}

// rehearse runs one on a configuration, with units of which the shop can sell many more a second.
func rehearse(t *testing.T, path string, args ...string) (r rehearsed) {
	t.Helper()
	r.said = run(t, "", append([]string{"rehearse", "--config", path, "--json"}, args...)...)
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
	for _, command := range []string{"SET sluice:secret 00112233445566778899aabbccddeeff", "SET sluice:instances 3", "HSET sluice:sales double paused",
		"SET seckill:stock:1001 77", "ZADD sluice:skus 0 1001", "ZADD sluice:fleet:shop 1 other", "SADD seckill:users:1001 7"} {
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

func TestARehearsalTouchesNothingThatIsSold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gate, settings string }{
		{"reserve", "stock.reserve.mirror = true\nstock.reserve.status_url = \"http://127.0.0.1:1/orders/{serial}\"\nstock.reserve.fence = \"cancel\""},
		{"check", "stock.layout.users_key = \"seckill:users:$sku\"\nlimits.window.scope = \"fleet\""},
		{"check", "stock.layout.type = \"hash_sold\"\nstock.layout.key = \"goods:$sku_1:$sku_2\"\nstock.per_unit = 2"},
		{"limit", "stock.sold_out_on = { status = [409] }"},
		{"reserve", "stock.layout.type = \"counter\"\nstock.layout.driver = \"lock\"\nstock.layout.lock_key = \"lock:$sku\""},
		{"reserve", "stock.layout.type = \"counter_users\"\nstock.layout.driver = \"counter_users\"\nstock.layout.users_key = \"seckill:users:$sku\""},
	} {
		redis := redistest.Start(t)
		path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\n"+c.settings+"\n"+strings.Replace(routes, `"check"`, strconv.Quote(c.gate), 1))
		before := prepared(t, redis, path, map[bool]string{true: "1001:red", false: "1001"}[strings.Contains(c.settings, "$sku_2")])
		r := rehearse(t, path, "--buyers", "600", "--stock", "60", "--over", "100ms")
		if r.code != 0 || r.Shop.Orders != 60 || r.Buyer.Bought != 60 || !r.SoldOut || r.Err() != nil {
			t.Errorf("%s: exit code %d, %+v, %+v, %v\n%s", c.gate, r.code, r.Shop, r.Buyer, r.Err(), r.complaint)
		}
		if c.gate != "limit" && (r.Ledger == nil || r.Ledger.Sold != 60 || r.Ledger.Free != 0) {
			t.Errorf("%s: books %+v, the shop %+v", c.gate, r.Ledger, r.Shop)
		}
		if c.gate == "reserve" && !strings.Contains(c.settings, "driver") && r.Redis.Calls["ledger reserve"] == 0 || c.gate == "check" && r.Redis.Calls["stock read"] == 0 {
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
	}
}

// What is under way at the end, and what a driver cannot give back, is no oversold unit.
func TestBooksThatAreNotClosedYetAreNotBroken(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for name, c := range map[string]struct {
		settings string
		args     []string
	}{
		"a driver, and a shop that fails": {"stock.layout.type = \"counter_users\"\nstock.layout.driver = \"counter_users\"\nstock.layout.users_key = \"seckill:users:$sku\"\n" + reserveRoutes,
			[]string{"--shop-errors", "20"}},
		"orders under way":            {routes, []string{"--shop-capacity", "1", "--shop-latency", "100ms", "--patience", "500ms"}},
		"orders of a driver likewise": {"stock.layout.driver = \"watch\"\n" + reserveRoutes, []string{"--shop-capacity", "1", "--shop-latency", "100ms", "--patience", "500ms"}},
	} {
		path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\n"+c.settings)
		r := rehearse(t, path, append([]string{"--buyers", "200", "--stock", "100", "--over", "100ms"}, c.args...)...)
		if r.code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.complaint)
		}
	}
}

func TestARehearsalNeedsNoRedisWhereTheGateNeedsNone(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"reserve", "check"} {
		path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+strings.Replace(routes, `"check"`, strconv.Quote(gate), 1))
		plot := filepath.Join(t.TempDir(), "sale.svg")
		r := rehearse(t, path, "--buyers", "300", "--stock", "30", "--shape", "ramp", "--over", "500ms", "--plot", plot)
		if r.code != 0 || r.Shop.Orders != 30 || r.Ledger == nil || r.Ledger.Free != 0 {
			t.Errorf("%s: exit code %d, %+v, %+v\n%s", gate, r.code, r.Shop, r.Ledger, r.complaint)
		}
		if text, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(text), "<svg ") {
			t.Errorf("%s: %v, %.40s", gate, err, text)
		}
	}
}

// Neither the signal of a terminal, which both processes hear, nor the death of one leaves keys behind.
func TestAnEndedRehearsalTakesItsKeysAway(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\n"+reserveRoutes)
	keys := func() int64 { return redis.Client.DBSize(t.Context()).Val() }
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL} {
		cmd := exec.Command(binary, "rehearse", "--config", path, "--buyers", "500", "--stock", "400", "--shape", "ramp", "--over", "20s")
		cmd.Env, cmd.SysProcAttr = surroundings(), &syscall.SysProcAttr{Setpgid: true}
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
		to := cmd.Process.Pid
		if end != syscall.SIGKILL {
			to = -to // the terminal tells all
		}
		if err := syscall.Kill(to, end); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); end == syscall.SIGINT && err != nil {
			t.Errorf("interrupted: %v", err)
		}
		soon(t, "its keys are gone", func() bool { return keys() == 0 })
	}
}

func TestARehearsalThatCannotBeSaysWhy(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sells := func(settings string) string {
		return "upstream.targets = [\"http://127.0.0.1:1\"]\n" + redisAt(redis) + "\n" + settings + "\n" + reserveRoutes
	}
	now := time.Now().UTC()
	sale := func(starts time.Duration) string {
		return fmt.Sprintf("\n[[sale]]\nname = \"double\"\nskus = [\"1001\"]\nstarts = %s\nends = %s\n", now.Add(starts).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
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
		{sells("limits.window.max = \"x\""), nil, 1, []string{"config.toml:5: ", "limits.window.max"}},
		{sells("") + on, nil, 1, []string{"config.toml:", "sale[1]", "is on"}},
		{sells("") + next, []string{"--patience", "2m"}, 1, []string{"config.toml:", "sale[1]", "begins in", "may take"}},
		{sells("stock.layout.type = \"hash_sold\"\nstock.layout.driver = \"hash_bought\"\nstock.layout.status_field = \"on\""), nil, 1, []string{"stock.layout.status_field", "only the shop opens"}},
		{"upstream.targets = [\"http://127.0.0.1:1\"]\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n", nil, 1, []string{"route", "nothing to rehearse"}},
		{sells(""), []string{"--route", "other"}, 1, []string{`no route "other"`}},
		{"upstream.targets = [\"http://127.0.0.1:1\"]\n" + redisAt(redis) + "\nstock.layout.type = \"script\"\nstock.layout.script_file = " + strconv.Quote(script) + "\n" + routes, nil, 1, []string{"stock.layout.type", "only the shop knows"}},
		{strings.Replace(sells(""), redis.Addr, "127.0.0.1:1", 1), nil, 3, []string{"redis"}},
		{sells(""), []string{"--buyers", "0"}, 2, []string{"--buyers"}},
		{sells(""), []string{"--shape", "square"}, 2, []string{"--shape"}},
	} {
		r := rehearse(t, file(t, c.text), c.args...)
		if r.code != c.code {
			t.Errorf("%q %v: exit code %d, want %d\n%s%s", c.text, c.args, r.code, c.code, r.out, r.complaint)
		}
		wants(t, r.complaint, c.says...)
	}
	if n := redis.Client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left over", n)
	}
}

// The pace of the windows decides, a hundred a second, and not that of the machine.
const onePerWindow = `limits.window.max_per_sku = 1
limits.window.max = 0
server.trusted_proxies = ["127.0.0.0/8"]
`

// The rehearsal says when a sale of the same configuration is sold out, and what would make it sooner.
func TestARehearsalPredictsTheSale(t *testing.T) {
	const units, buyers, capacity, latency = 350, 2500, 16, 20 * time.Millisecond
	redis := redistest.Start(t)
	for attempt := 1; ; attempt++ {
		shop, err := rehearsal.OpenShop(rehearsal.ShopOptions{Units: units, Capacity: capacity, Latency: latency, Reserved: true, Body: `{"code":0}`})
		if err != nil {
			t.Fatal(err)
		}
		defer shop.Close()
		sku := fmt.Sprint(1000 + attempt)
		g := gate(t, "upstream.targets = [\"http://"+shop.Addr()+"\"]", redisAt(redis), onePerWindow, reserveRoutes)
		ok(t, "stock", "set", "--config", g.file, sku, fmt.Sprint(units))

		r := rehearse(t, g.file, "--buyers", fmt.Sprint(buyers), "--stock", fmt.Sprint(units), "--shop-capacity", fmt.Sprint(capacity), "--shop-latency", latency.String())
		if r.code != 0 {
			t.Fatal(r.complaint)
		}
		real, err := rehearsal.Run(t.Context(), rehearsal.Plan{
			Front: g.front, Order: rehearsal.Order{Match: "POST /api/seckill/{sku}/order", ID: sku, SKU: "$path_sku", User: "$cookie_uid", Quantity: "1", Address: "X-Forwarded-For"},
			Buyers: buyers, Shape: rehearsal.Spike, Over: 300 * time.Millisecond, Patience: time.Minute, Tries: 20, Connections: 1280,
			Shop: shop, Gate: sold{t, redis, sku},
		})
		if err != nil || real.Err() != nil {
			t.Fatal(err, real.Err())
		}
		g.terminate()
		g.stopped()
		t.Logf("predicted: sold out after %.2f s, %d requests, %v; the sale: %.2f s, %d requests, %v", r.LastUnit, r.Requests, r.Refused, real.LastUnit, real.Requests, real.Refused)
		if !r.SoldOut || !real.SoldOut {
			t.Fatalf("sold %d and %d of %d", r.Shop.Orders, real.Shop.Orders, units)
		}
		if r.LastUnit > 0.8*real.LastUnit && r.LastUnit < 1.2*real.LastUnit {
			starves(t, r)
			return
		}
		if attempt == 3 {
			t.Fatalf("predicted %.2f s, and it took %.2f s", r.LastUnit, real.LastUnit)
		}
	}
}

// starves wants the advice that the windows are too small for the shop.
func starves(t *testing.T, r rehearsed) {
	t.Helper()
	i := slices.IndexFunc(r.Advice, func(a rehearsal.Advice) bool { return a.Key == "limits.window.max_per_sku" })
	if i < 0 {
		t.Fatalf("no advice about windows: %+v; shop %+v", r.Advice, r.Shop)
	}
	t.Log(r.Advice[i].Text)
	wants(t, r.Advice[i].Text, "limits.window.max_per_sku = 1 starves the shop", "sold out would come after", fmt.Sprintf("instead of %.1f s", r.LastUnit))
}

// sold looks at the books of a real sale.
type sold struct {
	t     *testing.T
	redis *redistest.Server
	sku   string
}

func (s sold) Look(context.Context) (rehearsal.Look, error) {
	a := ledgerOf(s.t, s.redis, s.sku)
	return rehearsal.Look{Total: int64(a.total), Held: int64(a.held), Sold: int64(a.sold), Free: int64(a.total - a.held - a.sold), Counted: true, Ledger: true}, nil
}
