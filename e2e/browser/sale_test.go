package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

const routes = `
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// schedule is a [[sale]] of one SKU.
func schedule(sku string, begins, ends time.Time, more string) string {
	const form = "2006-01-02T15:04:05.000Z07:00"
	return fmt.Sprintf("[[sale]]\nname = %q\nskus = [%q]\nstarts = %s\nends = %s\n%s\n", sku, sku, begins.Format(form),
		ends.Format(form), more)
}

// redisAt names a Redis to a gate that has patience with it: beside a browser any answer may be late.
func redisAt(s *redistest.Server) string {
	return fmt.Sprintf("name = \"shop\"\nstock.source = \"redis\"\nstock.redis.addresses = [%q]\n"+
		"stock.redis.timeout = \"2s\"", s.Addr)
}

// startOf is the start of the sale in a configuration.
func startOf(t *testing.T, config string) time.Time {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nstarts = ")
	line, _, _ := strings.Cut(after, "\n")
	at, err := time.Parse(time.RFC3339, line)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// One unit, two instances, and people who wait for it: countdown, one order however often the button is pressed, sold
// out for everybody else, and the unit that the shop gets back for one of them. SLUICE_SALE=long plays it in a minute
// and with more watchers, to measure when the button opens.
func TestSale_InABrowser(t *testing.T) {
	t.Parallel()
	lead, length := 8*time.Second, time.Hour
	if os.Getenv("SLUICE_SALE") == "long" {
		lead, length = 30*time.Second, 60*time.Second
	}
	redis, shop := redistest.Start(t), trade(t)
	var config string
	play(t, "sale.mjs", func() any {
		far := time.Now().Add(30 * time.Minute).Truncate(time.Millisecond) // the scenario moves it
		settings := []string{redisAt(redis), `stock.detail = "exact"`, shop.settings(),
			schedule("1001", far, far.Add(length), "stock = { 1001 = 1 }"), routes}
		one, other := open(t, settings...), open(t, settings...)
		config = one.file
		return map[string]any{
			"gates":   []string{"http://" + one.front, "http://" + other.front},
			"configs": []string{one.file, other.file}, "admins": []string{one.admin, other.admin},
			"opens": far.UnixMilli(), "lead": lead.Milliseconds(), "length": length.Milliseconds(), "long": length < time.Hour,
		}
	})
	begins := startOf(t, config)
	orders := shop.booked()
	var users []string
	for _, o := range orders {
		users = append(users, o.user)
		if o.times != 1 || o.at.Before(begins) {
			t.Errorf("the order of %s came %d times, %v after the start", o.user, o.times, o.at.Sub(begins))
		}
	}
	if got := strings.Join(users, " "); got != "ann ben" {
		t.Errorf("the shop has orders of %q, want one of Ann and, when that was cancelled, one of Ben", got)
	}
	ledger, err := redis.Client.HMGet(t.Context(), "sluice:shop:{1001}:s", "total", "held", "sold").Result()
	if got := fmt.Sprint(ledger); err != nil || got != "[1 0 1]" {
		t.Errorf("total, held, sold: %s %v", got, err)
	}
}
