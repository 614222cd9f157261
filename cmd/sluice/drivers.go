package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"sluice/config"
	"sluice/stockgate/driver"
)

// drives tells whether routes that reserve take units by the shop's own kind of script, and not from the ledger.
func drives(c *config.Config) bool { return hasGate(c, "reserve") && c.Stock.Layout.Driver != "" }

// openDriver makes the desk of a driver, and says at once what the ledger would keep and it cannot.
func openDriver(c *config.Config, now func() int64, log *slog.Logger) (*driver.Desk, error) {
	d, err := driver.New(driverOptions(c, now, log))
	if err != nil {
		return nil, c.Errorf("stock.layout.driver", "%v", err)
	}
	if err := d.Fit(context.Background()); errors.Is(err, driver.ErrApart) { // a Redis that is away is waited for
		d.Close(context.Background())
		return nil, c.Errorf("stock.layout.driver", "%v", err)
	}
	log.Warn("orders are reserved by the shop's own kind of script: " + shortcomings(c) + "; see docs/drivers.md")
	return d, nil
}

func driverOptions(c *config.Config, now func() int64, log *slog.Logger) driver.Options {
	return driver.Options{
		Layout: driverLayout(c), Link: linkOptions(c), Cluster: clustered(c),
		Hold: c.Stock.Reserve.Hold, SoldOutMemory: c.Stock.SoldOutMemory, Now: now, Log: log,
	}
}

// tryDriver finds out whether the keys of a driver lie together on what Redis turns out to be.
func (o *online) tryDriver(ctx context.Context, c *config.Config) {
	quiet := driverOptions(c, nil, slog.New(slog.DiscardHandler))
	quiet.Link = quietly(quiet.Link)
	d, err := driver.New(quiet)
	if err != nil {
		o.fail("driver", "%v", err)
		return
	}
	defer d.Close(ctx)
	if err := d.Fit(ctx); err != nil {
		o.fail("driver", "%v", err)
		return
	}
	o.ok("driver", "the keys of %s lie where it needs them", c.Stock.Layout.Driver)
}

func clustered(c *config.Config) bool { return c.Stock.Redis.Topology == "cluster" }

func driverLayout(c *config.Config) driver.Layout {
	l := c.Stock.Layout
	return driver.Layout{
		Driver: l.Driver, Prefix: l.Prefix, Key: l.Key,
		TotalField: l.TotalField, SoldField: l.SoldField, LeftField: l.LeftField, StatusField: l.StatusField, StatusOpen: l.StatusOpen,
		UsersKey: l.UsersKey, OrdersKey: l.OrdersKey, ParentKey: l.ParentKey, LockKey: l.LockKey, MarkKey: l.MarkKey, MarkTTL: l.MarkTTL,
	}
}

// drivable is the rule that the keys of a driver can be understood, and lie together where they must.
func drivable(c *config.Config) []error {
	if c.Stock.Layout.Driver == "" {
		return nil
	}
	if err := driverLayout(c).Check(clustered(c)); err != nil {
		return []error{c.Errorf("stock.layout.driver", "%v", err)}
	}
	return nil
}

// shortcomings says which promises of the ledger a driver cannot keep.
func shortcomings(c *config.Config) string {
	name := c.Stock.Layout.Driver
	text := "driver " + name
	for _, p := range driver.Promises() {
		if p.Driver == name {
			text = fmt.Sprintf("driver %q: oversell %s, undersell %s, double buying %s, repeatable %s, give-back twice %s; per_user bounds one order, not a person",
				name, p.Oversell, p.Undersell, p.DoubleBuying, p.Repeatable, p.GiveBackTwice)
		}
	}
	return text
}

// reckonDriver tells what a driver comes to.
func reckonDriver(w io.Writer, c *config.Config) {
	fmt.Fprintf(w, "reserve   by the shop's own kind of script; an order whose end is unknown keeps its units for ever\n")
	fmt.Fprintf(w, "warning   %s; docs/drivers.md says what that means, and how to come to the ledger\n", shortcomings(c))
}

// closeDriver gives back what is owed and ends the desk.
func (g *gate) closeDriver() {
	if g.driver == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleLast)
	defer cancel()
	g.driver.Close(ctx)
}
