package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/redistest"
)

// Redis is killed and loses the end of its AOF, with 20 orders that are settled. Where the gate lives on, or returns
// with its state folder, the SKU goes on without a hand. Where the gate is gone for good, the orders that the database
// alone knows are put back, and the SKU waits for an operator: that gate may have known of more.
func TestSettlement_LostTailIsToldByTheSettler(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"lives", "returns", "is gone"} {
		t.Run("the gate "+gate, func(t *testing.T) { losesTail(t, gate) })
	}
}

func losesTail(t *testing.T, gate string) {
	t.Parallel()
	redis, shop := redistest.Start(t, lasting...), open(t, nil)
	settings := []string{shop.setting(), keepsChanges, `stock.redis.timeout = "5s"`}
	if gate == "returns" {
		settings = append(settings, "server.state_dir = "+strconv.Quote(t.TempDir()))
	}
	g := reserves(t, redis, 100, settings...)
	s := settler(t, "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), redisAt(redis))
	buy := func(user int) int {
		b := &buyer{user: fmt.Sprint(user), sku: "1001"}
		defer b.leave()
		status, _ := b.buy(g.front)
		return status
	}
	settled := func(orders int) {
		t.Helper()
		soon(t, "orders are settled", func() bool {
			return strings.Contains(settle(t, "verify", "1001", "--config", s.file).out,
				fmt.Sprintf("equal; %d records, %d units sold", orders, orders))
		})
	}
	var end int64
	for user := range 40 {
		if user == 20 {
			settled(20) // which confirms them all
			end = redis.Written()
		}
		if status := buy(user); status != http.StatusOK {
			t.Fatalf("order %d: %d", user, status)
		}
	}
	settled(40)
	if gate != "lives" {
		g.die()
		_ = s.process.Process.Signal(syscall.SIGSTOP) // until what Redis has was seen
	}
	redis.Kill()
	redis.Cut(end)
	redis.Restart()
	if gate != "lives" {
		had := ledgerOf(t, redis, "1001").sold
		_ = s.process.Process.Signal(syscall.SIGCONT)
		if had != 20 {
			t.Fatalf("Redis has %d orders: want 20, else the test says nothing", had)
		}
		g = g.again(t)
	}
	soon(t, "Redis has every order again", func() bool { return ledgerOf(t, redis, "1001").sold == 40 })
	if gate == "is gone" {
		soon(t, "the SKU is frozen", func() bool { return fields(redis.Client, "1001")["state"] == "frozen" })
		ok(t, "stock", "recover", "1001", "--from", "none", "--apply", "--config", g.file)
	}
	soon(t, "the SKU goes on", func() bool { return buy(40) == http.StatusOK })
	settled(41)
}
