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
	if len(g.schedule.All()) > 0 || len(c.Rooms) > 0 {
		checks = append(checks, admin.Check{Name: "sales", Probe: g.salesCheck})
	}
	if o := g.Orders(); o != nil {
		if c.UsesLedger() { // it may be open for orders of before alone
			checks = append(checks, admin.Check{Name: "ledger", Probe: o.Check},
				admin.Check{Name: "clock", Probe: g.ledgerClockCheck})
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
	away := g.Stock.Away(g.now())
	if away == 0 {
		return "reached", admin.Healthy
	}
	c := g.running.Load()
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

// salesCheck tells of the clocks, and of the hours of ledgers and rooms and the status in the shop's keys where another
// instance has written others. These are never a reason to send shoppers elsewhere: all instances share them.
func (g *Gateway) salesCheck() (string, admin.Health) {
	detail, health := g.clockCheck()
	if w := g.writer.Load(); w != nil && health == admin.Healthy {
		if other := w.OtherStatus(); other != "" {
			return other, admin.Degraded
		}
	}
	if o := g.Orders(); o != nil && health == admin.Healthy {
		if other := o.otherHours.Load(); other != nil && *other != "" {
			return *other, admin.Degraded
		}
	}
	if other := g.rooms.OtherHours(); other != "" && health == admin.Healthy {
		return other, admin.Degraded
	}
	return detail, health
}

// clockCheck tells of the clocks. It is never a reason to send shoppers elsewhere: all instances may have the same.
func (g *Gateway) clockCheck() (string, admin.Health) {
	skew, wrong := g.schedule.Skew()
	if g.redis == nil || skew == 0 { // Redis has not answered yet
		return "sales begin and end by this machine's clock", admin.Healthy
	}
	if wrong {
		return fmt.Sprintf("Redis' clock is %s ahead of this machine's, by more than 2s: no sale begins here",
			skew.Round(time.Millisecond)), admin.Degraded
	}
	return fmt.Sprintf("Redis' clock is %s ahead of this machine's", skew.Round(time.Microsecond)), admin.Healthy
}

// clocksDiffer is how far this machine's clock and Redis' may be apart before that is told: sluice check --online fails
// then, too. queue.grace is five times that by default.
const clocksDiffer = time.Second

// ledgerClockCheck compares the clocks, by what heartbeats of the fleet hear: reservations end by this machine's clock.
func (g *Gateway) ledgerClockCheck() (string, admin.Health) {
	x := g.fleet.current()
	if x == nil || x.Share().Clock == 0 { // Redis has not answered yet, or is in this process
		return "not compared", admin.Healthy
	}
	skew := (time.Duration(g.now()) + x.Share().Clock - time.Duration(time.Now().UnixNano())).Round(time.Millisecond)
	if skew.Abs() > clocksDiffer {
		return fmt.Sprintf("Redis' clock is %s ahead of this machine's: where this one is wrong, reservations end too early "+
				"or too late, and units may be sold twice; let NTP (chrony, timedatectl set-ntp true) set both", skew),
			admin.Degraded
	}
	return fmt.Sprintf("Redis' clock is %s ahead of this machine's", skew), admin.Healthy
}
