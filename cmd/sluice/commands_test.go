package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/stores"
	"sluice/internal/cli"
	"sluice/internal/listener"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
)

// ops.listen and admin.listen may be unix sockets: then those who ask must find them there.
func TestSluice_GateOnUnixSocketsCanBeAsked(t *testing.T) {
	at := "unix:" + filepath.Join(t.TempDir(), "gate.sock")
	ln, err := listener.Open(at, false)
	if err != nil {
		t.Fatal(err)
	}
	memory := storetest.Shop(t)
	api := admin.API{Store: stores.NewStore(memory), Log: slog.New(slog.DiscardHandler)}
	mux := http.NewServeMux()
	mux.Handle("/api/", api.Handler())
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Handler: mux}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })

	if err := typed(t, "healthcheck --ops "+at); err != nil {
		t.Errorf("healthcheck: %v", err)
	}
	if err := typed(t, "stock set 1001 3 --admin "+at); err != nil {
		t.Errorf("stock set: %v", err)
	}
	if left, err := memory.Add(t.Context(), "1001", 0); err != nil || left != 3 {
		t.Errorf("the stock is %d, %v; want 3", left, err)
	}
}

func TestSluice_PageInsteadOfAnAnswerIsSaidToBe(t *testing.T) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	defer shop.Close()
	if err := typed(t, "stock get 1001 --admin "+shop.URL); err == nil ||
		!strings.Contains(err.Error(), "is this the admin address of a gateway?") {
		t.Errorf("a shop: %v", err)
	}
}

// An address stands on the command line as in the configuration.
func TestSluice_PortAloneIsOfThisMachine(t *testing.T) {
	gate := httptest.NewServer(storetest.NewAPI(t, storetest.Ledger(t), 1).Handler)
	defer gate.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(gate.URL, "http://"), ":")
	if err := typed(t, "stock list --admin :"+port); err != nil {
		t.Error(err)
	}
}

func TestSluice_UnknownNamesAreMisuse(t *testing.T) {
	for _, words := range [][]string{
		{"reservation", "get", ""}, {"reservation", "confirm", ".."}, {"reservation", "release", ".", "--sku", "1001"},
		{"reservation", "refund", "a b"},
		{"reservation", "get", strings.Repeat("k", 129)},
		{"stock", "add", "1001", "20", "--key", ""}, // a script that has left the name empty would add each time
	} {
		var wrong *cli.UsageError
		if _, err := command(t, words...); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", words, err)
		}
	}
}

