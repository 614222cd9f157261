package main

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"sluice/config"
	"sluice/stockgate/ledger"
)

const (
	keepReleased = 24 * time.Hour // longer than a sale, and than any message is late
)

// reserves tells whether any route takes units from the ledger.
func reserves(c *config.Config) bool { return hasGate(c, "reserve") && !drives(c) }

func hasGate(c *config.Config, gate string) bool {
	for _, r := range c.Routes {
		if r.Gate == gate {
			return true
		}
	}
	return false
}

// openLedger connects to the configured Redis, for our own keys.
func openLedger(c *config.Config, visitor bool, log *slog.Logger) (*ledger.Redis, error) {
	name, _ := os.Hostname() // a part of a name that is unique anyway
	way := linkOptions(c)
	if visitor {
		way.Log = slog.New(slog.DiscardHandler)
	}
	r, err := ledger.NewRedis(ledger.RedisOptions{
		Options: way, Prefix: c.Stock.Reserve.Apart, Events: c.Stock.Reserve.Events, Acknowledged: c.Stock.Reserve.EventsAcknowledged,
		Replicas: c.Stock.Redis.WaitReplicas, Visitor: visitor, Instance: visible(name), Log: log,
	})
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return r, nil
}

// visible is what of a host's name can begin the name of an instance.
func visible(name string) string {
	if len(name) > 64 || !ledger.ValidSerial([]byte(name)) || strings.Contains(name, "|") {
		return ""
	}
	return name
}

// ledgersOf is store as the API wants it. desk may be nil, and return nil as long as there is none.
func ledgersOf(c *config.Config, store ledger.Store, desk func() *ledger.Desk) ledgers {
	if desk == nil {
		desk = func() *ledger.Desk { return nil }
	}
	return ledgers{store: store, perUser: int64(c.Stock.Reserve.PerUser), keep: keepReleased, desk: desk}
}
