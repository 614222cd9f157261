package e2e

import (
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

// root is the repository, as seen from this package.
const root = ".."

func TestCheck_DeliveredFilesAreValid(t *testing.T) {
	t.Parallel()
	delivered, secret := map[string]string{}, []string{"SLUICE_SECRET_FILE=" + file(t, exampleSecret+"\n")}
	for pattern, least := range map[string]int{"config.toml": 1, "deploy/config.toml": 1, "examples/*/config.toml": 5,
		"examples/layouts/*.toml": 6} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) < least {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		for _, path := range found {
			if delivered[path], err = filepath.Abs(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read, err := filepath.Glob(filepath.Join(root, "examples", "*", "README.md")); err != nil || len(read) < 7 {
		t.Errorf("examples with a page to read: %q, %v", read, err)
	}
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		examples := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
		if len(examples) == 0 {
			t.Errorf("%s shows no configuration", name)
		}
		for i, m := range examples {
			delivered[fmt.Sprintf("%s, example %d", name, i+1)] = file(t, m[1])
		}
	}
	for name, path := range delivered {
		t.Run(name, func(t *testing.T) {
			args := []string{"check", "-v", path}
			wants(t, succeeded(t, runWith(t, "", secret, args...), args), "the file is valid", "order")
		})
	}
}

func TestCommands_ExitCodesDistinguishFailureFromMisuse(t *testing.T) {
	t.Parallel()
	nothing := filepath.Join(t.TempDir(), "nothing.toml")
	absent := strings.TrimPrefix(nowhere(t), "http://")
	memory := file(t, "upstream.targets = [\"http://127.0.0.1:9000\"]\n"+routes)
	silent := file(t, "upstream.targets = [\"http://127.0.0.1:9000\"]\nadmin.listen = \"\"\n"+routes)
	off := file(t, "upstream.targets = [\"http://127.0.0.1:9000\"]\nstock.source = \"off\"\n"+
		strings.Replace(routes, "check", "limit", 1))
	for _, c := range []struct {
		args      string
		code      int
		complaint string
	}{
		{"check " + nothing, 1, "no such file"},
		{"run --config " + nothing, 1, "no such file"},
		{"stock get 1001 --config " + memory, 1, "--admin"},
		{"stock get 1001 --admin http://" + absent, 1, "no gateway answers"},
		{"stock set {1001} 5 --admin http://" + absent, 1, "no request can name it"},
		{"stock get 1001 --config " + silent, 1, "cannot be asked"},
		{"stock get 1001 --config " + off, 1, "no stock is kept"},
		{"healthcheck --ops " + absent, 1, "refused"},
		{"explain nonsense --ip here --config " + memory, 2, "--ip"},
		{"", 2, ""},
		{"settle verify 7 -c x", 2, "sluice settle: settlement is a program of its own: use sluice-settle verify 7 -c x\n"},
		{"check --verbos", 2, "--verbos"},
		{"stock list --limit=-1 --admin http://" + absent, 2, "--limit"},
		{"stock list --limit=0 --config " + memory, 2, "--limit"},
		{"run --mode watch", 2, "watch"},
		{"demo --units=-1", 2, "--units"},
		{"demo --patience=0s", 2, "--patience"},
		{"demo --gate=pass", 2, "--gate"},
	} {
		s := run(t, "", strings.Fields(c.args)...)
		if s.code != c.code || !strings.Contains(s.complaint, c.complaint) {
			t.Errorf("sluice %s: exit code %d, want %d and %q:\n%s%s", c.args, s.code, c.code, c.complaint, s.out, s.complaint)
		}
	}
}

func TestStock_CommandsWorkOnRedisAndThroughTheGate(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	direct, remote := gate(t, shop.setting(), redisAt(redis)), gate(t, shop.setting())
	for name, c := range map[string]struct {
		gate  *running
		flags []string
	}{
		"Redis by its configuration": {direct, []string{"--config", direct.file}},
		"memory through the gate":    {remote, []string{"--admin", "http://" + remote.admin}},
	} {
		t.Run(name, func(t *testing.T) {
			stock := func(args ...string) said {
				return run(t, "", append(append([]string{"stock"}, c.flags...), args...)...)
			}
			prints := func(want string, args ...string) {
				t.Helper()
				if s := stock(args...); s.code != 0 || s.out != want {
					t.Errorf("stock %v: exit code %d, prints %q, want %q: %s", args, s.code, s.out, want, s.complaint)
				}
			}
			prints("1001\t3\n", "set", "1001", "3")
			prints("1001\t3\n", "get", "1001")
			prints("1001\t5\n", "add", "1001", "2")
			prints("1001\t1\n", "add", "1001", "-4")
			prints("1001\t1\n", "list")
			prints("1002\t0\n", "set", "1002", "0")

			c.gate.order("1001").must(t, 200, "")
			c.gate.order("1002").must(t, 409, "sold_out")
			prints("1002\t7\n", "set", "1002", "7")
			soon(t, "the SKU is on sale", func() bool { return c.gate.order("1002").is(200, "") })

			for _, args := range [][]string{{"get", "1003"}, {"add", "1003", "1"}} {
				if s := stock(args...); s.code != 1 || !strings.Contains(s.complaint, "no such SKU") {
					t.Errorf("stock %v of an unknown SKU: exit code %d: %s%s", args, s.code, s.out, s.complaint)
				}
			}
		})
	}
}

// healthy waits for a healthcheck that succeeds and says what is wanted: one gives up after 2 s.
func healthy(t *testing.T, want string, args ...string) {
	t.Helper()
	soon(t, "a healthcheck says "+want, func() bool {
		s := run(t, "", append([]string{"healthcheck"}, args...)...)
		return s.code == 0 && strings.Contains(s.out, want)
	})
}

func TestHealthcheck_DistinguishesAliveFromReady(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	shop := open(t, func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-leave
	})
	g := gate(t, shop.setting(), unhurried, `server.shutdown_timeout = "5m"`)
	healthy(t, "ok", "--ops", g.ops)
	healthy(t, "upstream: 1 of 1", "--ops", g.ops, "--ready")
	var last sync.WaitGroup // the gate drains until the last request has its answer
	last.Go(func() { g.ask("GET", "/page").must(t, 200, "") })
	<-inside
	g.terminate()
	soon(t, "readiness fails", func() bool { return !g.ready() })
	healthy(t, "ok", "--ops", g.ops)
	if s := run(t, "", "healthcheck", "--ops", g.ops, "--ready"); s.code != 1 || !strings.Contains(s.out, "not ready") {
		t.Errorf("healthcheck --ready of a gate that drains: exit code %d: %s%s", s.code, s.out, s.complaint)
	}
	close(leave)
	last.Wait()
	g.stopped()
	if s := run(t, "", "healthcheck", "--ops", g.ops); s.code != 1 ||
		!strings.Contains(s.complaint, "start the gateway, or name its ops.listen with --ops") {
		t.Errorf("healthcheck of a gate that has gone: exit code %d: %s%s", s.code, s.out, s.complaint)
	}
}

// explained is what explain prints of a request: with exit code 0 where the request would be admitted, with 4 where it
// would be rejected for the reason.
func explained(t *testing.T, reason string, args ...string) string {
	t.Helper()
	s := run(t, "", append([]string{"explain"}, args...)...)
	code := 0
	if reason != "" {
		code = 4
		wants(t, s.out, "rejected  "+reason+"\n")
	}
	if s.code != code || strings.Contains(s.out, "rejected") != (reason != "") {
		t.Errorf("sluice explain %s: exit code %d, want %d and reason %q:\n%s%s", strings.Join(args, " "), s.code, code,
			reason, s.out, s.complaint)
	}
	return s.out
}

func TestExplain_PrintsRouteKeysAndChecks(t *testing.T) {
	t.Parallel()
	const order = "POST /api/seckill/1001/order"
	path := file(t, "upstream.targets = [\"http://127.0.0.1:9000\"]\nstock.source = \"redis\"\n"+
		"server.trusted_proxies = [\"10.0.0.0/8\"]\n"+routes)
	out := explained(t, "", order, "-H", "Cookie: uid=7", "-H", "X-Forwarded-For: 198.51.100.4", "--ip", "10.1.2.3",
		"--config", path)
	wants(t, out, "client    198.51.100.4", "route     order", "gate      check (", "sku       1001", "user      7",
		"seckill:stock:1001", "check 1 ", "sold-out cache (stock)", ": sold_out, ",
		"concurrency (limits.concurrency): max_in_flight ")
	wants(t, explained(t, "", "/page", "--config", path), "route     everything-else", "gate      pass")
	wants(t, explained(t, "", "GET //x", "--config", path), "route     everything-else")
	path = file(t,
		"name = \"shop\"\nupstream.targets = [\"http://127.0.0.1:9000\"]\nstock.source = \"redis\"\n"+reserveRoutes)
	wants(t, explained(t, "", order, "-H", "Cookie: uid=7", "--config", path), "gate      reserve",
		"stock     sluice:shop:{1001}:s in Redis (ledger)", "ledger's memory (stock.reserve)",
		"reservation (stock.reserve, sale.max_per_user)")
}

func TestExplain_PrintsReasonAndDetailOfARejection(t *testing.T) {
	t.Parallel()
	path := file(t, "upstream.targets = [\"http://127.0.0.1:9000\"]\n"+
		"[[route]]\nname = \"order\"\nmatch = \"POST /order/{sku}\"\ngate = \"check\"\nsku = \"$path_sku\"\n"+
		"user = \"$cookie_uid\"\n[[route]]\nname = \"pages\"\nmatch = \"/page/\"\ngate = \"pass\"\n")
	explain := func(reason string, args ...string) string {
		return explained(t, reason, append(args, "--config", path)...)
	}
	wants(t, explain("unidentified", "POST /order/1001"), "detail    user missing: $cookie_uid", "route     order")
	wants(t, explain("ambiguous", "POST //order/1001", "-H", "Cookie: uid=7"), "detail    ")
	wants(t, explain("malformed", "GET /page/", "-H", "Content-Length: +1"), "detail    ")
	if out := explain("no_route", "/elsewhere"); strings.Contains(out, "route     ") {
		t.Errorf("a request without a route has one:\n%s", out)
	}
	wants(t, explain("no_route", "GET", "/order/1001"), "no match  POST /order/{sku} (route order)\n",
		"no match  /page/ (route pages)\n")
}

func TestVersion_IsTheOneThatWasBuilt(t *testing.T) {
	t.Parallel()
	if out := ok(t, "version"); out != "sluice "+builtVersion+"\n" {
		t.Errorf("prints %q", out)
	}
}
