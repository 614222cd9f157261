package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// pulling is a gate whose orders consumers take, with tokens: of operators, viewers and consumers.
func pulling(t *testing.T, r *redistest.Server, more ...string) (g *running, consumer string) {
	t.Helper()
	dir := t.TempDir()
	token := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name[:1], 32)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := `stock.reserve.max_per_user = 1
queue.pull = "10s"
queue.grace = "200ms"
queue.max_in_flight = 10
admin.token_file = "` + token("operators") + `"
admin.viewer_token_file = "` + token("viewers") + `"
admin.consumer_token_file = "` + token("consumers") + `"
`
	g = gate(t, append(append([]string{redisAt(r), boundless, settings}, more...), waitingRoutes)...)
	return g, strings.Repeat("c", 32)
}

// post asks the control API as a consumer.
func post(t *testing.T, g *running, token, path string, in, out any) (status int) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	a := g.control("POST", "/api/v1/queue/"+path, string(body), "Authorization: Bearer "+token)
	if a.status == 200 && json.Unmarshal([]byte(a.body), out) != nil {
		t.Fatalf("%s: %s", path, a.body)
	}
	return a.status
}

type takenOrders struct{ Orders []admin.QueuedOrder }

// firstOrders takes orders as soon as the instance hands out some of the SKU.
func firstOrders(t *testing.T, g *running, token string, n int) (all takenOrders) {
	t.Helper()
	soon(t, "orders are handed out", func() bool {
		return post(t, g, token, "take", takeOf(n), &all) != 200 || len(all.Orders) > 0
	})
	if len(all.Orders) != n {
		t.Fatalf("%d orders are handed out, want %d", len(all.Orders), n)
	}
	return all
}

// takeOf asks for orders that are settled within a lease. briefly asks for some that are not: they come again after it.
func takeOf(n int) any { return map[string]any{"n": n, "lease": "10s"} }

func briefly(n int) any { return map[string]any{"n": n, "lease": "1s"} }

func settleOne(o *admin.QueuedOrder, outcome string, answer *admin.QueueAnswer) any {
	one := admin.QueueOutcome{SKU: o.SKU, Serial: o.Serial, Receipt: o.Receipt, Outcome: outcome, Answer: answer}
	return map[string]any{"orders": []admin.QueueOutcome{one}}
}

type settledOrders struct {
	Orders []struct{ Serial, Done, Error string }
}

func TestPull_HandsOutOrdersWithinTheLimitAndTakesTheirOutcomes(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	g, token := pulling(t, r, "queue.redeliver = \"by_key\"", `upstream.targets = ["http://127.0.0.1:9"]`)
	ok(t, "stock", "set", "--config", g.file, "1001", "20")
	var where string
	for i := range 12 {
		w := g.call(t, "POST", orderPath, fmt.Sprint("body ", i), "Cookie", fmt.Sprint("uid=", i), "Idempotency-Key",
			fmt.Sprint("key-", i))
		if w.status != 202 {
			t.Fatalf("%+v", w)
		}
		if i == 0 {
			where = w.header.Get("Location")
		}
	}
	var rest takenOrders
	all := firstOrders(t, g, token, 3)
	if post(t, g, token, "take", briefly(50), &rest); len(rest.Orders) != 7 {
		t.Fatalf("%d orders beside 3 of another consumer: want 7, the limit is 10", len(rest.Orders))
	}
	first, second, third := &all.Orders[0], &all.Orders[1], &all.Orders[2]
	if first.Serial != "key-0" || string(first.Body) != "body 0" || first.User != "0" || first.Method != "POST" ||
		first.Target != orderPath || first.Headers["Cookie"] != "uid=0" || first.Attempt != 1 {
		t.Errorf("%+v", first)
	}
	var said settledOrders
	settle := func(o *admin.QueuedOrder, outcome string, answer *admin.QueueAnswer) string {
		if post(t, g, token, "settle", settleOne(o, outcome, answer), &said); len(said.Orders) != 1 {
			t.Fatalf("%+v", said)
		}
		return said.Orders[0].Done
	}
	if got := settle(first, "confirmed", &admin.QueueAnswer{Status: 201, Body: []byte("yours")}); got != "changed" {
		t.Error(got)
	}
	if got := settle(first, "confirmed", nil); got != "already" {
		t.Error(got)
	}
	if got := settle(second, "released", nil); got != "changed" {
		t.Error(got)
	}
	if got := settle(third, "again", nil); got != "changed" {
		t.Error(got)
	}
	if w := g.call(t, "GET", where, ""); w.State != "sold" || w.Answer == nil || w.Answer.Body != "yours" {
		t.Errorf("the client sees %+v", w)
	}
	seen, again := map[string]int64{}, ""
	soon(t, "the rest is handed out, and again what was not settled in time", func() bool {
		var more takenOrders
		post(t, g, token, "take", takeOf(50), &more)
		for i := range more.Orders {
			o := &more.Orders[i]
			seen[o.Serial] = max(seen[o.Serial], o.Attempt)
			if done := settle(o, "confirmed", nil); done != "changed" {
				again += o.Serial + " " + done + "; "
			}
		}
		return ledgerOf(t, r, "1001") == account{total: 20, sold: 11}
	})
	if seen["key-2"] != 1 || seen["key-3"] != 2 || seen["key-11"] != 1 || seen["key-0"] != 0 || again != "" {
		t.Errorf("attempts %v; %s", seen, again)
	}
}

