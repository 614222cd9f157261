package e2e

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// cancelled is a sale in which the shop cancels an order, by its table, and whose unit is sold again.
type cancelled struct {
	*testing.T
	redis   *redistest.Server
	gate    *running
	settler *running
	db      *sql.DB
}

func (c *cancelled) buys(from, to int) {
	c.Helper()
	for user := from; user < to; user++ {
		soon(c.T, fmt.Sprintf("user %d has a unit", user), func() bool {
			status, reason := (&buyer{user: fmt.Sprint(user), key: fmt.Sprint("key-", user), sku: "1001"}).buy(c.gate.front)
			if status == http.StatusConflict && reason != "undecided" && reason != "sold_out" {
				c.Fatalf("user %d hears %d %s", user, status, reason)
			}
			return status == http.StatusOK
		})
	}
}

// equal waits until the SKU is open, so many units are sold, and ledger and database are the same.
func (c *cancelled) equal(sold int) {
	c.Helper()
	soon(c.T, fmt.Sprintf("%d units are sold in both books, and the SKU is open", sold), func() bool {
		said := settle(c.T, "verify", "1001", "--config", c.settler.file).out
		state := fields(c.redis.Client, "1001")["state"]
		return state == "on" && strings.Contains(said, "equal;") && strings.Contains(said, fmt.Sprintf(" %d units sold", sold))
	})
}

// givesBack has the shop cancel the order of a user, and returns its serial.
func (c *cancelled) givesBack(user int) (serial string) {
	c.Helper()
	for key, record := range c.redis.Client.HGetAll(c.Context(), "sluice:shop:{1001}:r").Val() {
		if strings.HasSuffix(record, fmt.Sprint("|", user)) {
			serial = key
		}
	}
	if serial == "" {
		c.Fatalf("the ledger has no order of user %d", user)
	}
	insert := "INSERT INTO sluice_giveback (sku, serial) VALUES ('1001', '" + serial + "')"
	if _, err := c.db.ExecContext(c.Context(), insert); err != nil {
		c.Fatal(err)
	}
	soon(c.T, "the order is refunded", func() bool {
		return strings.HasPrefix(c.redis.Client.HGet(c.Context(), "sluice:shop:{1001}:r", serial).Val(), "R|")
	})
	return serial
}

// staysGivenBack wants a healed sale: the order is refunded, no unit is stranded or sold twice, and nothing waits.
func (c *cancelled) staysGivenBack(serial string, units int) {
	c.Helper()
	c.equal(units)
	if record := c.redis.Client.HGet(c.Context(), "sluice:shop:{1001}:r", serial).Val(); record != "" &&
		record[0] != 'R' {
		c.Errorf("the record of the cancelled order is %q: want a refunded one, or none", record)
	}
	if a := ledgerOf(c.T, c.redis, "1001"); a.held != 0 || a.sold != units {
		c.Errorf("%d units are held and %d sold: want 0 and %d", a.held, a.sold, units)
	}
	if status, reason := (&buyer{user: "late", sku: "1001"}).buy(c.gate.front); status == http.StatusOK {
		c.Errorf("a unit is sold twice: %d %s", status, reason)
	}
	soon(c.T, "nothing waits for an operator, and the settler is not behind", func() bool {
		status := settle(c.T, "status", "--config", c.settler.file).out
		return !strings.Contains(status, "conflict ") && c.settler.metric("sluice_settler_behind_seconds") == 0
	})
	for _, said := range []string{c.gate.log.String(), c.settler.log.String()} {
		if strings.Contains(said, "cancel") {
			c.Errorf("the books are right, and the log tells to cancel orders: %s", said)
		}
	}
}

func opens(t *testing.T, database string) *sql.DB {
	t.Helper()
	driver, source := "pgx", database
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var databases = map[string]func(t *testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "settle.db") },
	"postgres": func(t *testing.T) string { return dbtest.Postgres(t).URL },
}

