package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// documentedReason is a row of the table of rejections: its reason and status; "–" = the outcome decides, in words.
var documentedReason = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z_–]+ \\| (\\d+) \\|")

// documentedReasons are the statuses of the rejections in docs/http.md, by reason.
func documentedReasons(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(root + "/docs/http.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- reasons:")
	table, _, whole := strings.Cut(table, "<!-- end of reasons -->")
	all := map[string]int{}
	for _, row := range documentedReason.FindAllStringSubmatch(table, -1) {
		all[row[1]], _ = strconv.Atoi(row[2])
	}
	if !whole || len(all) < 30 {
		t.Fatalf("docs/http.md has %d reasons", len(all))
	}
	return all
}

// observer holds rejections of one gate against the table of docs/http.md.
type observer struct {
	t      *testing.T
	g      *running
	lines  *journal
	status map[string]int // by reason
	mu     *sync.Mutex
	seen   map[string]bool // reasons, of all gates
}

// on is the observer before a gate with these settings.
func (w observer) on(t *testing.T, settings ...string) observer {
	t.Helper()
	w.t = t
	w.g, w.lines = logged(t, append([]string{unlimited, "access_log.rejected_per_second = 1000"}, settings...)...)
	return w
}

// order orders as a user, at a path, with more header lines.
func (w observer) order(path, user string, more ...string) answer {
	w.t.Helper()
	return w.g.ask("POST", path, append(more, "Cookie: uid="+user, "Accept: application/json")...)
}

// rejects wants one whole answer for the reason, with its status; and the same reason in the body, in one line of the
// access log, and once in the metrics.
func (w observer) rejects(reason string, a answer) {
	w.t.Helper()
	w.mu.Lock()
	w.seen[reason] = true
	w.mu.Unlock()
	a.must(w.t, w.status[reason], reason)
	wants(w.t, a.body, `"reason":"`+reason+`"`, `"status":`+fmt.Sprint(w.status[reason]))
	id, length := a.header.Get("X-Request-Id"), a.header.Get("Content-Length")
	if length != fmt.Sprint(len(a.body)) || a.header.Get("Cache-Control") != "no-store" || id == "" {
		w.t.Errorf("%s: %d bytes with the header %v", reason, len(a.body), a.header)
	}
	if e := w.lines.about(w.t, id); e.Reason != reason || e.Status != a.status {
		w.t.Errorf("%s: the access log has %+v", reason, e)
	}
	w.g.wantMetric(1, "sluice_rejected_requests_total", `reason="`+reason+`"`)
}

// Each reason of docs/http.md is provoked once, by its own cause. The limits have a test of their own beside this one.
func TestRejection_IsTheSameEverywhereForEveryReason(t *testing.T) {
	t.Parallel()
	all := observer{status: documentedReasons(t), mu: new(sync.Mutex), seen: map[string]bool{}}
	t.Run("causes", func(t *testing.T) { // returns when all are through
		t.Run("request", func(t *testing.T) { t.Parallel(); all.ofTheRequest(t) })
		t.Run("order", func(t *testing.T) { t.Parallel(); all.ofTheOrder(t) })
		t.Run("upstream", func(t *testing.T) { t.Parallel(); all.ofTheUpstream(t) })
	})
	for _, c := range rejections() {
		all.seen[c.reason] = true
	}
	all.seen["client_gone"] = true // TestConcurrency_ClientThatLeavesTheQueueNeverReachesTheShop
	all.seen["internal"] = true    // a fault of the gate
	for reason := range all.status {
		if !all.seen[reason] {
			t.Errorf("%s of docs/http.md is not tried", reason)
		}
	}
}

// ofTheRequest provokes what a request alone decides, and the state of its SKU.
func (w observer) ofTheRequest(t *testing.T) {
	shop := open(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.Header.Get("Via")) })
	secret := strings.Repeat("a", 32)
	w = w.on(t, shop.setting(), `auth.jwt_algorithm = "HS256"`,
		fmt.Sprintf("auth.jwt_key_file = %q", keep(t, "jwt", secret)),
		fmt.Sprintf("auth.order_token_key_file = %q", keep(t, "token", secret)), `
[[route]]
name = "check"
match = "POST /check/{sku}"
gate = "check"
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "token"
match = "POST /token/{sku}"
gate = "check"
sku = "$path_sku"
user = "$cookie_uid"
order_token = true
[[route]]
name = "proven"
match = "POST /proven"
gate = "limit"
user = "$jwt_sub"
require = ["$jwt_level>=2"]
[[route]]
name = "page"
match = "GET /page"
gate = "pass"
[[sale]]
name = "later"
skus = ["later"]
starts = 2099-11-11T00:00:00+08:00
ends = 2099-11-11T02:00:00+08:00
[[sale]]
name = "earlier"
skus = ["earlier"]
starts = 2020-11-11T00:00:00+08:00
ends = 2020-11-11T02:00:00+08:00
`)
	for _, sku := range []string{"later", "earlier", "good"} {
		ok(t, "stock", "set", sku, "5", "--admin", w.g.admin)
	}
	ok(t, "stock", "set", "none", "0", "--admin", w.g.admin)

	w.rejects("no_route", w.g.ask("GET", "/elsewhere", "Accept: application/json"))
	via := w.g.ask("GET", "/page").body
	w.rejects("loop", w.g.ask("GET", "/page", "Via: "+via, "Accept: application/json"))
	w.rejects("bad_request", w.order("/check/go%20od", "7"))
	w.rejects("ambiguous", w.g.raw(t, complete("POST", "//check/good", "Cookie: uid=7\r\nAccept: application/json")))
	w.rejects("unidentified", w.order("/proven", "7"))
	w.rejects("denied", w.order("/proven", "7", "Authorization: Bearer "+signedBy(secret, `"level":1,`)))
	w.rejects("token", w.order("/token/good", "7"))
	w.rejects("not_started", w.order("/check/later", "7"))
	w.rejects("ended", w.order("/check/earlier", "7"))
	w.rejects("unknown_sku", w.order("/check/unknown", "7"))
	w.rejects("sold_out", w.order("/check/none", "7"))
	if n := shop.arrivals.Load(); n != 1 {
		t.Errorf("the shop saw %d requests, want the one page", n)
	}
}

