package config

import (
	"slices"
	"time"
)

// Queue is how routes with delivery = "queue" hand orders over to the shop.
type Queue struct {
	// in the shop at once, of all instances
	MaxInFlight int `toml:"max_in_flight" unit:"orders" range:"1 to 10000"`
	// that begin, of all instances; 0 = no limit
	Rate int `toml:"rate" unit:"orders/s" range:"0 to 100000"`
	// of a request that waits, with its head fields, as it is stored
	MaxOrder      Size          `toml:"max_order" range:"1KiB to 256KiB"`
	DeliverWithin time.Duration `toml:"deliver_within" range:"5s to 24h"` // a new process waits for 3 s
	Redeliver     string        `toml:"redeliver" words:"by_status by_key"`
	Grace         time.Duration `toml:"grace" range:"0s to 1m"`
	// 0 = orders are sent; else the longest lease, of 1 s or more
	Pull time.Duration `toml:"pull" range:"0s to 10m"`
}

func defaultQueue() Queue {
	return Queue{MaxInFlight: 32, MaxOrder: 16 << 10, DeliverWithin: 10 * time.Minute,
		Redeliver: "by_status", Grace: 5 * time.Second}
}

// Queues reports whether orders of any route wait.
func (c *Config) Queues() bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Delivery == "queue" })
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

func (c *Config) checkQueue(r *report) {
	q := &c.Queue
	if q.Pull > 0 && q.Pull < time.Second {
		r.Fail("queue.pull", "%v is too short to make an order; write \"1s\" or more, or \"0s\" to send orders", q.Pull)
	}
	if !c.Queues() {
		return
	}
	if need := q.DeliverWithin + c.LongestAttempt(); c.Stock.Reserve.ReservationTTL < need {
		r.Fail("queue.deliver_within", "an order may wait for %v, and its last attempt lasts up to 4 times "+
			"upstream.timeout (or queue.pull) "+
			"and the grace, but stock.reserve.reservation_ttl is %v; write reservation_ttl = %q or more, or a shorter "+
			"deliver_within",
			q.DeliverWithin, c.Stock.Reserve.ReservationTTL, need.String())
	}
	if len(c.Stock.Reserve.ConfirmOn) == 0 {
		r.Fail("stock.reserve.confirm_on", "is empty, so no answer confirms an order, and one that the shop has taken would "+
			"be delivered again, but a route has delivery = \"queue\"; write the statuses that confirm, like [\"2xx\"], or "+
			"delivery = \"direct\"")
	}
	if c.Mode == "observe" {
		r.Fail("mode", "\"observe\" forwards what would be rejected, but a route has delivery = \"queue\", whose orders are "+
			"not forwarded; write delivery = \"direct\" while you observe")
	}
}

// checkDelivery finds what a route's delivery contradicts.
func (c *Config) checkDelivery(r *report, t *Route, at string) {
	if t.Delivery != "queue" {
		return
	}
	switch {
	case t.Gate != "reserve":
		r.Fail(at+".delivery", "\"queue\" needs a unit for each order that waits, but gate is %q; write gate = \"reserve\", "+
			"or delivery = \"direct\"", t.Gate)
	case t.MaxInFlight > 0:
		r.Fail(at+".max_in_flight", "orders of this route wait, and queue.max_in_flight bounds them; drop max_in_flight")
	}
	if t.Timeout > 0 {
		r.Fail(at+".timeout", "orders of this route wait, and are delivered within upstream.timeout; drop timeout")
	}
}
