package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
)

const keepsChanges = "stock.reserve.stream_keep_unread = true"

// settler runs sluice-settle run until the test ends. Its ops are the listener for health and metrics.
func settler(t *testing.T, database string, settings ...string) *running {
	t.Helper()
	return settles(t, "run", "settle.listen", database, settings...)
}

// settles runs a command of sluice-settle until the test ends, with health and metrics at a key.
func settles(t *testing.T, command, listen, database string, settings ...string) *running {
	t.Helper()
	path := file(
		t,
		fmt.Sprintf(
			"upstream.targets = [\"http://127.0.0.1:1\"]\nsettle.database = %q\n%s = \"127.0.0.1:0\"\n%s\n%s\n%s",
			database,
			listen,
			keepsChanges,
			strings.Join(settings, "\n"),
			reserveRoutes,
		),
	)
	g := &running{t: t, file: path, ended: make(chan struct{}), client: &http.Client{Timeout: long}}
	g.process = exec.Command(settleBinary, command, "--config", path)
	g.process.Env, g.process.Stderr = surroundings(), &g.log
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = g.process.Wait() // its exit code is read by stop
		close(g.ended)
	}()
	t.Cleanup(g.cleanUp)
	soon(t, "settle "+command+" serves its metrics", func() bool {
		for _, line := range g.log.lines() {
			if line.Msg+line.Key == "listening for operators"+listen {
				g.ops = line.Address
			}
		}
		return g.gone() || g.ops != ""
	})
	return g
}

// trap is a database that takes connections, says nothing, and counts them.
func trap(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String(), connections
}

// The gate never opens the database: what hangs there, or dies, touches no order. The settler catches up.
func TestSettlement_DeadDatabaseTouchesNoOrder(t *testing.T) {
	t.Parallel()
	postgres := dbtest.Postgres(t)
	redis, shop := redistest.Start(t), open(t, nil)
	address, connections := trap(t)
	g := reserves(t, redis, 0, shop.setting(), keepsChanges,
		fmt.Sprintf("settle.database = \"postgres://sluice@%s/shop\"", address))
	ok(t, "stock", "set", "--admin", g.admin, "1001", "50") // with --config the command would ask the database
	buy := func(when string, first, n int) {
		t.Helper()
		for i := first; i < first+n; i++ {
			if a := g.ask("POST", "/api/seckill/1001/order", fmt.Sprintf("Cookie: uid=%d", i)); a.status != http.StatusOK {
				t.Errorf("%s: order %d: %d %s", when, i, a.status, a.body)
			}
		}
		if !g.ready() {
			t.Errorf("%s: the gate is not ready", when)
		}
	}
	s := settler(t, postgres.URL, redisAt(redis))
	buy("without tables", 0, 5)
	settleOK(t, "migrate", "--config", s.file)
	settled := func(orders int) func() bool {
		return func() bool {
			return strings.Contains(
				settle(t, "verify", "1001", "--config", s.file).out,
				fmt.Sprintf("equal; %d records", orders),
			)
		}
	}
	soon(t, "orders are settled", settled(5))
	postgres.Kill()
	buy("without a database", 5, 5)
	soon(t, "the settler tells that it is behind", func() bool {
		status, text := s.peek("/readyz")
		return status == http.StatusOK && strings.HasPrefix(text, "degraded; database: ") &&
			strings.Contains(s.scrape(), "\nsluice_settler_database_up 0\n") &&
			!strings.Contains(s.scrape(), "sluice_settler_behind_seconds{target=\"orders\"} 0\n")
	})
	soon(t, "the gate's dashboard knows that the database is away", func() bool {
		text := g.control("GET", "/api/v1/settlement", "").body
		return strings.Contains(text, `"configured":true`) && strings.Contains(text, `"home":"main"`) &&
			strings.Contains(text, `"up":false`)
	})
	if status, text := s.peek("/livez"); status != http.StatusOK {
		t.Errorf("a dead database would restart the settler: %d %s", status, text)
	}
	postgres.Restart()
	soon(t, "the settler has caught up", settled(10))
	buy("with a database again", 10, 1)
	if n := connections.Load(); n != 0 {
		t.Errorf("the gate has opened the database %d times", n)
	}
	soon(t, "all orders are confirmed", func() bool { return ledgerOf(t, redis, "1001") == account{50, 0, 11} })
}
