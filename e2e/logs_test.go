package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/redistest"
)

// logged runs a gate whose standard output is kept.
func logged(t *testing.T, settings ...string) (*running, *journal) {
	t.Helper()
	text := strings.Join(settings, "\n") + "\n"
	if !strings.Contains(text, "[[route]]") {
		text += routes
	}
	path, out := file(t, "server.shutdown_delay = \"0s\"\n"+listeners+text), new(journal)
	command := exec.Command(binary, "run", "--config", path)
	command.Stdout = out
	return start(t, path, command), out
}

// unlogged is for tests that weigh the memory of something else: what the access log remembers grows to its bound
// first.
const unlogged = "access_log.output = \"off\"\naccess_log.buffer_size = \"0B\""

// entry is one line of the access log, as far as tests look at it.
type entry struct {
	RequestID string `json:"request_id"`
	Reason    string
	Observed  string
	Limit     string
	Detail    string
	Serial    string
	SKU       string
	User      string
	Client    string
	Order     string
	Outcome   string
	Target    string
	Summary   bool
	Rejected  map[string]int
	Admitted  int
	Status    int
	Config    string
}

func (j *journal) entries() (all []entry) {
	for text := range strings.Lines(j.String()) {
		var e entry
		if json.Unmarshal([]byte(text), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// about waits for the line of one request.
func (j *journal) about(t *testing.T, id string) (found entry) {
	t.Helper()
	soon(t, "the access log tells of "+id, func() bool {
		for _, e := range j.entries() {
			if e.RequestID == id {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// keep writes a secret into a file of its own.
func keep(t *testing.T, name, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const secretRoutes = `
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "checked"
match = "POST /api/checked/{sku}"
gate = "check"
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// What is secret, and the name of the buyer, is in no log at any level, in no metric, and in no answer to why.
func TestLogs_HoldNoSecret(t *testing.T) {
	t.Parallel()
	const redisPassword, token, secret = "PLANTED-redis-password", "PLANTED-admin-token",
		"PLANTED-signing-secret-of-32-bytes"
	r, shop := redistest.Start(t, "--requirepass", redisPassword), open(t, nil)
	r.Client.Options().Password = redisPassword
	g, out := logged(t, shop.setting(), redisAt(r), `log.level = "debug"`,
		"access_log.rejected_per_second = 1000000",
		fmt.Sprintf("stock.redis.password_file = %q", keep(t, "redis", redisPassword)),
		fmt.Sprintf("admin.token_file = %q", keep(t, "token", token)),
		fmt.Sprintf("stock.reserve.secret_file = %q", keep(t, "secret", secret)),
		secretRoutes)
	if s := run(t, "", "stock", "set", "--config", g.file, "--kind", "ledger", "1001", "1"); s.code != 0 {
		t.Fatalf("set the stock: %s%s", s.out, s.complaint)
	}
	private := []string{"Cookie: uid=PLANTED-user; sid=PLANTED-cookie", "Authorization: Bearer PLANTED-bearer",
		"Proxy-Authorization: Basic PLANTED-proxy",
		"Referer: https://shop/?PLANTED-referer", "X-Forwarded-For: PLANTED-address", "X-Api-Key: PLANTED-key",
		"X-Request-Id: "}
	ask := func(id, target, key string) {
		lines := append([]string{}, private...)
		lines[len(lines)-1] += id
		g.ask("POST", target+"?token=PLANTED-query", append(lines, "Idempotency-Key: "+key)...)
	}
	ask("r-passed", "/anything;jsessionid=PLANTED-session", "PLANTED-own-key")
	ask("r-checked", "/api/checked/7777", "PLANTED-own-key")
	for _, id := range []string{"r-ordered", "r-again"} {
		lines := append([]string{}, private...)
		lines[len(lines)-1] += id
		g.ask("POST", "/api/seckill/1001/order?token=PLANTED-query", append(lines, "Idempotency-Key: order-"+id)...)
	}
	g.raw(t, "POST /PLANTED-smuggled?PLANTED-query HTTP/1.1\r\nHost: a\r\nHost: b\r\nCookie: "+
		"uid=PLANTED-cookie\r\nContent-Length: 14\r\n\r\nPLANTED-body..")
	wrong, err := http.NewRequest("GET", "http://"+g.admin+"/api/v1/stock", nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong.Header.Set("Authorization", "Bearer PLANTED-wrong-token")
	if _, err := send(g.client, wrong); err != nil {
		t.Fatal(err)
	}
	if e := out.about(t, "r-ordered"); e.Serial != "order-r-ordered" || e.Order != "confirmed" || e.User == "" ||
		e.Target != shop.url {
		t.Errorf("the order is told as %+v", e)
	}
	out.about(t, "r-passed")
	out.about(t, "r-checked")
	out.about(t, "r-again")
	why := run(t, "", "why", "--user", "PLANTED-user", "--sku", "1001", "--admin", "http://"+g.admin, "--token-file",
		keep(t, "token", token))
	if why.code != 0 || strings.Count(why.out, "request_id") != 2 {
		t.Errorf("why tells, exit code %d: %s%s", why.code, why.out, why.complaint)
	}
	// The gate's password is no longer the server's: what fails now is told without it.
	r.Client.ConfigSet(t.Context(), "requirepass", "PLANTED-next-password")
	r.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	soon(t, "Redis is missed", func() bool { return g.metric("sluice_redis_up") == 0 })
	ask("r-away", "/api/checked/1001", "PLANTED-own-key")
	out.about(t, "r-away")
	text := out.String() + g.log.String() + why.out + why.complaint + g.scrape()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "PLANTED") {
			t.Errorf("a secret is told: %s", line)
		}
	}
}

// A rejection says more than its reason where it knows more: in the response, the access log, why, and a metric.
func TestRejection_CauseIsReportedEverywhere(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g, out := logged(t, shop.setting())
	const cause = "user missing: $cookie_uid"
	a := g.ask("POST", "/api/seckill/1001/order", "X-Request-Id: r-1", "Accept: application/json")
	a.must(t, 401, "unidentified")
	wants(t, a.body, `"cause":"`+cause+`"`)
	if e := out.about(t, "r-1"); e.Detail != cause {
		t.Errorf("the access log has %+v, want the detail %q", e, cause)
	}
	wants(t, ok(t, "why", "r-1", "--admin", g.admin), cause)
	g.wantMetric(1, "sluice_rejection_details_total", `cause="user_missing"`)
	g.wantMetric(1, "sluice_rejection_details_total")
	soon(t, "status shows the cause", func() bool {
		return strings.Contains(ok(t, "status", "--admin", g.admin), "causes: user_missing 1")
	})
}

func TestWhy_ReportsARejection(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g, out := logged(t, shop.setting(), `mode = "enforce"`, `access_log.output = "off"`,
		"limits.window.max_per_sku = 1\nlimits.window.max_delay = \"0s\"\nlimits.window.size = \"1s\"")
	ok(t, "stock", "set", "1001", "1000000", "--admin", "http://"+g.admin)
	reasons := map[string]string{} // by id
	for i := range 5 {
		id := fmt.Sprintf("r-%d", i)
		reasons[id] = g.order("1001", "X-Request-Id: "+id).reason
	}
	for id, reason := range reasons {
		if reason == "" {
			reason = "admitted"
		}
		var s said
		soon(t, "why knows of "+id, func() bool {
			s = run(t, "", "why", id, "--admin", g.admin)
			return s.code != 3
		})
		wants(t, s.out, id, reason)
		if reason == "window" {
			wants(t, s.out, "limits.window: max off, max_per_sku 1 in 1s, max_delay 0s", "wait_ms", "meaning")
		}
	}
	if s := run(t, "", "why", "--user", "7", "--sku", "1001", "--json", "--admin", g.admin); strings.Count(s.out,
		"\n") != 5 {
		t.Errorf("of 5 orders these are known: %s", s.out)
	}
	for _, args := range [][]string{{"absent"}, {"--user", "8", "--sku", "1001"}} {
		if s := run(t, "", append([]string{"why", "--admin", g.admin}, args...)...); s.code != 3 || s.out != "" {
			t.Errorf("why %q: exit code %d, %s", args, s.code, s.out)
		}
	}
	if s := run(t, "", "why", "--user", "7", "--admin", g.admin); s.code != 2 {
		t.Errorf("why without a SKU: exit code %d", s.code)
	}
	if out.String() != "" {
		t.Errorf("a log that is off tells %s", out)
	}
}

// The reader of standard output goes away, as when the log collector crashes: shoppers do not notice.
func TestAccessLog_GateOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	path := file(t, "server.shutdown_delay = \"0s\"\n"+listeners+shop.setting()+routes)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "run", "--config", path)
	command.Stdout = write
	g := start(t, path, command)
	write.Close()
	read.Close()
	for range 3 {
		g.ask("GET", "/page").must(t, 200, "")
		before := g.metric("sluice_access_log_dropped_total", `cause="failed"`)
		soon(t, "a line is lost and counted", func() bool {
			g.ask("GET", "/page").must(t, 200, "")
			return g.metric("sluice_access_log_dropped_total", `cause="failed"`) > before
		})
	}
	g.logs(t, "access log: lines are lost")
}

func TestAccessLog_IsRotatedAndReloaded(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	log := filepath.Join(t.TempDir(), "access.log")
	g := stocked(t, shop.setting(), fmt.Sprintf("access_log.output = %q", "file:"+log))
	holds := func(path, id string) func() bool {
		return func() bool {
			text, _ := os.ReadFile(path)
			return strings.Contains(string(text), `"`+id+`"`)
		}
	}
	g.order("1001", "X-Request-Id: r-1").must(t, 200, "")
	soon(t, "the first is told", holds(log, "r-1"))
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	if err := g.process.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	soon(t, "the new file is there", func() bool { _, err := os.Stat(log); return err == nil })
	g.order("1001", "X-Request-Id: r-2").must(t, 200, "")
	soon(t, "the second is told", holds(log, "r-2"))
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(string(text), log+`"`, log+".new\"\naccess_log.mask_ip = true", 1)
	g.rewrite(moved, true)
	g.order("1001", "X-Request-Id: r-3").must(t, 200, "")
	soon(t, "the third is told", holds(log+".new", "r-3"))
	if holds(log, "r-1")() || holds(log+".1", "r-2")() || holds(log, "r-3")() || !holds(log+".new", "127.0.0.0")() {
		t.Error("a line is in the wrong file")
	}
	g.rewrite(strings.Replace(moved, log+".new", "/none/of/these/access.log", 1), false)
	g.order("1001", "X-Request-Id: r-4").must(t, 200, "")
	soon(t, "the old file is written on", holds(log+".new", "r-4"))
	g.logs(t, "access_log.output: open the access log: open /none/of/these/access.log: no such file")
}
