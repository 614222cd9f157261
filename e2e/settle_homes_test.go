package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Two databases have SKUs of their own. One of them dies: its SKUs wait, or are moved; those of the other one go on.
func TestHomes_DeadDatabaseDelaysItsSKUsAlone(t *testing.T) {
	testkit.Nightly(t, "it runs long: the settler waits before it tries a dead database again")
	t.Parallel()
	east := dbtest.Postgres(t)
	redis, shop := redistest.Start(t), open(t, nil)
	g := reserves(t, redis, 0, shop.setting(), keepsChanges)
	buy := func(sku string, first, n int) {
		t.Helper()
		for i := first; i < first+n; i++ {
			b := &buyer{user: fmt.Sprint(i), sku: sku}
			if status, reason := b.buy(g.front); status != 200 {
				t.Fatalf("%s: %d %s", sku, status, reason)
			}
			b.leave()
		}
	}
	for _, sku := range []string{"1001", "2001", "2002"} {
		ok(t, "stock", "set", "--admin", g.admin, sku, "50")
	}
	s := settler(t, "sqlite:"+filepath.Join(t.TempDir(), "main.db"), redisAt(redis), fmt.Sprintf(
		"[[settle.home]]\nname = \"east\"\ndatabase = %q\nskus = [\"2*\"]", east.URL))
	wants(t, settleOK(t, "migrate", "--config", s.file), "applied 00001_settlement.sql in east")
	settled := func(sku string, orders int) func() bool {
		return func() bool {
			return strings.Contains(settle(t, "verify", sku, "--config", s.file).out,
				fmt.Sprintf("equal; %d records", orders))
		}
	}
	buy("1001", 0, 3)
	buy("2001", 0, 3)
	buy("2002", 0, 3)
	soon(t, "the main home has its SKU", settled("1001", 3))
	soon(t, "the other home has its SKU", settled("2001", 3))
	soon(t, "the other home has both", settled("2002", 3))
	east.Kill()
	buy("1001", 3, 3)
	buy("2001", 3, 3)
	buy("2002", 3, 3)
	soon(t, "the main home goes on", settled("1001", 6))
	soon(t, "the settler tells which home is away", func() bool {
		_, text := s.peek("/readyz")
		return strings.HasPrefix(text, "degraded; database east: ") &&
			strings.Contains(s.scrape(), "\nsluice_settler_database_up{home=\"main\"} 1\n")
	})
	if out := settle(t, "status", "--config", s.file); !strings.Contains(out.out, "1001") ||
		!strings.Contains(out.complaint, "home east: ") {
		t.Errorf("status: %+v", out)
	}
	moved := settle(t, "move", "2001", "--to", "main", "--config", s.file)
	if moved.code != 0 || !strings.Contains(moved.out, "2001 is settled in main now; it was in east") ||
		!strings.Contains(moved.complaint, "does not know yet") {
		t.Errorf("move: %+v", moved)
	}
	soon(t, "the SKU is settled in its new home", settled("2001", 6))
	east.Restart()
	soon(t, "the database that is back has caught up", settled("2002", 6))
	buy("2001", 6, 1)
	soon(t, "the new home goes on", settled("2001", 7))
	soon(t, "the old home knows that it lost the SKU", func() bool {
		return strings.Contains(settle(t, "status", "--config", s.file).out, "moved")
	})
	if out := settleOK(t, "report", "--config", s.file); !strings.Contains(out, "the books balance") {
		t.Errorf("report: %s", out)
	}
}

// A database is away for longer than settle.reroute_after: its SKUs are settled in another home.
func TestHomes_SKUsOfADatabaseThatIsAwayAreRerouted(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	g := reserves(t, redis, 0, shop.setting(), keepsChanges)
	ok(t, "stock", "set", "--admin", g.admin, "2001", "5")
	b := &buyer{user: "ann", sku: "2001"}
	defer b.leave()
	if status, reason := b.buy(g.front); status != 200 {
		t.Fatalf("%d %s", status, reason)
	}
	s := settler(t, "sqlite:"+filepath.Join(t.TempDir(), "main.db"), redisAt(redis),
		"settle.reroute_after = \"1s\"\nsettle.reroute_to = \"main\"",
		"[[settle.home]]\nname = \"east\"\ndatabase = \"postgres://u@127.0.0.1:1/shop\"\nskus = [\"2*\"]")
	soon(t, "the SKU is settled in the other home", func() bool {
		return strings.Contains(settle(t, "verify", "2001", "--config", s.file).out, "equal; 1 records")
	})
	if home := fields(redis.Client, "2001")["home"]; home != "1 main" {
		t.Errorf("the mark of the home is %q: want that of the first move, to main", home)
	}
}
