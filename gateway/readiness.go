package gateway

import (
	"fmt"
	"strings"
	"time"

	"sluice/admin"
	"sluice/config"
)

// awayTooLong is how long Redis may be away before an instance that rejects orders without it is not ready.
const awayTooLong = 10 * time.Second

// allMissing is from how many readings on readyz says that none has found stock. One unknown SKU that is often asked
// for suffices.
const allMissing = 20

// Checks are the conditions of readiness.
func (g *Gateway) Checks() []admin.Check { return g.checks(g.running.Load()) }

func (g *Gateway) checks(c *config.Config) []admin.Check {
	checks := []admin.Check{
		{Name: "serving", Probe: func() (string, admin.Health) {
			if g.draining.Load() {
				return "draining", admin.Unready
			}
			return "not draining", admin.Healthy
		}},
		{Name: "upstream", Probe: g.upstreamCheck},
		{Name: "reload", Probe: g.controller.check},
	}
	if g.redis != nil {
		checks = append(checks, admin.Check{Name: "redis", Probe: g.redisCheck})
	}
	if g.redis != nil && len(g.redis.Replicas()) > 0 {
		checks = append(checks, admin.Check{Name: "replicas", Probe: g.replicaCheck})
	}
	if c.SharesRedis() {
		checks = append(checks, admin.Check{Name: "fleet", Probe: g.limits.CheckPart})
	}
	onClock := len(g.schedule.All()) > 0 || len(c.Rooms) > 0
	if onClock {
		checks = append(checks, admin.Check{Name: "sales", Probe: g.salesCheck})
	}
	if g.redis != nil && (onClock || c.UsesLedger()) {
		checks = append(checks, admin.Check{Name: "clock", Probe: g.clockCheck})
	}
	if o := g.Orders(); o != nil {
		if c.UsesLedger() { // it may be open for orders of before alone
			checks = append(checks, admin.Check{Name: "ledger", Probe: o.Check})
		}
		waiting := func() (string, admin.Health) { return g.queue.Load().Check(time.Now()) }
		checks = append(checks, admin.Check{Name: "queue", Probe: waiting})
	}
	return checks
}

// check tells whether the file is in force. That another one is, is never a reason to send clients elsewhere.
func (h *controller) check() (string, admin.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.reloaded.OK {
		return "the file was rejected, and the configuration before it runs on", admin.Degraded
	}
	return "the file is in force", admin.Healthy
}

func (g *Gateway) upstreamCheck() (string, admin.Health) {
	well, faults := 0, ""
	states := g.shop.Targets()
	for _, t := range states {
		if t.Healthy && !t.Ejected {
			well++
		}
		if t.Fault != "" {
			faults += "; " + t.Target + ": " + t.Fault
		}
	}
	health := admin.Healthy
	switch {
	case well == 0:
		health = admin.Unready
	case well < len(states):
		health = admin.Degraded
	}
	return fmt.Sprintf("%d of %d targets up%s", well, len(states), faults), health
}

func (g *Gateway) redisCheck() (string, admin.Health) {
	away, c := g.Stock.Away(g.now()), g.running.Load()
	switch n := g.Stock.Missing(); {
	case away == 0 && n >= allMissing && c.HasGate("check") && c.Stock.UnknownSKU != "allow":
		return fmt.Sprintf("reached, but %d readings found no stock key: write them, or correct stock.layout", n),
			admin.Degraded
	case away == 0:
		return "reached", admin.Healthy
	}
	onError := c.Stock.OnError
	consequence, health := "orders are rejected with 503", admin.Degraded
	switch {
	case !c.ReadsStock():
		consequence = "no route asks for stock, so orders are forwarded, but for those that a room must let in"
	case c.Mode == "observe":
		consequence = "in observe mode orders are forwarded"
	case onError == "allow":
		consequence = "check routes forward orders without knowing the stock"
	case away >= awayTooLong:
		health = admin.Unready
	}
	return fmt.Sprintf("cannot reach Redis for %s; %s (stock.on_error = %q); is Redis up, at an address in "+
		"stock.redis.addresses? sluice check --online says what is wrong", away.Round(100*time.Millisecond), consequence,
		onError), health
}

// replicaCheck tells how far the replicas are behind. One that is not read is a load on the master, and no more.
func (g *Gateway) replicaCheck() (string, admin.Health) {
	health, told := admin.Healthy, []string{}
	for _, r := range g.redis.Replicas() {
		text := fmt.Sprintf("%s is %s behind", r.Address, r.Staleness.Round(time.Millisecond))
		if !r.Read {
			health, text = admin.Degraded, r.Address+" "+r.Fault+"; the others, or the master, are read"
		}
		told = append(told, text)
	}
	return strings.Join(told, "; "), health
}

// salesCheck tells of the hours of ledgers and rooms and the status in the shop's keys where another instance has
// written others. These are never a reason to send shoppers elsewhere: all instances share them.
func (g *Gateway) salesCheck() (string, admin.Health) {
	if w := g.writer.Load(); w != nil {
		if other := w.OtherStatus(); other != "" {
			return other, admin.Degraded
		}
	}
	if o := g.Orders(); o != nil {
		if other := o.otherHours.Load(); other != nil && *other != "" {
			return *other, admin.Degraded
		}
	}
	if other := g.rooms.OtherHours(); other != "" {
		return other, admin.Degraded
	}
	return "the file is in force", admin.Healthy
}

// clocksDiffer is how far this machine's clock and Redis' may be apart before that is told: sluice check --online fails
// then, too. queue.grace is five times that by default.
const clocksDiffer = time.Second

// clockCheck compares this machine's clock with Redis': reservations end by this one, and sales begin by Redis'. It is
// never a reason to send shoppers elsewhere: all instances may have the same.
func (g *Gateway) clockCheck() (string, admin.Health) {
	exact := g.clockSkew()
	skew := exact.Round(time.Millisecond)
	_, wrong := g.schedule.Skew()
	switch {
	case exact == 0:
		return "not compared", admin.Healthy
	case wrong:
		return fmt.Sprintf("Redis' clock is %s ahead of this machine's, by more than 2s: no sale begins here; "+
			"let NTP set both", skew), admin.Degraded
	case skew.Abs() > clocksDiffer && g.running.Load().UsesLedger():
		return fmt.Sprintf("Redis' clock is %s ahead of this machine's: where this one is wrong, units may be sold "+
				"twice; let NTP (chrony, timedatectl set-ntp true) set both", skew),
			admin.Degraded
	}
	return fmt.Sprintf("Redis' clock is %s ahead of this machine's", skew), admin.Healthy
}

// clockSkew is by how much Redis' clock is ahead of this machine's: as the sales read it, or else the heartbeats of the
// fleet. 0 = Redis has not answered yet, or is in this process.
func (g *Gateway) clockSkew() time.Duration {
	if skew, _ := g.schedule.Skew(); skew != 0 {
		return skew
	}
	x := g.fleet.current()
	if x == nil || x.Share().Clock == 0 {
		return 0
	}
	return time.Duration(g.now()) + x.Share().Clock - time.Duration(time.Now().UnixNano())
}