// ofTheOrder provokes what the ledger knows of an order and of others.
func (w observer) ofTheOrder(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	shop := book(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Idempotency-Key") == "slow" {
			close(inside)
			<-leave
		}
		return false
	})
	shop.denied["turned-down"] = true
	redis := redistest.Start(t)
	w = w.on(t, redisAt(redis), shop.setting(), unhurried,
		fmt.Sprintf("auth.room_key_file = %q", keep(t, "room", oldRoomKey)), `
[[room]]
name = "rush"
sale = "rush"
[[sale]]
name = "rush"
skus = ["2001"]
starts = 2020-11-11T00:00:00+08:00
ends = 2099-11-11T02:00:00+08:00
`+strings.Replace(reserveRoutes, "[[route]]", `[[route]]
name = "rushed"
match = "POST /rush/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
room = "rush"

[[route]]`, 1))
	for _, sku := range []string{"1001", "1002", "2001"} {
		ok(t, "stock", "set", "--config", w.g.file, sku, "2")
	}
	is := func(want account) {
		t.Helper()
		soon(t, fmt.Sprintf("the ledger is %+v", want), func() bool { return ledgerOf(t, redis, "1001") == want })
	}
	key := func(key string) string { return "Idempotency-Key: " + key }

	w.order(orderPath, "9", key("turned-down")).must(t, 409, "")
	is(account{2, 0, 0})
	w.rejects("released", w.order(orderPath, "9", key("turned-down")))
	w.order(orderPath, "1", key("one")).must(t, 200, "")
	is(account{2, 0, 1})
	w.rejects("confirmed", w.order(orderPath, "1", key("one")))
	w.rejects("duplicate", w.order(orderPath, "1", key("two")))
	w.rejects("key_reused", w.order(orderPath, "2", key("one")))
	slow := make(chan answer)
	go func() { slow <- w.order(orderPath, "3", key("slow")) }()
	<-inside
	w.rejects("in_progress", w.order(orderPath, "3", key("slow")))
	w.rejects("undecided", w.order(orderPath, "4", key("late")))
	close(leave)
	(<-slow).must(t, 200, "")
	is(account{2, 0, 2})
	w.rejects("room", w.order("/rush/2001", "5"))
	w.g.prints(t, "stock pause 1002 --for 10m")
	w.rejects("paused", w.order("/api/seckill/1002/order", "5"))
	redis.Kill()
	w.rejects("stock_error", w.order("/api/seckill/1003/order", "5"))
	shop.audit(t)
}

// ofTheUpstream provokes what is wrong with the shop.
func (w observer) ofTheUpstream(t *testing.T) {
	const page = "stock.source = \"off\"\n" + allPages
	away := w.on(t, "upstream.targets = "+quoted(nowhere(t)), page)
	away.rejects("no_upstream", away.order("/", "7"))

	bad := misbehave(t, func(c net.Conn, r *http.Request) bool { return deeds[r.Header.Get("Deed")](c, r) })
	broken := w.on(t, "upstream.targets = "+quoted(bad.url), patience["silence"], page)
	broken.rejects("upstream_error", broken.order("/", "7", "Deed: hangs up"))
	broken.rejects("upstream_timeout", broken.order("/", "7", "Deed: hangs"))

	inside, leave := make(chan struct{}), make(chan struct{})
	full := open(t, func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-leave
	})
	busy := w.on(t, full.setting(), unhurried, "upstream.max_conns = 1", `upstream.queue_timeout = "100ms"`, page)
	first := make(chan answer)
	go func() { first <- busy.order("/", "1") }()
	<-inside
	busy.rejects("upstream_busy", busy.order("/", "2"))
	close(leave)
	(<-first).must(t, 200, "")
}
