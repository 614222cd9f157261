package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/settler"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// settleConfig writes a configuration that settles into SQLite.
func settleConfig(t *testing.T, redis string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	text := fmt.Sprintf(`name = "shop"
upstream.targets = ["http://127.0.0.1:9"]
[stock]
source = "redis"
redis = { addresses = [%q], topology = "single", timeout = "5s" }
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

// openLedgers opens the ledgers of settleConfig until the test ends.
func openLedgers(t *testing.T, redis string) *ledger.Store {
	t.Helper()
	r, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: redisconn.Options{
		Addresses: []string{redis}, PoolSize: 2, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
	}, Events: 1000, Acknowledged: true, Visitor: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func oneOrderOf(t *testing.T, redis, sku, user string) {
	t.Helper()
	ctx, r := t.Context(), openLedgers(t, redis)
	now := time.Now().UnixMilli()
	items := []ledger.Item{{Serial: "=1+1", User: user, Quantity: 2}, {Serial: "s2", User: "bob", Quantity: 1}}
	_, err1 := r.SetTotal(ctx, sku, 10, 1)
	_, err2 := r.SetTotal(ctx, sku, 10, 2)
	_, err3 := r.Reserve(ctx, sku, 0, now, now+60_000, items, make([]ledger.Code, 2))
	_, err4 := r.Finish(ctx, sku, now, now+60_000, ledger.Confirm, items[:1], make([]ledger.Done, 1))
	_, err5 := r.SetTotal(ctx, sku, 10, 1) // now alice has more than one may have
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
}

// execSettled changes the database of settleConfig by hand.
func execSettled(t *testing.T, file string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(filepath.Dir(file), "settle.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range queries {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// editConfig replaces text of a configuration.
func editConfig(t *testing.T, file, old, now string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%q is not in the file, %v", old, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addToConfig puts text behind a configuration.
func addToConfig(t *testing.T, file, more string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(text, more...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// migrated writes a configuration whose database has its tables.
func migrated(t *testing.T, redis string) (file string) {
	t.Helper()
	file = settleConfig(t, redis)
	if out, err := command(t, "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	return file
}

// settled migrates, and books one order of alice and one reservation of bob.
func settled(t *testing.T, redis string) (file string) {
	t.Helper()
	file = migrated(t, redis)
	oneOrder(t, redis, "1001")
	settleDrain(t, file, "1001")
	return file
}

// settleDrain settles one SKU.
func settleDrain(t *testing.T, file, sku string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	homes, err := settler.OpenHomes(c, log)
	if err != nil {
		t.Fatal(err)
	}
	defer homes.Close()
	worker, err := homes[0].Settler(c, log)
	if err == nil {
		err = worker.Drain(t.Context(), sku)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// settleRun runs a settler until the test ends.
func settleRun(t *testing.T, file string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		root := newRoot()
		root.SetArgs([]string{"run", "-c", file})
		ended <- root.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// command runs a command line in this process, as main does, and returns what it prints.
func command(t *testing.T, words ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out strings.Builder
	root.SetOut(&out)
	root.SetArgs(words)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// eventually asks until a command's answer has want.
func eventually(t *testing.T, want string, args ...string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%q says %q", args, want), func() bool {
		out, err := command(t, args...)
		return err == nil && strings.Contains(strings.Join(strings.Fields(out), " "), want)
	})
}