// settles starts the settler of the sale. PostgreSQL gets its tables by a command of their own.
func (c *cancelled) settles(database, redis string) {
	c.Helper()
	if strings.HasPrefix(database, "postgres") {
		settleOK(c.T, "migrate", "--config", file(c.T, fmt.Sprintf("upstream.targets = [\"http://127.0.0.1:1\"]\n"+
			"settle.database = %q\n%s\n%s\n%s", database, keepsChanges, redis, reserveRoutes)))
	}
	c.settler = settler(c.T, database, redis, `settle.verify = "1s"`)
	c.db = opens(c.T, database)
}

// An order is sold and given back by the table sluice_giveback, and its unit is sold again. Then Redis loses it all.
func TestFinalStates_GivebackStaysWhateverRedisLoses(t *testing.T) {
	t.Parallel()
	for kind, open := range databases {
		t.Run(kind+", the tail of the AOF", func(t *testing.T) { t.Parallel(); losesGiveback(t, open(t), false) })
		t.Run(kind+", everything", func(t *testing.T) { t.Parallel(); losesGiveback(t, open(t), true) })
	}
}

func losesGiveback(t *testing.T, database string, everything bool) {
	const units = 5
	redis, shop := redistest.Start(t, lasting...), book(t, nil)
	c := &cancelled{T: t, redis: redis}
	c.gate = reserves(t, redis, units, shop.setting(), keepsChanges, `stock.redis.timeout = "5s"`, `stock.sold_out_ttl = "1ms"`)
	c.settles(database, redisAt(redis))
	c.buys(0, 3)
	c.equal(3)
	end := redis.Written()
	c.buys(3, units)
	c.equal(units)
	serial := c.givesBack(3)
	c.buys(units, units+1) // the same unit
	c.equal(units)
	if everything {
		redis.Client.FlushAll(t.Context())
		soon(t, "the gate notices what is gone", func() bool {
			return redis.Client.ZScore(t.Context(), "sluice:shop:skus", "1001").Err() == nil
		})
		said := ok(t, "stock", "recover", "1001", "--total", fmt.Sprint(units), "--from", "settle", "--apply",
			"--config", c.settler.file)
		if strings.Contains(said, "cancel") {
			t.Errorf("recover tells to cancel orders: %s", said)
		}
	} else {
		redis.Kill()
		redis.Cut(end)
		redis.Restart()
	}
	c.staysGivenBack(serial, units)
}

// The same when a replica takes over that has not got the end of it.
func TestFinalStates_GivebackStaysThroughAFailOver(t *testing.T) {
	testkit.Nightly(t, "three sentinels vote for seconds")
	for kind, open := range databases {
		t.Run(kind, func(t *testing.T) { failsOverAfterGiveback(t, open(t)) })
	}
}

func failsOverAfterGiveback(t *testing.T, database string) {
	const units = 5
	w, shop := redistest.Sentinel(t), book(t, nil)
	stockAll(t, redisconn.Options{Topology: redisconn.Sentinel, Addresses: w.Addrs(), MasterName: w.Name}, 1, units)
	source := fmt.Sprintf("name = \"shop\"\nstock.source = \"redis\"\nstock.redis.addresses = %s\n"+
		"stock.redis.master_name = %q", quoted(w.Addrs()...), w.Name)
	old := w.Master()
	c := &cancelled{T: t, redis: old}
	c.gate = gate(t, source, boundless, shop.setting(), keepsChanges, `stock.sold_out_ttl = "1ms"`, reserveRoutes)
	c.settles(database, source)
	c.buys(0, 3)
	c.equal(3)
	release := w.HoldReplicas(old)
	c.buys(3, units)
	c.equal(units)
	serial := c.givesBack(3)
	c.buys(units, units+1)
	c.equal(units)
	old.Kill()
	release()
	c.redis = w.Successor(old)
	c.staysGivenBack(serial, units)
}