// command runs a command line in this process, as main does, and returns what it prints.
func command(t *testing.T, words ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out strings.Builder
	root.SetOut(&out)
	root.SetArgs(cli.NumbersLast(words))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// typed runs a command line of words without spaces.
func typed(t *testing.T, line string) error {
	t.Helper()
	_, err := command(t, strings.Fields(line)...)
	return err
}

func TestSluice_CommandsDecideReservations(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	gate := httptest.NewServer(k.Handler)
	defer gate.Close()
	hold := func(sku string) func(serial string) {
		return func(serial string) { k.Hold(sku, serial, "u"+serial, 1, storetest.LongAgo) }
	}
	orders := func(line string) string {
		file := filepath.Join(t.TempDir(), "orders.csv")
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, c := range []struct {
		words, complaint string
		held, sold       int64 // of 1001 afterwards
		before           func(serial string)
	}{
		{"stock set 1001 10 --limit 3", "", 0, 0, nil},
		{"stock set 1002 10", "", 0, 0, nil},
		{"reservation confirm a", "", 0, 1, hold("1001")},
		{"reservation confirm a", "", 0, 1, nil},
		{"reservation release a", "refund it", 0, 1, nil},
		{"reservation refund a", "", 0, 0, nil},
		{"reservation release b", "", 0, 0, hold("1001")},
		{"reservation get b", "", 0, 0, nil},
		{"reservation get b --sku 1002", "no such reservation; look: sluice reservation list", 0, 0, nil},
		{"reservation confirm c", "", 0, 0, hold("1002")},
		{"reservation confirm d --sku 1002", "no such reservation", 1, 0, hold("1001")},
		{"reservation list --unknown", "", 1, 0, nil},
		{"reservation list --state held --sku 1001 --limit 1", "", 1, 0, nil},
		{"reservation list --sku 1003", "no such SKU", 1, 0, nil},
		{"stock recover 1001 --apply --from " + orders("e,7,2"), "", 1, 2, nil},
		{"stock recover 1001 --apply --from " + orders("e,8,2"), "contradict what the ledger has", 1, 2, nil},
		{"stock recover {} --apply --from none", "no request can name it", 1, 2, nil},
		{"stock add 1001 -7 --key k", "", 1, 2, nil},
		{"stock add 1001 -7 --key k", "", 1, 2, nil},
		{"stock set 1001 2", "1 held + 2 sold", 1, 2, nil},
		{"stock pause 1001", "", 1, 2, nil},
		{"stock end 1001", "", 1, 2, nil},
		{"stock resume 1001", "", 1, 2, nil},
		{"stock get 1001", "", 1, 2, nil},
		{"stock list --limit 1", "", 1, 2, nil},
		{"stock get 1001 --kind layout", "all of them reserve", 1, 2, nil},
	} {
		if c.before != nil {
			c.before(strings.Fields(c.words)[2])
		}
		err := typed(t, c.words+" --admin "+gate.URL)
		if (err == nil) != (c.complaint == "") || err != nil && !strings.Contains(err.Error(), c.complaint) {
			t.Errorf("%s: %v, want %q", c.words, err, c.complaint)
		}
		if s := k.Stock("1001"); s.Held != c.held || s.Sold != c.sold {
			t.Errorf("%s: %d held, %d sold; want %d and %d", c.words, s.Held, s.Sold, c.held, c.sold)
		}
	}
	if s := k.Stock("1001"); s.Total != 3 || s.Limit != 3 || s.State != ledger.On {
		t.Errorf("in the end: %+v", s)
	}
	if s := k.Stock("1002"); s.Sold != 1 || s.Limit != 1 {
		t.Errorf("the other SKU in the end: %+v", s)
	}
}

func TestSluice_ListOfUnknownOrdersSaysWhatItLeavesOut(t *testing.T) {
	for _, c := range []struct {
		listed, held int
		want         string
	}{
		{0, 0, "no order is held: nothing"}, {1, 0, "no other order is held"}, {0, 20, "20 held orders have"},
		{1, 20, "20 other held orders have"},
	} {
		if got := otherHeld(c.listed, c.held, ""); !strings.HasPrefix(got, c.want) {
			t.Errorf("%d listed, %d held: %s; want %s", c.listed, c.held, got, c.want)
		}
	}
	if got := otherHeld(0, 1, "127.0.0.1:8090"); !strings.Contains(got, "add --admin 127.0.0.1:8090") {
		t.Errorf("the instance that is known is not named: %s", got)
	}
}

// --instance of undo is that of set: where the fleet has an override of the key, too, it says which of the two.
func TestOverride_UndoOfThisInstanceLeavesTheFleets(t *testing.T) {
	var undone string
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "DELETE" {
			undone = r.URL.Path
			_, _ = io.WriteString(w, `{"id":"2"}`)
			return
		}
		_, _ = io.WriteString(w, `{"overrides":[{"id":"1","key":"limits.window.max","scope":"fleet"},`+
			`{"id":"2","key":"limits.window.max","scope":"instance"},{"id":"3","key":"mode","scope":"fleet"}]}`)
	}))
	defer gate.Close()
	if err := typed(t, "override undo limits.window.max --instance --admin "+gate.URL); err != nil ||
		undone != "/api/v1/overrides/2" {
		t.Errorf("asked for %q: %v", undone, err)
	}
	undone = ""
	for _, name := range []string{"mode", "3", "9"} {
		err := typed(t, "override undo "+name+" --instance --admin "+gate.URL)
		if err == nil || !strings.Contains(err.Error(), "sluice override list") || undone != "" {
			t.Errorf("%s: asked for %q: %v", name, undone, err)
		}
	}
}

// Freezing is what the ledger does; only an operator who has looked after the orders opens it.
func TestSluice_FrozenLedgerIsRecoveredAndNotResumed(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	gate := httptest.NewServer(k.Handler)
	defer gate.Close()
	if err := typed(t, "stock set 1001 10 --admin "+gate.URL); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Store.SetState(t.Context(), "1001", ledger.Frozen); err != nil {
		t.Fatal(err)
	}
	err := typed(t, "stock resume 1001 --admin "+gate.URL)
	if err == nil || !strings.Contains(err.Error(), "sluice stock recover 1001") {
		t.Errorf("resume: %v", err)
	}
	for _, more := range []string{"", " --from none", " --from none --state frozen --apply"} {
		if err := typed(t, "stock recover 1001"+more+" --admin "+gate.URL); err != nil ||
			k.Stock("1001").State != ledger.Frozen {
			t.Errorf("recover%s: %v", more, err)
		}
	}
	if err := typed(t, "stock recover 1001 --from none --apply --admin "+gate.URL); err != nil ||
		k.Stock("1001").State != ledger.On {
		t.Errorf("recover: %v", err)
	}
}

