package main

import (
	"fmt"
	"math"
	"strings"
)

// What a load costs, as a sum: so much for each of a few things, of which it has so many. The numbers of things follow
// from the load alone, so that a load can be priced that nobody has measured.

// term is one thing that costs.
type term struct {
	name string
	what string // for the table
	of   func(g given) float64
}

// law is a sum of terms, with what each costs.
type law struct {
	name     string
	least    float64 // what a measurement may be off, however little there was to measure
	measured func(cost) float64
	level    float64 // of the rounds, as a quantile: what disturbs a measurement takes time, and never calls
	terms    []term
	price    []float64 // of each term
}

// given is what a law is asked about: a load, and how much of it.
type given struct {
	load
	requests, seconds float64
	batching
}

// batching is how orders share their calls.
type batching struct {
	perBatch slope   // orders in a batch, by orders under way
	longer   float64 // for how many times as long as a refusal an order is under way
}

// slope is a straight line.
type slope struct{ rise, start float64 }

func (l slope) at(x float64) float64 { return l.start + l.rise*x }

// refused are those that the gate answers itself, with what came too late for the last unit.
func (g given) refused() float64 {
	return g.requests*g.refusedPart() + g.requests*float64(g.OrderPart)/100 - g.orders()
}

func (g given) pages() float64 { return g.requests * float64(g.PagePart) / 100 }

// orders are those that get a unit.
func (g given) orders() float64 {
	n := g.requests * float64(g.OrderPart) / 100
	if g.Units > 0 {
		n = min(n, float64(g.Units*g.Open))
	}
	return n
}

// batches are the calls by which orders reach Redis. Each ledger of each instance carries its own.
func (g given) batches() float64 {
	n := min(max(g.perBatch.at(g.ordersUnderWay()), 0.5), mostInBatch)
	return g.orders() / n
}

const mostInBatch = 256 // as stockgate/ledger has it

// trips are the round trips that carry those calls: an instance has two under way, and what comes meanwhile shares the next.
func (g given) trips() float64 {
	busy := float64(g.Open) * min(g.ordersUnderWay(), 1)
	return g.batches() / max(busy/busyATrip, 1)
}

// busyATrip is how many SKUs have an order under way for each call that shares a trip: with 64 of them some ten do, since most of the time
// an order is at the shop.
const busyATrip = 6

// ordersUnderWay are those of one SKU in one instance. A page is under way for a time between an order's and a refusal's.
func (g given) ordersUnderWay() float64 {
	order, page, refused := g.longer*float64(g.OrderPart), (1+g.longer)/2*float64(g.PagePart), 100*g.refusedPart()
	return float64(g.Underway) * order / max(order+page+refused, 1) / float64(g.Open*g.Instances)
}

// lookedAfter is how many ledgers all instances look at: some for overdue holds, some for the audit; all in turn.
func (g given) lookedAfter() float64 {
	skus := float64(g.Gone+g.Open) + templates
	if g.Underway == 0 {
		skus = min(skus, mostWatch)
	}
	sweeps := min(skus, max(100, skus/20))
	return float64(g.Instances) * (sweeps + min(skus, 200)) * g.seconds
}

// probed are looks at SKUs that are sold out: of each once a second by each instance, and of all as many as have room.
func (g given) probed() float64 {
	asked := g.requests * float64(g.GonePart) / 100
	return min(asked, float64(min(g.Gone, mostProbes)*g.Instances)*g.seconds)
}

// glances are the round trips that carry those looks: what comes within a moment of one joins the next.
func (g given) glances() float64 {
	return g.probed() / (1 + gathers*g.probed()/max(g.alive(), gathers))
}

// As fleet.furnish, stockgate/ledger and cmd/sluice have them.
const (
	templates  = 2      // SKUs beside those of the load
	mostProbes = 500    // a second
	gathers    = 0.01   // seconds from one glance to the next
	mostWatch  = 10_000 // SKUs that are looked after although nobody asks for them

	mostPages    = 25  // of the audit, a second
	ordersInPage = 100 // 256 entries, of which an order has a record, a place among its user's, and more
	looksInPage  = 6   // in time of Redis, by its slow log
	ofTheAlive   = 3   // calls a second: the heartbeat, and pings of two connections
)

// audited are pages of ledgers with orders: every instance counts all of them again, at most so many pages a second.
func (g given) audited() float64 {
	return g.alive() * min(g.orders()/ordersInPage, mostPages)
}

func (g given) alive() float64 { return float64(g.Instances) * g.seconds }

// others are the instances that one of them shares the machine of the benchmark with.
func (g given) others() float64 { return float64(g.Instances - 1) }

// tried is how many patterns were compared: a request meets the routes in their order.
func (g given) tried() float64 {
	ordered := float64(g.GonePart+g.OrderPart) / 100
	return g.requests * (ordered*float64(g.Routes-1)/2 + (1-ordered)*float64(g.Routes-1))
}

func (g given) doublings(of, from float64) float64 { return math.Log2(max(of/from, 1)) }

