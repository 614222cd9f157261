package gateway

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/doctor"
	"sluice/stockgate/sale"
)

// Status implements admin.Gate.
func (g *Gateway) Status() admin.Status {
	h := g.controller
	h.mu.Lock()
	s := admin.Status{Version: g.version, Started: g.begun.UTC(), Now: g.schedule.Wall().UTC(), Config: h.filed.Version(),
		Mode: h.g.running.Load().Mode, Phase: "serving", Ready: true, Reload: h.reloaded}
	h.mu.Unlock()
	if g.draining.Load() {
		s.Phase = "draining"
	}
	for _, c := range g.Checks() {
		detail, health := c.Probe()
		one := admin.Probed{Name: c.Name, OK: health != admin.Unready, Degraded: health == admin.Degraded, Detail: detail}
		s.Checks = append(s.Checks, one)
		s.Ready, s.Degraded = s.Ready && one.OK, s.Degraded || health != admin.Healthy
	}
	return s
}

// Targets implements admin.Gate.
func (g *Gateway) Targets() []admin.Target {
	all := []admin.Target{}
	for _, t := range g.shop.Targets() {
		all = append(all, admin.Target{Target: t.Target, Up: t.Healthy && !t.Ejected, Healthy: t.Healthy, Ejected: t.Ejected,
			InFlight: t.InFlight, Open: t.Open, Idle: t.Idle, Fault: t.Fault})
	}
	return all
}

// Limits implements admin.Gate.
func (g *Gateway) Limits() []admin.Limit {
	h := g.controller
	h.mu.Lock()
	defer h.mu.Unlock()
	all := g.limits.Show(h.g.running.Load(), h.numberOf)
	for i := range all {
		all[i].ObserveOnly = all[i].ObserveOnly || h.g.running.Load().Mode == "observe"
	}
	return all
}

// numberOf is one number of a limit.
func (h *controller) numberOf(key string) admin.Number {
	n := admin.Number{Key: key, InForce: valueAt(h.g.running.Load(), key), Configured: valueAt(h.filed, key)}
	for _, o := range h.inForce() {
		if o.Key == key && (n.Override == "" || o.Scope == admin.ScopeInstance) {
			n.Override = o.ID
		}
	}
	return n
}

// Settings implements admin.Gate.
func (g *Gateway) Settings() admin.Settings {
	h := g.controller
	h.mu.Lock()
	defer h.mu.Unlock()
	origins := h.origins()
	s := admin.Settings{File: h.filed.Files()[0], Config: h.filed.Version()}
	for _, one := range h.g.running.Load().Settings() {
		set := admin.Setting{Setting: one, Live: ChangesOnReload(one.Key)}
		set.Origin = cmp.Or(origins[one.Key], one.Origin)
		s.Settings = append(s.Settings, set)
	}
	return s
}

// origins are those of keys whose value is not the file's.
func (h *controller) origins() map[string]string {
	origins := map[string]string{}
	if h.mode {
		origins["mode"] = "--mode"
	}
	for _, o := range h.inForce() {
		place := h.g.running.Load().Place(o.Key)
		if o.SKU == "" && (origins[place] == "" || o.Scope == admin.ScopeInstance) {
			origins[place] = "override " + o.ID
		}
	}
	return origins
}

// valueAt is a value that is there.
func valueAt(c *config.Config, key string) any {
	v, err := c.ValueOf(key)
	if err != nil {
		return nil // a rate that only the running configuration has
	}
	return v
}

// preflight is "sluice check --online" of the running gate, and how it stands itself.
func (g *Gateway) preflight(ctx context.Context) []admin.Finding {
	h := g.controller
	h.mu.Lock()
	c, mode, reloaded, overrides := h.filed, h.g.running.Load().Mode, h.reloaded, h.inForce()
	h.mu.Unlock()
	o := &doctor.Report{File: c.Files()[0], Brief: true}
	g.checkState(o, mode, overrides)
	checkReload(o, reloaded)
	g.checkSales(o)
	o.Examine(c)
	if err := o.Try(ctx, c); err != nil {
		o.Fail("redis", "%v", err)
	}
	if c.Stock.Source == "memory" && g.Orders() != nil {
		g.checkMemoryLedgers(ctx, o, c)
	}
	return o.Findings
}

// checkState is what only a running gate knows.
func (g *Gateway) checkState(o *doctor.Report, mode string, overrides []admin.Override) {
	for _, c := range g.Checks() {
		if c.Name == "reload" {
			continue // checkReload says more
		}
		switch detail, health := c.Probe(); health {
		case admin.Healthy:
			o.OK("gate", "%s: %s", c.Name, detail)
		case admin.Degraded:
			o.Warn("gate", "degraded: %s", c.Name+": "+detail)
		default:
			o.Fail("gate", "not ready: %s", c.Name+": "+detail)
		}
	}
	if mode == "observe" {
		o.Warn("mode", `observe: nothing is rejected, and every request is forwarded to the shop; set mode = "enforce" `+
			`before the sale`)
	} else {
		o.OK("mode", "enforce")
	}
	for _, one := range overrides {
		of := one.Key
		if of == "" {
			of = "SKU " + one.SKU
		}
		o.Warn("override", "%s is %v, not %v, until %s; undo it, or write it into the file", of, one.Value, one.Before,
			one.Until.Format(time.RFC3339))
	}
}

// checkReload tells whether the file is in force.
func checkReload(o *doctor.Report, reloaded admin.Reload) {
	if !reloaded.OK {
		o.Fail("reload", "%s; the configuration before it runs on: correct the file",
			(&admin.BadFile{Problems: reloaded.Problems}).Text())
		return
	}
	o.OK("reload", "the file of %s is in force", reloaded.At.Format(time.RFC3339))
}

// checkSales tells of the sales.
func (g *Gateway) checkSales(o *doctor.Report) {
	all := g.schedule.All()
	if len(all) == 0 {
		o.OK("sale", "none is configured: the gateway is always open")
	}
	for _, s := range all {
		count := "1 SKU"
		if len(s.SKUs) != 1 {
			count = fmt.Sprintf("%d SKUs", len(s.SKUs))
		}
		hours := fmt.Sprintf("%s, %s to %s, %s", s.Name, s.Starts.Format(time.RFC3339), s.Ends.Format(time.RFC3339), count)
		switch {
		case s.Doubt:
			o.Warn("sale", "%s: paused on this instance, since its clock and Redis' differ: set this machine's clock", hours)
			continue
		case s.State == sale.Paused || s.Shut:
			o.Warn("sale", "%s: paused; it does not begin before an operator resumes it: sluice sale resume %s", hours,
				doctor.Quoted(s.Name))
			continue
		}
		o.OK("sale", "%s: %s", hours, s.State)
	}
}

// checkMemoryLedgers looks at the ledgers of a trial.
func (g *Gateway) checkMemoryLedgers(ctx context.Context, o *doctor.Report, c *config.Config) {
	l := g.ledgers(c)
	named := c.SKUsOnSale()
	if len(named) == 0 {
		o.TryAnyLedger(ctx, c, l)
	}
	for _, sku := range named {
		o.TryLedger(ctx, c, l, sku)
	}
}
