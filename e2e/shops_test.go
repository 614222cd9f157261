package e2e

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// inRedisAs are the settings of a gate of the shop of a name, on a Redis.
func inRedisAs(name string, r *redistest.Server) string {
	return strings.Replace(redisAt(r), `"shop"`, fmt.Sprintf("%q", name), 1)
}

// sellsAs runs a gate of the shop of a name that reserves. Its ledger of 1001 has so many units.
func sellsAs(t *testing.T, name string, r *redistest.Server, units int, settings ...string) *running {
	t.Helper()
	g := gate(t, append([]string{inRedisAs(name, r), boundless, keepsChanges}, append(settings, reserveRoutes)...)...)
	ok(t, "stock", "set", "--config", g.file, "1001", fmt.Sprint(units))
	return g
}

// accountOf is the ledger of 1001 of the shop of a name.
func accountOf(t *testing.T, name string, r *redistest.Server) string {
	t.Helper()
	return fmt.Sprint(r.Client.HMGet(t.Context(), "sluice:"+name+":{1001}:s", "total", "held", "sold").Val())
}

// Two shops on one Redis sell 10 units each of SKUs with the same name, to the same users under the same keys. Each
// sells its own, lists its own, and has its own orders settled.
func TestShops_OnOneRedisShareNoLedger(t *testing.T) {
	t.Parallel()
	const units = 10
	r := redistest.Start(t, lasting...)
	var shops [2]*bookshop
	var gates [2]*running
	names := []string{"shop-a", "shop-b"}
	for i, name := range names {
		shops[i] = book(t, nil)
		gates[i] = sellsAs(t, name, r, units, shops[i].setting())
	}
	ok(t, "stock", "set", "--config", gates[0].file, "of-a-alone", "3")
	database := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	settler(t, database, inRedisAs("shop-a", r))
	var crowd sync.WaitGroup
	for _, g := range gates {
		for u := range 2 * units {
			crowd.Go(func() {
				b := &buyer{user: fmt.Sprint("u", u), key: fmt.Sprint("k-", u)}
				defer b.leave()
				b.buy(g.front)
			})
		}
	}
	crowd.Wait()
	for i, name := range names {
		soon(t, name+" has sold its own units", func() bool { return accountOf(t, name, r) == "[10 0 10]" })
		if n := shops[i].booked(); n != units {
			t.Errorf("%s has booked %d orders, want %d", name, n, units)
		}
		shops[i].audit(t)
	}
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(database, "sqlite:")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	soon(t, "the orders of shop-a are settled", func() (all bool) {
		return db.QueryRow("SELECT COUNT(*) = 10 FROM sluice_order").Scan(&all) == nil && all
	})
	rows, err := db.Query("SELECT serial FROM sluice_order")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var serial string
		if err := rows.Scan(&serial); err != nil {
			t.Fatal(err)
		}
		shops[0].mu.Lock()
		if _, known := shops[0].orders[serial]; !known {
			t.Errorf("the settlement of shop-a has the order %s of the other shop", serial)
		}
		shops[0].mu.Unlock()
	}
	wants(t, ok(t, "stock", "list", "--config", gates[0].file), "1001", "of-a-alone")
	if listed := ok(t, "stock", "list", "--config", gates[1].file); strings.Contains(listed, "of-a-alone") {
		t.Errorf("shop-b lists a SKU of shop-a:\n%s", listed)
	}
	for _, key := range r.Client.Keys(t.Context(), "sluice:*").Val() {
		if !strings.HasPrefix(key, "sluice:shop-a:") && !strings.HasPrefix(key, "sluice:shop-b:") {
			t.Errorf("the key %q is of neither shop", key)
		}
	}
}

// While no gate of a shop runs, the resolver of another one does not decide its orders: that shop's status_url knows
// nothing of them, and they would be released.
func TestShops_ResolverOfOneLeavesTheOrdersOfTheOtherAlone(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, lasting...)
	arrived := make(chan struct{})
	a := book(t, func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			close(arrived)
			<-r.Context().Done()
		}
		return true
	})
	b := book(t, nil)
	b.fail = func(*http.Request) bool { return true }
	brief := `stock.reserve.reservation_ttl = "1s"`
	first, second := sellsAs(t, "shop-a", r, 10, a.setting(), brief), sellsAs(t, "shop-b", r, 10, b.setting(), brief)
	buys := func(g *running) chan int {
		done := make(chan int, 1)
		go func() {
			one := &buyer{user: "7", key: "k-1"}
			defer one.leave()
			status, _ := one.buy(g.front)
			done <- status
		}()
		return done
	}
	unanswered := buys(first)
	<-arrived
	first.die()
	<-unanswered
	if status := <-buys(second); status != 500 {
		t.Fatalf("shop-b answered %d, want an outcome that is not known", status)
	}
	// The order of shop-b is due later than that of shop-a: a resolver that decides it has passed the other.
	soon(t, "shop-b has released its own order", func() bool { return accountOf(t, "shop-b", r) == "[10 0 0]" })
	if got := accountOf(t, "shop-a", r); got != "[10 1 0]" {
		t.Errorf("the ledger of shop-a is %s while its gate is down, want its order held", got)
	}
	first.again(t)
	soon(t, "shop-a has confirmed its order", func() bool { return accountOf(t, "shop-a", r) == "[10 0 1]" })
	a.audit(t)
}