// gateLaw is the processor time of all instances, in µs.
func gateLaw() law {
	return law{name: "gates", least: 5000, level: calm, measured: func(c cost) float64 { return c.Gates }, terms: []term{
		{"refused", "a refusal", given.refused},
		{"page", "a page that is forwarded", given.pages},
		{"order", "an order: forwarded, its unit taken and settled", given.orders},
		{"batch", "a call to Redis that carries orders", given.batches},
		{"trip", "a round trip of such calls", given.trips},
		{"probe", "a look at a SKU that is sold out", given.probed},
		{"route", "a route that is compared in vain", given.tried},
		{"idle", "each doubling of the connections beyond 64, a refusal", func(g given) float64 {
			return g.refused() * g.doublings(float64(g.Connections), 64)
		}},
		{"waiting", "each doubling of the connections beyond 64, what is forwarded", func(g given) float64 {
			return (g.pages() + g.orders()) * g.doublings(float64(g.Connections), 64)
		}},
		{"skus", "each doubling of the SKUs that are sold out, a refusal", func(g given) float64 {
			return g.refused() * g.doublings(float64(g.Gone), 1)
		}},
		{"keys", "each doubling of a rate's keys beyond 1,000, a page", func(g given) float64 {
			return g.pages() * g.doublings(float64(g.Keys), 1000)
		}},
		{"beside", "another instance on the same cores, a refusal", func(g given) float64 { return g.refused() * g.others() }},
		{"among", "another instance on the same cores, what is forwarded", func(g given) float64 {
			return (g.pages() + g.orders()) * g.others()
		}},
		{"alive", "a second of an instance", given.alive},
		{"ledger", "a look after a ledger", given.lookedAfter},
	}}
}

// redisLaw is the processor time of Redis, in µs.
func redisLaw() law {
	return law{name: "redis", least: 10_000, level: calm, measured: func(c cost) float64 { return c.Redis }, terms: []term{
		{"batch", "a call that carries orders", given.batches},
		{"trip", "a round trip of such calls", given.trips},
		{"cold", "the same among refusals, which leave nothing of it in a cache", func(g given) float64 {
			return g.batches() * g.refusedPart()
		}},
		{"order", "an order: its unit taken and settled, its change in the stream", given.orders},
		{"reading", "the benchmark's own look at the counters, once", func(given) float64 { return 1 }},
		{"probe", "a look at a SKU that is sold out", given.probed},
		{"glance", "a round trip that carries such looks", given.glances},
		{"alive", "a second of an instance", given.alive},
		{"ledger", "a look after a ledger; to count a page of its orders is six", func(g given) float64 {
			return g.lookedAfter() + looksInPage*g.audited()
		}},
	}}
}

// callLaw is how often Redis is called. Nothing has to be fitted: what each thing is is known.
func callLaw() law {
	return law{name: "calls", level: 0.5, measured: func(c cost) float64 { return c.Calls }, price: []float64{1, 1, ofTheAlive, 1, 1}, terms: []term{
		{"batch", "a call that carries orders", given.batches},
		{"probe", "a look at a SKU that is sold out", given.probed},
		{"alive", "a second of an instance: its heartbeat and two pings", given.alive},
		{"ledger", "a look after a ledger", given.lookedAfter},
		{"audit", "a page of a ledger's orders that is counted", given.audited},
	}}
}

// calm is what rounds are taken as that nobody disturbed.
const calm = 0.25

// observed is one point as a law sees it.
type observed struct {
	given
	value float64
}

// fit finds the prices, none below zero, that are least wrong in proportion to what was measured: by turns each price
// is set to its best while the others stand.
func (l *law) fit(points []observed) {
	if l.price != nil {
		return
	}
	l.price = make([]float64, len(l.terms))
	features, wanted := make([][]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		wanted[i] = p.value / (p.value + l.least)
		for _, t := range l.terms {
			features[i] = append(features[i], t.of(p.given)/(p.value+l.least))
		}
	}
	for range 20_000 {
		for k := range l.terms {
			up, down := 0.0, 0.0
			for i, f := range features {
				rest := wanted[i]
				for j, price := range l.price {
					if j != k {
						rest -= price * f[j]
					}
				}
				up, down = up+rest*f[k], down+f[k]*f[k]
			}
			if down > 0 {
				l.price[k] = max(up/down, 0)
			}
		}
	}
}

func (l *law) predict(g given) (sum float64) {
	for k, t := range l.terms {
		sum += l.price[k] * t.of(g)
	}
	return sum
}

// formula is the law with its numbers.
func (l *law) formula() string {
	var parts []string
	for k, t := range l.terms {
		if l.price[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s·%s", number(l.price[k]), t.name))
		}
	}
	return l.name + " = " + strings.Join(parts, " + ")
}

// aside are the calls that carry no orders.
func (g given) aside() float64 {
	return g.probed() + ofTheAlive*g.alive() + g.lookedAfter() + g.audited()
}

// straight fits a line through points, least wrong in proportion to y.
func straight(xs, ys []float64) slope {
	var w, x, y, xx, xy float64
	for i := range xs {
		weight := 1 / (ys[i] * ys[i])
		w, x, y = w+weight, x+weight*xs[i], y+weight*ys[i]
		xx, xy = xx+weight*xs[i]*xs[i], xy+weight*xs[i]*ys[i]
	}
	rise := (w*xy - x*y) / (w*xx - x*x)
	return slope{rise, (y - rise*x) / w}
}
