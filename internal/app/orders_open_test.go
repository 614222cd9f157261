package app

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"sluice/internal/apitest"
	"sluice/internal/redistest"
)

// The ledger is opened beside everything else: what goes wrong there must not leave anybody waiting for it.
func TestGateThatCannotBeWiredDoesNotWaitForItsLedger(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	c := apitest.Reserving(mute.Addr().String())
	c.Stock.Redis.Topology = "single"
	c.Upstream.Targets = []string{"gopher://127.0.0.1:1"}
	if _, err := New(c, Options{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Errorf("err = %v", err)
	}
}

func TestGateOnARedisThatMayEvictIsNotWired(t *testing.T) {
	c := apitest.Reserving(redistest.Start(t, "--maxmemory-policy", "allkeys-lru").Addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:1"}
	if _, err := New(c, Options{}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "noeviction") {
		t.Errorf("err = %v", err)
	}
}
