package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sluice/admin"
	"sluice/config"
)

// preflight is "sluice check --online" of the running gate, and how it stands itself.
func (g *gate) preflight(ctx context.Context) (found []admin.Finding) {
	h := g.helm
	h.mu.Lock()
	c, mode, reloaded, overrides := h.filed, h.running.Mode, h.reloaded, h.overrides
	h.mu.Unlock()
	o := &online{out: io.Discard, file: c.Files()[0], together: true}
	g.tellStanding(o, mode, reloaded, overrides)
	g.tellSchedule(o)
	if err := o.try(ctx, c, nil); err != nil {
		o.fail("redis", "%v", err)
	}
	if c.Stock.Source == "memory" && g.orders != nil {
		g.tellMemory(ctx, o, c)
	}
	for _, f := range o.found {
		found = append(found, admin.Finding(f))
	}
	return found
}

// tellStanding is what only a running gate knows.
func (g *gate) tellStanding(o *online, mode string, reloaded admin.Reload, overrides []admin.Override) {
	for _, c := range g.probes {
		if detail, ok := c.Probe(); ok {
			o.ok("gate", "%s: %s", c.Name, detail)
		} else {
			o.fail("gate", "not ready: %s: %s", c.Name, detail)
		}
	}
	if mode == "observe" {
		o.warn("mode", `observe: nothing is refused, and the whole crowd goes on to the shop; set mode = "enforce" before the sale`)
	} else {
		o.ok("mode", "enforce")
	}
	if reloaded.OK {
		o.ok("reload", "the file of %s is in force", reloaded.At.Format(time.RFC3339))
	} else {
		o.fail("reload", "%s; the configuration before it runs on: correct the file", (&admin.BadFile{Problems: reloaded.Problems}).Text())
	}
	for _, one := range overrides {
		of := one.Key
		if of == "" {
			of = "SKU " + one.SKU
		}
		o.warn("override", "%s is %v, not %v, until %s; undo it, or write it into the file", of, one.Value, one.Before, one.Until.Format(time.RFC3339))
	}
}

// tellSchedule tells of the sales.
func (g *gate) tellSchedule(o *online) {
	all := g.sales().All()
	if len(all) == 0 {
		o.ok("sale", "none is configured: the gate is always open")
	}
	for _, s := range all {
		hours := fmt.Sprintf("%s, %s to %s, %d SKUs", s.Name, s.Starts.Format(time.RFC3339), s.Ends.Format(time.RFC3339), len(s.SKUs))
		if s.State == "paused" {
			o.warn("sale", "%s: paused; it does not begin before somebody resumes it: sluice sale resume %s", hours, quoted(s.Name))
			continue
		}
		o.ok("sale", "%s: %s", hours, s.State)
	}
}

// tellMemory looks at the ledgers of a trial.
func (g *gate) tellMemory(ctx context.Context, o *online, c *config.Config) {
	l := ledgersOf(g.config, g.orders.store, g.orders.desk.Load)
	named := onSale(c)
	if len(named) == 0 {
		o.tryAnyLedger(ctx, c, l)
	}
	for _, sku := range named {
		o.tryLedger(ctx, c, l, sku)
	}
}
