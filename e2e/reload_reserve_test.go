package e2e

import (
	"context"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/redistest"
)

// change is a configuration in which some words are others.
func (g *running) change(old, words string) string {
	g.t.Helper()
	text, err := os.ReadFile(g.file)
	if err != nil {
		g.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		g.t.Fatalf("%q is not in the configuration", old)
	}
	return strings.Replace(string(text), old, words, 1)
}

// standing is what the ledger of 1001 knows of a serial: its state, and more.
func standing(t *testing.T, r *redistest.Server, serial string) string {
	t.Helper()
	text, err := r.Client.HGet(context.Background(), "sluice:shop:{1001}:r", serial).Result()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// An order is settled by the ledger that it was taken from, though its route has become another meanwhile; and the
// control API speaks of the stock that the routes look at now.
func TestReload_RouteMayChangeItsGateWhileAnOrderIsUnderWay(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	arrived, over := make(chan struct{}), make(chan struct{})
	shop := open(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-over
	})
	g := reserves(t, r, 10, shop.setting(), unhurried)
	b := &buyer{user: "7", key: "k-1"}
	defer b.leave()
	answered := make(chan int)
	go func() {
		status, _ := b.buy(g.front)
		answered <- status
	}()
	<-arrived
	g.rewrite(g.change(`gate = "reserve"`, `gate = "check"`), true)
	g.logs(t, "sells from the shop's stock now")
	if now := standing(t, r, "k-1"); !strings.HasPrefix(now, "H") {
		t.Errorf("under way: %s", now)
	}
	close(over)
	if status := <-answered; status != 200 {
		t.Errorf("answered %d", status)
	}
	soon(t, "the order is confirmed", func() bool { return strings.HasPrefix(standing(t, r, "k-1"), "C") })
	if said := ok(t, "stock", "set", "--admin", g.admin, "1001", "3"); strings.TrimSpace(said) != "1001\t3" {
		t.Errorf("the shop's own stock is %q", said)
	}
	wants(t, ok(t, "reservation", "get", "--admin", g.admin, "k-1"), "sold")
	wants(t, ok(t, "stock", "get", "--admin", g.admin, "--kind", "ledger", "1001"), "1 sold")
}

// A supervisor that asks for a reload while the gate drains, or before it is ready, cuts off no order.
func TestReload_DoesNotEndADrain(t *testing.T) {
	t.Parallel()
	arrived, over := make(chan struct{}), make(chan struct{})
	shop := open(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-over
	})
	g := reserves(t, redistest.Start(t), 10, shop.setting(), unhurried)
	b := &buyer{user: "7", key: "k-1"}
	defer b.leave()
	answered := make(chan int)
	go func() {
		status, _ := b.buy(g.front)
		answered <- status
	}()
	<-arrived
	g.terminate()
	soon(t, "the gate drains", func() bool { return strings.Contains(g.log.String(), `"draining"`) })
	for range 3 {
		if err := g.process.Process.Signal(syscall.SIGHUP); err != nil {
			t.Error(err)
		}
	}
	close(over)
	if status := <-answered; status != 200 {
		t.Errorf("answered %d", status)
	}
	if code := g.stopped(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