// The gates of a name share a secret. A gate, a settler or a command with another one, or with none, is rejected, with
// the way out, and so is a gate that only reads the shop's own keys.
func TestShops_NameOfAnotherSecretIsRejected(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t, lasting...), book(t, nil)
	secret := func(text string) string {
		return fmt.Sprintf("stock.reserve.secret_file = %q", keep(t, "secret", text))
	}
	first := sellsAs(t, "shop-a", r, 10, shop.setting(), secret("the secret of the first shop"))
	database := "settle.database = \"sqlite:settle.db\"\n"
	other := file(t, listeners+inRedisAs("shop-a", r)+"\n"+shop.setting()+"\n"+secret("the secret of another shop")+"\n"+
		keepsChanges+"\n"+database+reserveRoutes)
	const way = `"shop-a" belongs to another shop: sluice:shop-a:claim in Redis was written with another ` +
		`stock.reserve.secret_file; write another name, or use that file`
	const none = `"shop-a" belongs to another shop: sluice:shop-a:claim in Redis was written with a ` +
		`stock.reserve.secret_file, and this file names none; write another name, or use that file`
	secretless := listeners + inRedisAs("shop-a", r) + "\n" + shop.setting() + "\n"
	for _, c := range []struct{ line, file, way string }{
		{"run --config", other, way}, {"check --online", other, way}, {"stock list --config", other, way},
		{"run --config", file(t, secretless+reserveRoutes), none}, {"check --online", file(t, secretless+reserveRoutes), none},
		{"run --config", file(t, secretless+routes), none}, {"check --online", file(t, secretless+routes), none},
	} {
		got := run(t, "", append(strings.Fields(c.line), c.file)...)
		if got.code == 0 {
			t.Errorf("sluice %s: exit code 0", c.line)
		}
		wants(t, got.out+got.complaint, c.way, "redis-cli DEL sluice:shop-a:claim")
	}
	settleOK(t, "migrate", "--config", other)
	settles := settle(t, "verify", "1001", "--config", other)
	if settles.code == 0 || !strings.Contains(settles.out+settles.complaint, way) {
		t.Errorf("settle verify: exit code %d: %s", settles.code, settles.complaint)
	}
	if got := accountOf(t, "shop-a", r); got != "[10 0 0]" {
		t.Errorf("the ledger of the first shop is %s", got)
	}
	wants(t, ok(t, "check", "--online", first.file), `"shop-a" is claimed by no other secret`)
	first.again(t) // another instance of the shop
	r.Client.Del(t.Context(), "sluice:shop-a:claim")
	gate(t, inRedisAs("shop-a", r), boundless, shop.setting(), secret("the new secret of the shop"), reserveRoutes)
}

// A file that keeps orders in Redis must name its shop; the message has the line that is missing.
func TestShops_MissingNameIsRejectedWithTheLineToAdd(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	nameless := strings.Replace(redisAt(r), "name = \"shop\"\n", "", 1) +
		"\nupstream.targets = [\"http://127.0.0.1:1\"]\n"
	path := file(t, nameless+reserveRoutes)
	for _, args := range [][]string{{"check", path}, {"run", "--config", path}, {"stock", "list", "--config", path}} {
		got := run(t, "", args...)
		line := regexp.MustCompile(`name = "shop-[0-9a-f]{4}"`).FindString(got.complaint)
		if got.code == 0 || line == "" || !strings.Contains(got.complaint, "name: is missing") {
			t.Fatalf("sluice %s: exit code %d: %s", args[0], got.code, got.complaint)
		}
		mended := file(t, line+"\n"+nameless+reserveRoutes)
		ok(t, "check", mended)
	}
	ok(t, "check", file(t, nameless+routes)) // which reads the shop's own keys alone
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "name = \"shop") {
		t.Errorf("%v: the file was changed", err)
	}
}
