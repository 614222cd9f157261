package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// Redis is there, and takes no writes. Nothing is sold, nothing is lost, the log says what Redis said, and when Redis
// takes writes again the sale goes on by itself.
func TestReserve_RedisWithoutWritesSellsNothingAndReportsWhy(t *testing.T) {
	t.Parallel()
	for word, of := range map[string]struct{ spoil, cure, do string }{
		"OOM":        {"config set maxmemory 1", "config set maxmemory 0", "raise maxmemory"},
		"NOREPLICAS": {"config set min-replicas-to-write 1", "config set min-replicas-to-write 0", "start them"},
		"READONLY":   {"replicaof 127.0.0.1 1", "replicaof no one", "its master's address"},
		"MISCONF":    {"bgsave", "bgsave", "make room"},
		"NOPERM":     {"acl setuser default -evalsha -eval", "acl setuser default +@all", "check --online"},
	} {
		t.Run(word, func(t *testing.T) {
			r, shop := redistest.Start(t), book(t, nil)
			g := reserves(t, r, 100, shop.setting(), `stock.reserve.reservation_ttl = "1s"`)
			user := 0
			order := func() answer {
				user++
				return g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+fmt.Sprint(user))
			}
			soon(t, "orders pass", func() bool { return order().status == 200 })
			do := func(command string) {
				var words []any
				for _, w := range strings.Fields(command) {
					words = append(words, w)
				}
				if err := r.Client.Do(t.Context(), words...).Err(); err != nil {
					t.Fatal(command, err)
				}
			}
			full := filepath.Join(r.Client.ConfigGet(t.Context(), "dir").Val()["dir"], "dump.rdb", "full")
			if word == "MISCONF" { // where its file should be there is a directory
				if err := r.Client.ConfigSet(t.Context(), "save", "3600 1").Err(); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(full, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			do(of.spoil)
			soon(t, "orders are rejected", func() bool { return order().status == 503 })
			booked := shop.booked()
			for range 20 {
				if a := order(); a.status != 503 || a.reason != "stock_error" {
					t.Errorf("an order was answered %d %s", a.status, a.reason)
				}
			}
			if _, text := g.peek("/readyz?verbose"); !strings.Contains(text, "WARN ledger") || !strings.Contains(text, of.do) {
				t.Errorf("/readyz does not tell of it:\n%s", text)
			}
			if n := shop.booked(); n != booked {
				t.Errorf("%d orders reached the shop", n-booked)
			}
			soon(t, "the log says so", func() bool { return strings.Contains(g.log.String(), "the ledger takes no orders") })
			said := g.log.String()
			if n := strings.Count(said, "the ledger takes no orders"); n != 1 || !strings.Contains(said, word) ||
				!strings.Contains(said, of.do) {
				t.Errorf("the log says it %d times, and not %s or %q:\n%s", n, word, of.do, said)
			}
			_ = os.RemoveAll(filepath.Dir(full))
			do(of.cure)
			took := soon(t, "orders pass again", func() bool { return order().status == 200 })
			soon(t, "all is decided", func() bool { a := ledgerOf(t, r, "1001"); return a.held == 0 && a.sold == shop.booked() })
			t.Logf("orders pass %v after", took)
			soon(t, "the log says that it is over",
				func() bool { return strings.Contains(g.log.String(), "the ledger takes orders again") })
			shop.audit(t)
		})
	}
}
