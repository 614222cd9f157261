package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
)

// A password is changed as it is everywhere: the user gets a second one, then the file is written anew, then the first
// one is taken away, and at last every connection is closed. No gate is restarted or told.
func TestRedisPassword_MayChangeDuringASale(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"check", "reserve"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			does := func(args ...any) {
				t.Helper()
				if err := r.Client.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			user := append([]any{"acl", "setuser", "sluice", "on", ">the first", "resetkeys"}, rights(t)...)
			does(append(user, "~*")...) // for check the shop's key too
			password := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(password, []byte("the first\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			redis := redisAt(r) + "\nstock.redis.username = \"sluice\"" +
				"\nstock.redis.password_file = " + strconv.Quote(password)
			var g *running
			if kind == "check" {
				r.Client.Set(t.Context(), key, 1_000_000, 0)
				g = gate(t, redis, open(t, nil).setting(), unlimited)
			} else {
				g = gate(t, redis, boundless, book(t, nil).setting(), reserveRoutes)
				ok(t, "stock", "set", "--config", g.file, "1001", "1000000")
			}
			var shopper atomic.Int64
			sells := func() bool {
				a := g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+fmt.Sprint(shopper.Add(1)))
				return a.status == 200
			}
			soon(t, "it sells", sells)

			does("acl", "setuser", "sluice", ">the second")
			put(t, password, "the second\n")
			does("acl", "setuser", "sluice", "<the first")
			if !sells() {
				t.Error("connections that were open did not sell on")
			}
			does("client", "kill", "user", "sluice")
			soon(t, "it sells over connections with the second password", sells)

			// The file was forgotten: it is named, and found as soon as it is right.
			does("acl", "setuser", "sluice", ">the third", "<the second")
			does("client", "kill", "user", "sluice")
			soon(t, "orders are rejected", func() bool {
				a := g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+fmt.Sprint(shopper.Add(1)))
				return a.status == 503 && a.reason == "stock_error"
			})
			put(t, password, "") // half written
			put(t, password, "the third\n")
			soon(t, "it sells again", sells)
		})
	}
}
