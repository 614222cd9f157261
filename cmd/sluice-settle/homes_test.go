package main

import (
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// addHome adds a second home, whose SKUs begin with 2.
func addHome(t *testing.T, file, database string) {
	t.Helper()
	addToConfig(t, file, "\n[[settle.home]]\nname = \"east\"\ndatabase = \""+database+"\"\nskus = [\"2*\"]\n")
}

// Two homes: a conflict's number needs its home, and a ledger that is marked with the other home is told.
func TestSettle_SeveralHomes(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	addHome(t, file, "sqlite:east.db")
	oneOrder(t, server.Addr, "1001")
	server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "home", "0 east")
	if _, err := command(t, "migrate", "-c", file); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "retry", "1", "-c", file); err == nil || !strings.Contains(err.Error(), "--home") {
		t.Errorf("retry without a home: %v", err)
	}
	const wayOut = "sluice-settle move 1001 --to main"
	if out, err := command(t, "status", "-c", file); err != nil || !strings.Contains(out, wayOut) {
		t.Errorf("status: %q, %v", out, err)
	}
	if out, _ := command(t, "check", "-c", file); !strings.Contains(out, wayOut) {
		t.Errorf("check: %q", out)
	}
}

// The ledger is gone, and its mark with it: the home that does not answer may have later orders.
func TestOrders_AsksEveryHome(t *testing.T) {
	server := redistest.Start(t)
	file := migrated(t, server.Addr)
	addHome(t, file, "postgres://u@127.0.0.1:1/shop")
	_, err := command(t, "orders", "1001", "-c", file)
	if err == nil || !strings.Contains(err.Error(), "home east cannot tell") {
		t.Errorf("orders: %v", err)
	}
}

// A SKU without a ledger may have been moved: a home that is not the one of the file may know it.
func TestCheckNew_AsksEveryHome(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	addHome(t, file, "postgres://u@127.0.0.1:1/shop")
	_, err := command(t, "check-new", "1001", "-c", file)
	if err == nil || !strings.Contains(err.Error(), "the settlement's database east cannot tell") {
		t.Errorf("check-new: %v", err)
	}
}
