package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/settler"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
	"sluice/stockgate/redisconn"
)

// settleConfig writes a configuration that settles into SQLite.
func settleConfig(t *testing.T, redis string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	text := fmt.Sprintf(`upstream.targets = ["http://127.0.0.1:9"]
[stock]
source = "redis"
redis = { addresses = [%q], topology = "single" }
reserve = { stream_keep_unread = true }
[settle]
database = "sqlite:settle.db"
listen = "127.0.0.1:0"
[[route]]
name = "order"
match = "POST /o/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
`, redis)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// oneOrder makes a ledger in which one order is confirmed and one is held.
func oneOrder(t *testing.T, redis, sku string) {
	t.Helper()
	oneOrderOf(t, redis, sku, "alice")
}

func oneOrderOf(t *testing.T, redis, sku, user string) {
	t.Helper()
	ctx := context.Background()
	r, err := redisstore.New(redisstore.Options{Options: redisconn.Options{
		Addresses: []string{redis}, PoolSize: 2, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
	}, Events: 1000, Acknowledged: true, Visitor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	now := time.Now().UnixMilli()
	items := []protocol.Item{{Serial: "=1+1", User: user, Quantity: 2}, {Serial: "s2", User: "bob", Quantity: 1}}
	_, err1 := r.SetTotal(ctx, sku, 10, 1)
	_, err2 := r.SetTotal(ctx, sku, 10, 2)
	_, err3 := r.Reserve(ctx, sku, 0, now, now+60_000, items, make([]protocol.Code, 2))
	_, err4 := r.Finish(ctx, sku, now, now+60_000, protocol.Confirm, items[:1], make([]protocol.Done, 1))
	_, err5 := r.SetTotal(ctx, sku, 10, 1) // now alice has more than one may have
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
}

func TestSettleCommands_TellTheBooks(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	oneOrder(t, server.Addr, "1001")
	prints := func(want string) {
		t.Helper()
		if out, err := command(t, "settle", "migrate", "--print", "-c", file); err != nil || !strings.Contains(out, want) {
			t.Errorf("migrate --print: %q, %v; want %q", out, err, want)
		}
	}
	prints("CREATE TABLE sluice_order")
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "settle.db")); err == nil {
		t.Error("migrate --print has made the database")
	}
	if out, err := command(t, "settle", "status", "-c", file); err == nil ||
		!strings.Contains(out+err.Error(), "sluice settle migrate") {
		t.Errorf("without tables: %q, %v", out, err)
	}
	for _, want := range []string{"applied 00001_settlement.sql", "the tables are those of this version"} {
		if out, err := command(t, "settle", "migrate", "-c", file); err != nil || !strings.Contains(out, want) {
			t.Errorf("migrate: %q, %v; want %q", out, err, want)
		}
	}
	prints("-- home main\n-- the tables are those of this version\n")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		root := newRoot()
		root.SetArgs([]string{"settle", "run", "-c", file})
		ended <- root.ExecuteContext(ctx)
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		out, err := command(t, "settle", "status", "-c", file)
		if fields := strings.Fields(out); err == nil && strings.Contains(out, "1001") {
			if got := fields[len(fields)-10:]; got[2] == "0" && got[6] == "2" && got[7] == "1" && got[9] == "8" {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("status: %q, %v", out, err)
		}
	}
	if out, err := command(t, "settle", "verify", "1001", "-c", file); err != nil ||
		!strings.Contains(out, "equal; 2 records, 2 units sold, 2 booked") {
		t.Errorf("verify: %q, %v", out, err)
	}
	out, err := command(t, "settle", "report", "-c", file)
	if !errors.Is(err, errReported) || !strings.Contains(out, `over_limit: "1001 alice": 2 units`) {
		t.Errorf("report: %q, %v", out, err)
	}
	if out, _ := command(t, "settle", "report", "--json", "-c", file); !strings.Contains(out,
		`{"kind":"over_limit","sku":"1001","name":"alice","units":2`) {
		t.Errorf("report --json: %q", out)
	}
}

func TestCheckOnline_TriesTheDatabaseOfTheSettler(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	wants := func(when string, words ...string) {
		t.Helper()
		out, _ := command(t, "check", "--online", "--sku", "1001", file)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s: %q is missing in\n%s", when, word, out)
			}
		}
	}
	wants(
		"no file",
		"books orders in sqlite:settle.db, 500 changes a transaction",
		"ok   settle    sqlite:settle.db is made by",
	)
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "settle.db")); err == nil {
		t.Error("the check has made the database")
	}
	if out, err := command(t, "settle", "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	wants("tables", "ok   settle    sqlite:settle.db has the tables of this version")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(
		string(text),
		"[[route]]",
		"orders_query = \"SELECT serial FROM nowhere WHERE sku = :sku\"\n[[route]]",
		1,
	)
	unreachable := strings.Replace(bad, "sqlite:settle.db", "postgres://u@127.0.0.1:1/shop", 1)
	if err := os.WriteFile(file, []byte(unreachable), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(
		"no server",
		"FAIL settle    postgres://u@127.0.0.1:1/shop: reach the database",
		"orders go on, and their changes stay in Redis",
	)
	if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	wants("no table of the shop", "FAIL settle    settle.orders_query: ", "nowhere")
}