// REDIS_ADDR is the environment's word for config.toml; many machines set it for another program.
func TestSluice_WhatNoFileConfiguresIgnoresTheEnvironment(t *testing.T) {
	t.Setenv("REDIS_ADDR", "redis")
	if _, err := (&runOptions{from: "127.0.0.1:0", to: "http://127.0.0.1:9"}).load(); err != nil {
		t.Errorf("run --from --to: %v", err)
	}
	if err := typed(t, "demo --shoppers 3 --units 2 --patience 1m"); err != nil {
		t.Errorf("demo: %v", err)
	}
}

// In observe mode a rejection is counted only, so explain does not fail for it.
func TestExplain_RepeatsTheRequestAndFollowsTheMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for mode, rejected := range map[string]bool{"observe": false, "enforce": true} {
		text := "mode = \"" + mode + "\"\nupstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\nname = \"order\"\n" +
			"match = \"/orders\"\ngate = \"limit\"\nuser = \"$cookie_uid\"\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := command(t, "explain", "/orders", "--config", path)
		if errors.Is(err, errRejected) != rejected || !strings.HasPrefix(out, "request   GET /orders\n") {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
		out, err = command(t, "explain", "/orders", "-H", "Cookie: uid=1", "--config", path)
		if err != nil || strings.Contains(out, "schedule") || strings.Contains(out, "queue.max_order") ||
			strings.Contains(out, "max 0") || strings.Contains(out, ": limits.") {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}

// Who explains a request without what the route reads is told the flags that give it.
func TestExplain_SaysWhichFlagsGiveWhatIsMissing(t *testing.T) {
	for detail, want := range map[string]string{
		"sku missing: $json_productId":  `-H 'Content-Type: application/json' -d '{"productId": 1}'`,
		"body is not JSON: $json_a.b.c": `-H 'Content-Type: application/json' -d '{"a": {"b": {"c": 1}}}'`,
		"sku missing: $form_id":         "-H 'Content-Type: application/x-www-form-urlencoded' -d 'id=1'",
		"user missing: $cookie_uid":     "-H 'Cookie: uid=1'",
		"user missing: $http_x_user":    "-H 'x-user: 1'",

		`SKU missing: $form("order[sku]")`:     "-H 'Content-Type: application/x-www-form-urlencoded' -d 'order%5Bsku%5D=1'",
		`user missing: $cookie('connect.sid')`: "-H 'Cookie: connect.sid=1'",
		`SKU missing: $json("a.b".c)`:          `-H 'Content-Type: application/json' -d '{"a.b": {"c": 1}}'`,
		"sku missing: $path_sku":               "",
		"path is not canonical":                "",
	} {
		if got := missing(detail); got != want {
			t.Errorf("%s: %s, want %s", detail, got, want)
		}
	}
}

func TestSluice_KeyIsExplainedByItsValueItsOriginAndTheReference(t *testing.T) {
	c := testkit.LimitConfig(t, "limits.window.max = 50")
	for key, want := range map[string][]string{
		"limits.window.max": {"value     50\n", "origin    config.toml:1\n", "changes   with a reload\n", "max = 0",
			"all SKUs together"},
		"stock.poll_interval": {"value     \"10ms\"\n", "origin    default\n", "changes   with a reload\n"},
		"route.name":          {"key       route[1].name\n"},
		"mode":                {"value     \"enforce\"\n", "observe"},
	} {
		var b strings.Builder
		if !explainKey(&b, c, key) {
			t.Errorf("%s is not known", key)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: %q is not in %s", key, w, b.String())
			}
		}
	}
	if explainKey(&strings.Builder{}, c, "limits.window.maxx") {
		t.Error("what is no key is explained")
	}
}

// The meaning of a key does not depend on the file, which may be missing, or broken at this very key.
func TestExplain_KeyHasAMeaningWithoutAValidFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	explains := func(key, want, problem string) {
		out, err := command(t, "explain", key, "--config", file)
		if !strings.Contains(out, want) || !strings.Contains(fmt.Sprint(err), problem) {
			t.Errorf("%s: %q, %v: want %s, and %s", key, out, err, want, problem)
		}
	}
	explains("limits.window.max", "reference max = 0 ", "no such file")
	write := func(settings string) {
		text := settings + "\nupstream.targets = [\"http://127.0.0.1:9\"]\n" +
			"route = [{name = \"r\", match = \"/\", gate = \"pass\"}]"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("limits.window.max = true")
	explains("limits.window.max", "reference max = 0 ", "config.toml:1: limits.window.max: ")
	write("")
	explains("room[1].opens", `reference opens = "30m"`, "<nil>") // a table that the file does not have
	explains("max_per_sku", "", "did you mean limits.window.max_per_sku?")
}

// Every key that can be overridden is one, and a reload could change it too.
func TestSluice_WhatCanBeOverriddenIsLive(t *testing.T) {
	keys := map[string]bool{}
	c := testkit.LimitConfig(t, `limits.rate = [{name = "r", rate = "1/s", burst = 1}]`+
		"\nlimits.in_flight = [{name = \"f\", max = 1}]")
	for _, s := range c.Settings() {
		keys[config.WithoutIndexes(s.Key)] = true
	}
	for _, key := range gateway.Overridable {
		if !keys[key] || !gateway.ChangesOnReload(key) {
			t.Errorf("%s: a key %v, live %v", key, keys[key], gateway.ChangesOnReload(key))
		}
		if inReference(key) == "" {
			t.Errorf("%s is not found in the reference", key)
		}
	}
	if gateway.CheckOverridable("limits.window.size") == nil || gateway.CheckOverridable("admin.token_file") == nil {
		t.Error("what needs a restart can be overridden")
	}
}

// A key that cannot be overridden is told of before it is asked for how long.
func TestOverride_UnknownKeyIsNamedFirst(t *testing.T) {
	if _, err := command(t, "override", "set", "limits.windw.max", "5"); err == nil ||
		!strings.Contains(err.Error(), `"limits.windw.max"`) || !strings.Contains(err.Error(), "limits.window.max") {
		t.Error(err)
	}
}

// An operator who finds nothing is told why, and where else to look.
func TestWhy_NoEntrySaysWhereElseToLook(t *testing.T) {
	if got := noEntry(time.Time{}, false); !strings.Contains(got, "access_log.buffer_size") {
		t.Errorf("before any request: %s", got)
	}
	since := time.Date(2026, 11, 11, 0, 0, 0, 0, time.Local)
	for ordered, want := range map[bool]string{false: "sluice reservation get SERIAL", true: "check the user"} {
		got := noEntry(since, ordered)
		for _, part := range []string{since.Format(time.RFC3339), "access_log.output", "--admin", want} {
			if !strings.Contains(got, part) {
				t.Errorf("%q lacks %q", got, part)
			}
		}
	}
}

func TestWhy_ReasonOfARejectionIsExplained(t *testing.T) {
	for line, want := range map[string]string{
		`{"reason":"no_upstream"}`: "reason   no_upstream\nmeaning  no target could be reached: nothing was sent\n",
		`{"reason":"rate","limit":"no_upstream"}`: "reason   rate\nmeaning  a `[[limits.rate]]`: see limits.md, or joins of one " +
			"user of a waiting room\nlimit    no_upstream\n",
		`{"reason":"ambiguous"}`: "reason   ambiguous\nmeaning  Sluice and the upstream could read the request differently: " +
			"the detail says where, and docs/http.md, Causes, what to change; where query and body differ, the client sends " +
			"the value once, or the route has `sources = \"one\"`\n",
		`{"reason":"admitted"}`:           "reason  admitted\n",
		`{"reason":"of another version"}`: "reason  of another version\n",
	} {
		var out strings.Builder
		if err := spellOut(&out, []byte(line)); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", line, out.String(), err, want)
		}
	}
}

// What is to be done comes first, and what is in force only where it is asked for. The bound of the stock is named.
func TestCheck_ShowsFiguresOnDemand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	if _, err := command(t, "init", file); err != nil {
		t.Fatal(err)
	}
	short, err := command(t, "check", file)
	if err != nil || strings.Contains(short, "memory    at most") || !strings.Contains(short, "add -v") {
		t.Errorf("%v: %s", err, short)
	}
	long, err := command(t, "check", "-v", file)
	warned, figures := strings.LastIndex(long, "\nwarn "), strings.Index(long, "\n     ")
	if err != nil || !strings.Contains(long, "memory    at most") || warned < 0 || warned > figures ||
		!strings.Contains(long, "at most 2 orders of a SKU for each unit that is left") {
		t.Errorf("%v: %s", err, long)
	}
	out, err := command(t, "explain", "POST /api/seckill/1/order", "-H", "Cookie: uid=1", "--config", file)
	if err != nil || !strings.Contains(out, "stock (stock): max_in_flight_per_unit 2: ") {
		t.Errorf("%v: %s", err, out)
	}
}
