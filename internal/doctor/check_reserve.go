package doctor

import (
	"fmt"
	"strings"

	"sluice/config"
)

// checkReserve tells what the settings of gate = "reserve" come to, and warns of units that would never be decided.
func (o *Report) checkReserve(c *config.Config) {
	r := c.Stock.Reserve
	person := "as many units as they ask for"
	if r.MaxPerUser > 0 {
		person = fmt.Sprintf("at most %d of a SKU", r.MaxPerUser)
	}
	o.Info("reserve", "a person buys %s; a unit is held for %s, then the resolver looks", person, r.ReservationTTL)
	if len(r.ConfirmOn) == 0 {
		o.Info("reserve", "no answer confirms an order: the shop does, by Sluice-Order: confirmed or the API")
	}
	warn := func(wrong bool, text string) {
		if wrong {
			o.Warn("reserve", "%s", text)
		}
	}
	warn(r.StatusURL == "", `stock.reserve.status_url is empty: an order whose answer was lost stays held until an `+
		`operator decides it (sluice reservation list --unknown); write where the shop tells of an order`)
	warn(r.StatusURL != "" && r.OnNotFound == "keep",
		`stock.reserve.on_not_found is "keep": what the shop does not know stays `+
			`held, since it could still arrive; docs/shop.md says how to fence it`)
	warn(r.OnNotFound == "release_after_ttl" && r.ReservationTTL <= c.LongestOrder(),
		fmt.Sprintf(`stock.reserve.on_not_found is "release_after_ttl", but reservation_ttl (%s) `+
			`is not longer than upstream.timeout, or the timeout of a route (%s), for which an order may last: what the shop `+
			`makes of it after that is sold twice`, r.ReservationTTL, c.LongestOrder()))
	warn(r.Secret == "",
		`stock.reserve.secret_file is empty: the shop cannot tell the gateway's orders from those that came around it; `+
			`write a file of at least 16 random bytes, which the shop knows, too`)
	warn(c.Mode == "observe", `mode is "observe": what would be rejected, a SKU without a ledger too, is forwarded to `+
		`the shop without a reservation; sell with mode = "enforce"`)
	if c.Stock.Source == "redis" && c.Server.StateDir == "" {
		o.Info("reserve", "server.state_dir is empty: when this gateway and Redis are killed within a minute, its SKUs wait "+
			"for an operator; with a folder on a local disk they open by themselves")
	}
	o.checkQueue(c)
	for i, r := range c.Routes {
		at := c.At(fmt.Sprintf("route[%d].user", i+1))
		switch {
		case r.Gate != "reserve":
		case r.User == "":
			o.Warn("reserve", "%s names no user: no user is limited to max_per_user, and without an Idempotency-Key a "+
				"repeated order is another order", at)
		case c.Stock.Reserve.MaxPerUser > 0 && !strings.Contains(r.User, "$jwt_") &&
			!strings.Contains(r.User, "$signed_"):
			o.Warn("reserve", "%s: a client can write any %s, so one person can order under many names; docs/security.md has "+
				"signed users", at, r.User)
		}
	}
}

// checkQueue warns where an order that waits may be forgotten, or wait for a person.
func (o *Report) checkQueue(c *config.Config) {
	if !c.Queues() {
		return
	}
	r := &c.Stock.Reserve
	o.Info("queue", "orders wait for at most %s; the shop has at most %d at once", c.Queue.DeliverWithin,
		c.Queue.MaxInFlight)
	units := 0
	for i := range c.Sales {
		for _, n := range c.Sales[i].Stock {
			units += n
		}
	}
	if units == 0 {
		units = 1000
	}
	o.Info("queue", "%d units take at most %s of Redis while their orders wait (units × queue.max_order)", units,
		config.Size(units)*c.Queue.MaxOrder)
	switch {
	case c.Stock.Source == "memory":
		o.Warn("queue", `stock.source is "memory": orders that wait, which were answered 202, are gone with this process; `+
			`write source = "redis"`)
	case c.Stock.Redis.WaitReplicas == 0:
		o.Warn("queue", "stock.redis.wait_replicas is 0: a 202 is no promise unless Redis writes each order to disk at once "+
			"(appendfsync always); write wait_replicas = 1 where there is a replica")
	}
	fenced := r.StatusURL != "" && (r.OnNotFound == "release_after_deadline" || r.OnNotFound == "cancel_then_release")
	if !fenced && c.Queue.Redeliver != "by_key" {
		o.Warn("queue", `an order whose answer was lost is never sent again, and waits for a person: write `+
			`stock.reserve.status_url and on_not_found = "release_after_deadline", or queue.redeliver = "by_key" where the `+
			`shop makes one order for each Idempotency-Key; docs/queue.md`)
	}
}
