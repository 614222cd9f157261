package config

import (
	"time"

	"sluice/config/report"
)

// Queue is how routes with delivery = "queue" hand orders over to the shop.
type Queue struct {
	MaxInFlight int `toml:"max_in_flight" unit:"orders"` // in the shop at once, of all instances: 1 to 10000
	// that begin, of all instances; 0 = no limit; at most 100000
	Rate int `toml:"rate" unit:"orders/s"`
	// of an order; 1 KiB to 256 KiB, at most server.max_body_size
	MaxBody       Size          `toml:"max_body"`
	DeliverWithin time.Duration `toml:"deliver_within"`           // 1 s to 24 h; see LongestAttempt
	Attempts      int           `toml:"attempts" unit:"attempts"` // 1 to 100; then a person decides
	Redeliver     string        `toml:"redeliver"`                // "by_status" or "by_key"
	Grace         time.Duration `toml:"grace"`                    // 0 to 1 min
	// 0 = orders are sent; else the longest lease: 1 s to 10 min
	Pull time.Duration `toml:"pull"`
}

func defaultQueue() Queue {
	return Queue{MaxInFlight: 32, MaxBody: 16 << 10, DeliverWithin: 10 * time.Minute, Attempts: 10,
		Redeliver: "by_status", Grace: 5 * time.Second}
}

// Deliveries are how a route's orders reach the shop.
var deliveries = []string{"direct", "queue"}

// Queues reports whether orders of any route wait.
func (c *Config) Queues() bool {
	for i := range c.Routes {
		if c.Routes[i].Delivery == "queue" {
			return true
		}
	}
	return false
}

// LongestAttempt is how long an attempt to deliver an order may last, until the shop can no longer make it.
func (c *Config) LongestAttempt() time.Duration { return 4*c.FirstAttempt() + c.Queue.Grace }

// FirstAttempt is how long the first attempt may last: the upstream's timeout, or the longest lease of a consumer.
func (c *Config) FirstAttempt() time.Duration {
	if c.Queue.Pull > 0 {
		return c.Queue.Pull
	}
	return c.Upstream.Timeout
}

func (c *Config) checkQueue(r *report.Report) {
	q := &c.Queue
	report.Between(r, "queue.max_in_flight", q.MaxInFlight, 1, 10_000)
	report.Between(r, "queue.rate", q.Rate, 0, 100_000)
	report.Between(r, "queue.max_body", q.MaxBody, 1<<10, 256<<10)
	report.Between(r, "queue.deliver_within", q.DeliverWithin, time.Second, 24*time.Hour)
	report.Between(r, "queue.attempts", q.Attempts, 1, 100)
	r.OneOf("queue.redeliver", q.Redeliver, "by_status", "by_key")
	report.Between(r, "queue.grace", q.Grace, 0, time.Minute)
	report.Between(r, "queue.pull", q.Pull, 0, 10*time.Minute)
	if q.Pull > 0 && q.Pull < time.Second {
		r.Fail("queue.pull", "%v is too short to make an order; write \"1s\" or more, or \"0s\" to send orders", q.Pull)
	}
	if !c.Queues() {
		return
	}
	report.AtMost(r, "queue.max_body", q.MaxBody, "server.max_body_size", c.Server.MaxBodySize)
	if need := q.DeliverWithin + c.LongestAttempt(); c.Stock.Reserve.ReservationTTL < need {
		r.Fail("queue.deliver_within", "an order may wait for %v, and its last attempt lasts up to 4 times "+
			"upstream.timeout (or queue.pull) "+
			"and the grace, but stock.reserve.reservation_ttl is %v; write reservation_ttl = %q or more, or a shorter "+
			"deliver_within",
			q.DeliverWithin, c.Stock.Reserve.ReservationTTL, need.String())
	}
	if c.Mode == "observe" {
		r.Fail("mode", "\"observe\" forwards what would be rejected, but a route has delivery = \"queue\", whose orders are "+
			"not forwarded; write delivery = \"direct\" while you observe")
	}
}

// checkDelivery finds what a route's delivery contradicts.
func (c *Config) checkDelivery(r *report.Report, t *Route, at string) {
	r.OneOf(at+".delivery", t.Delivery, deliveries...)
	if t.Delivery != "queue" {
		return
	}
	switch {
	case t.Gate != "reserve":
		r.Fail(at+".delivery", "\"queue\" needs a unit for each order that waits, but gate is %q; write gate = \"reserve\", "+
			"or delivery = \"direct\"", t.Gate)
	case c.Stock.Script.Used():
		r.Fail(at+".delivery", "\"queue\" keeps orders in the ledger, but [stock.script] takes the units; drop the script, "+
			"or "+
			"write delivery = \"direct\"")
	case t.MaxInFlight > 0:
		r.Fail(at+".max_in_flight", "orders of this route wait, and queue.max_in_flight bounds them; drop max_in_flight")
	}
}