func TestPull_TokenOfConsumersDoesNothingElse(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	g, token := pulling(t, r, `upstream.targets = ["http://127.0.0.1:9"]`)
	var out any
	for who, c := range map[string]struct {
		token string
		want  int
	}{"a consumer": {token, 200}, "an operator": {strings.Repeat("o", 32), 200}, "a viewer": {strings.Repeat("v", 32),
		403}, "another": {strings.Repeat("x", 32), 401}} {
		if got := post(t, g, c.token, "take", takeOf(1), &out); got != c.want {
			t.Errorf("%s gets %d", who, got)
		}
	}
	if got := post(t, g, token, "take", map[string]any{"n": 101, "lease": "5s"}, &out); got != 400 {
		t.Errorf("too many: %d", got)
	}
	if got := post(t, g, token, "take", map[string]any{"n": 1, "lease": "5s", "sku": "none"}, &out); got != 404 {
		t.Errorf("a SKU without a ledger: %d", got)
	}
	for _, path := range []string{"../stock/1001", "../drain", "../reload"} {
		if got := post(t, g, token, path, map[string]any{"set": 5}, &out); got != 403 {
			t.Errorf("a consumer asks %s: %d", path, got)
		}
	}
}

// The consumers of examples/pull take what waits, and settle it.
func TestPull_ExampleConsumersWork(t *testing.T) {
	testkit.Nightly(t, "it needs node, php and java")
	t.Parallel()
	for name, command := range map[string][]string{
		"node": {"node", "../examples/pull/consumer.mjs"},
		"go":   {"go", "run", "../examples/pull/consumer.go"},
		"php":  {"php", "../examples/pull/consumer.php"},
		"java": {"java", "../examples/pull/Consumer.java"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(command[0] + " is not installed")
			}
			t.Parallel()
			r := redistest.Start(t)
			g, token := pulling(t, r, `upstream.targets = ["http://127.0.0.1:9"]`)
			ok(t, "stock", "set", "--config", g.file, "1001", "5")
			where := ""
			for i := range 5 {
				w := g.call(t, "POST", orderPath, `{"n":1}`, "Cookie", fmt.Sprint("uid=", i))
				where = w.header.Get("Location")
			}
			soon(t, "all are sold", func() bool { // an instance hands nothing out within its first seconds
				c := exec.Command(command[0], command[1:]...)
				c.Env = append(os.Environ(), "SLUICE_URL=http://"+g.admin, "SLUICE_TOKEN="+token, "SLUICE_ONCE=1")
				if text, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				return ledgerOf(t, r, "1001") == account{total: 5, sold: 5}
			})
			if w := g.call(t, "GET", where, ""); w.Answer == nil || w.Answer.Status != 201 ||
				!strings.Contains(w.Answer.Body, w.Serial) {
				t.Errorf("the client sees %+v", w)
			}
		})
	}
}

// What one call settles shares its calls of Redis.
func TestPull_SettlesManyOrdersTogether(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	g, token := pulling(t, r, `upstream.targets = ["http://127.0.0.1:9"]`)
	const n = 10
	ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(n))
	g.many(t, n, 4, "", func(int, *http.Response) {})
	all := firstOrders(t, g, token, n)
	var outcomes []admin.QueueOutcome
	for i := range all.Orders {
		o := &all.Orders[i]
		outcomes = append(outcomes, admin.QueueOutcome{SKU: o.SKU, Serial: o.Serial, Receipt: o.Receipt,
			Outcome: "confirmed"})
	}
	var said settledOrders
	post(t, g, token, "settle", map[string]any{"orders": outcomes}, &said)
	for i, o := range said.Orders {
		if o.Done != "changed" || o.Serial != outcomes[i].Serial {
			t.Errorf("order %d: %+v", i, o)
		}
	}
	if calls := g.metric("sluice_delivery_calls_total", `call="decide"`); len(said.Orders) != n || calls > n/2 {
		t.Errorf("%d orders settled by %v calls", len(said.Orders), calls)
	}
	if a := ledgerOf(t, r, "1001"); a.sold != n {
		t.Errorf("%+v", a)
	}
}

// A consumer's "released" speaks of its own attempt: an order that an earlier attempt may have made stays held.
func TestPull_ReleasedEndsNoOpenOrder(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	g, token := pulling(t, r, "queue.redeliver = \"by_key\"", `upstream.targets = ["http://127.0.0.1:9"]`)
	ok(t, "stock", "set", "--config", g.file, "1001", "1")
	w := g.call(t, "POST", orderPath, "body", "Cookie", "uid=1", "Idempotency-Key", "key-open")
	if w.status != 202 {
		t.Fatalf("%+v", w)
	}
	next := func(attempt int64, taking any) *admin.QueuedOrder {
		t.Helper()
		var all takenOrders
		soon(t, "it is handed out", func() bool {
			return post(t, g, token, "take", taking, &all) == 200 && len(all.Orders) == 1
		})
		if o := &all.Orders[0]; o.Attempt != attempt {
			t.Fatalf("%+v, want attempt %d", o, attempt)
		}
		return &all.Orders[0]
	}
	settle := func(o *admin.QueuedOrder, outcome string) {
		t.Helper()
		var said settledOrders
		post(t, g, token, "settle", settleOne(o, outcome, nil), &said)
		if len(said.Orders) != 1 || said.Orders[0].Done != "changed" {
			t.Fatalf("%s: %+v", outcome, said)
		}
	}
	next(1, briefly(1)) // its consumer says nothing any more, and may have made the order
	settle(next(2, takeOf(1)), "released")
	if got := ledgerOf(t, r, "1001"); got != (account{total: 1, held: 1}) {
		t.Errorf("after the release: %+v", got)
	}
	settle(next(3, takeOf(1)), "confirmed")
	if got := ledgerOf(t, r, "1001"); got != (account{total: 1, sold: 1}) {
		t.Errorf("at the end: %+v", got)
	}
}