func TestCheckOnline_ConnectsToTheWebhookAndSendsNothing(t *testing.T) {
	file := settleConfig(t, redistest.Start(t).Addr)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "key"), []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	requests := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	webhook := fmt.Sprintf("[settle.webhook]\nurl = %q\nkey_file = \"key\"\n[[route]]", receiver.URL+"/changes")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "[[route]]", webhook, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := command(t, "check", "--online", "--sku", "1001", file)
	for _, want := range []string{"sends every change to " + receiver.URL, "settle.webhook.url is http",
		"ok   settle    the webhook at " + receiver.Listener.Addr().String() + " takes connections"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	receiver.Close() // it waits for requests
	if requests != 0 {
		t.Errorf("the check has sent %d requests", requests)
	}
	out, _ = command(t, "check", "--online", "--sku", "1001", file)
	if want := "FAIL settle    the webhook cannot be reached; its changes stay in Redis"; !strings.Contains(out, want) {
		t.Errorf("%q is missing in\n%s", want, out)
	}
}

// Users and SKUs of any bytes are shown as printable ASCII, in every form.
func TestSettleReport_ShowsHostileTextHarmlessly(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	sku := "=\x1b[2J\x00\xff'\"`;--\u202e" + strings.Repeat("s", 200)
	oneOrderOf(t, server.Addr, sku, "@\x1b]0;x\a\x00\xff\n"+strings.Repeat("u", 1024))
	if out, err := command(t, "settle", "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	s := openDrained(t, file, sku)
	if s != nil {
		t.Fatal(s)
	}
	for _, args := range [][]string{{"status"}, {"report"}, {"report", "--csv"}, {"report", "--json"}, {"verify", sku}} {
		out, _ := command(t, append(append([]string{"settle"}, args...), "-c", file)...)
		if !strings.Contains(out, "ssss") {
			t.Errorf("%q does not show the SKU: %q", args, out)
		}
		for _, r := range out {
			if r != '\n' && (r < ' ' || r > '~') && args[len(args)-1] != "--json" || r == 0x1b {
				t.Fatalf("%q shows %U: %q", args, r, out)
			}
		}
	}
}

// openDrained settles one SKU.
func openDrained(t *testing.T, file, sku string) error {
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	s, err := settler.Open(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer s.Close()
	worker, err := s.Settler(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return worker.Drain(t.Context(), sku)
}

func TestSettleRetry_NeedsAConflictThatCanBeRetried(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	if out, err := command(t, "settle", "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	for id, want := range map[string]string{"x": "is not the number of a conflict", "7": "there is no conflict 7"} {
		if out, err := command(t, "settle", "retry", id, "-c", file); err == nil || !strings.Contains(out+err.Error(), want) {
			t.Errorf("retry %s: %q, %v", id, out, err)
		}
	}
}

func TestSettleReport_CSVHoldsNoFormula(t *testing.T) {
	var out strings.Builder
	found := []settleFinding{{"oversold", "1001", "=1+1", 1, "a\x00b\n"}}
	if err := writeFindings(&out, found); err != nil ||
		!strings.Contains(out.String(), `oversold,1001,'=1+1,1,"""a\x00b\n"""`) {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestSettleArchive_FreesASaleThatIsOver(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sale := "\n[[sale]]\nname = \"past\"\nskus = [\"1001\", \"1002\"]\nstarts = 2020-01-01T00:00:00Z\n" +
		"ends = 2020-01-02T00:00:00Z\n"
	if err := os.WriteFile(file, append(text, sale...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, "settle", "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	run := func(wants string, fails bool, args ...string) {
		t.Helper()
		out, err := command(t, append(args, "-c", file)...)
		if !strings.Contains(out, wants) || (err != nil) != fails {
			t.Errorf("%q: %q, %v; want %q", args, out, err, wants)
		}
	}
	oneOrder(t, server.Addr, "1001")
	run("equal; 2 records, 2 units sold, 2 booked", false, "settle", "rebuild", "1001") // it was never settled
	run("", true, "settle", "archive", "none")
	run("1002 has no ledger", true, "settle", "archive", "past") // 1001 is on
	run("ended", false, "stock", "end", "1001")
	run("released", false, "reservation", "release", "s2", "--sku", "1001")
	if err := openDrained(t, file, "1001"); err != nil {
		t.Fatal(err)
	}
	next := "\n[[sale]]\nname = \"next\"\nskus = [\"1001\"]\nstarts = 2199-01-01T00:00:00Z\nends = 2199-01-02T00:00:00Z\n"
	if err := os.WriteFile(file, append(append(text, sale...), next...), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	root := newRoot()
	root.SetErr(&said)
	root.SetArgs([]string{"settle", "archive", "past", "-c", file})
	if err := root.ExecuteContext(t.Context()); !errors.Is(err, errReported) ||
		!strings.Contains(said.String(), `the sale "next" sells it too, from 2199-01-01T00:00:00Z`) ||
		strings.Contains(said.String(), "stock end") {
		t.Errorf("with a sale to come: %v, %s", err, said.String())
	}
	if err := os.WriteFile(file, append(text, sale...), 0o600); err != nil {
		t.Fatal(err)
	}
	run("archived; 2 records freed, 2 units sold", false, "settle", "archive", "past")
	if n := server.Client.Exists(t.Context(), "sluice:{1001}:r", "sluice:{1001}:u").Val(); n != 0 {
		t.Errorf("%d keys of orders are left", n)
	}
	run("ended", false, "stock", "get", "1001")
}

// Two homes: a conflict's number needs its home, and a ledger that is marked with the other home is told.
func TestSettle_SeveralHomes(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	more := "\n[[settle.home]]\nname = \"east\"\ndatabase = \"sqlite:east.db\"\nskus = [\"2*\"]\n"
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	oneOrder(t, server.Addr, "1001")
	server.Client.HSet(t.Context(), "sluice:{1001}:s", "home", "0 east")
	if _, err := command(t, "settle", "migrate", "-c", file); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "settle", "retry", "1", "-c", file); err == nil || !strings.Contains(err.Error(), "--home") {
		t.Errorf("retry without a home: %v", err)
	}
	const wayOut = "sluice settle move 1001 --to main"
	if out, err := command(t, "settle", "status", "-c", file); err != nil || !strings.Contains(out, wayOut) {
		t.Errorf("status: %q, %v", out, err)
	}
	if out, _ := command(t, "check", "--online", "-c", file); !strings.Contains(out, wayOut) {
		t.Errorf("check --online: %q", out)
	}
}

// The ledger is gone, and its mark with it: the home that does not answer may have later orders.
func TestRecreate_AsksEveryHome(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "settle", "migrate", "-c", file); err != nil {
		t.Fatal(err)
	}
	more := "\n[[settle.home]]\nname = \"east\"\ndatabase = \"postgres://u@127.0.0.1:1/shop\"\nskus = [\"2*\"]\n"
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = command(t, "stock", "recreate", "1001", "--total", "10", "--adopt", "settle", "-c", file)
	if err == nil || !strings.Contains(err.Error(), "home east cannot tell") {
		t.Errorf("recreate: %v", err)
	}
}

// A SKU without a ledger may have been moved: a home that is not the one of the file may know it.
func TestStockSet_AsksEveryHome(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	more := "\n[[settle.home]]\nname = \"east\"\ndatabase = \"postgres://u@127.0.0.1:1/shop\"\nskus = [\"2*\"]\n"
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = command(t, "stock", "set", "1001", "10", "-c", file)
	if err == nil || !strings.Contains(err.Error(), "the settlement's database east cannot tell") {
		t.Errorf("stock set: %v", err)
	}
}
