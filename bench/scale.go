package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/load"
	"sluice/internal/periodic"
)

// axis is one way in which a load grows: some curves, each through some points.
type axis struct {
	name, title string
	along       string // what grows
	per         string // what costs are given for
	steps       []step
}

func (a axis) label() string { return a.name }

// step is one point of a curve.
type step struct {
	curve string
	at    int
	rush
}

// rush is a crowd and the fleet that it meets: all that one point of a curve depends on.
type rush struct {
	what        request
	gate        string
	instances   int // of the gate
	connections int // of the crowd, spread over the instances
	underWay    int // requests at a time; -1 = none
	routes      int // that take orders, of which each request chooses one
	skus        int // of which each request chooses one
	units       int // of each SKU; 0 = as many as anybody asks for
	keys        int // users who look at pages, counted by a rate
	requests    int // in all; 0 = as many as fit into the time
}

func (l rush) withDefaults() rush {
	l.gate = cmp.Or(l.gate, "sluice")
	for _, n := range []*int{&l.instances, &l.routes, &l.skus} {
		*n = cmp.Or(*n, 1)
	}
	l.connections = cmp.Or(l.connections, 64)
	l.underWay, l.keys = cmp.Or(l.underWay, min(l.connections, 64)), cmp.Or(l.keys, 1000)
	return l
}

// request is what a crowd asks for.
type request int

const (
	aPage   request = iota // forwarded by a `pass` route
	tooMany                // rejected by a keyed rate
	soldOut                // an order for a SKU that is sold out
	anOrder                // one for a SKU on sale, each by another user
	aCheck                 // one for a SKU on sale by a `check` route
)

// axes are all of them. small keeps the first two points of each curve, as a trial does.
func axes(small bool) []axis {
	grow := func(curve string, numbers []int, of func(n int) rush) (steps []step) {
		if small {
			numbers = numbers[:2]
		}
		for _, n := range numbers {
			steps = append(steps, step{curve, n, of(n).withDefaults()})
		}
		return steps
	}
	connections := axis{name: "connections", title: "connections, of which 64 have a request under way",
		along: "connections"}
	for _, c := range []struct {
		gate, curve string
		what        request
	}{
		{"sluice", "Sluice, sold out", soldOut}, {"sluice", "Sluice, limited", tooMany},
		{"sluice", "Sluice, forwarded", aPage},
		{"bare", "bare fasthttp", tooMany}, {"naive", "naive fasthttp, forwarded", aPage},
		{"nginx", "nginx, sold out", soldOut}, {"nginx", "nginx, limited", tooMany}, {"nginx", "nginx, forwarded", aPage},
	} {
		connections.steps = append(connections.steps, grow(c.curve, []int{64, 1000, 10_000}, func(n int) rush {
			return rush{what: c.what, gate: c.gate, connections: n}
		})...)
	}
	sale := axis{name: "sale", title: "sales of one SKU to its last unit", along: "requests", per: "sale"}
	for _, c := range []struct {
		curve            string
		units, instances int
	}{{"1,000 units", 1000, 1}, {"1,000 units, 4 instances", 1000, 4}, {"10,000 units", 10_000, 1}} {
		sale.steps = append(sale.steps, grow(c.curve, []int{10_000, 40_000, 160_000}, func(n int) rush {
			return rush{what: anOrder, connections: 512, underWay: 512, requests: n, units: c.units, instances: c.instances}
		})...)
	}
	idle := axis{name: "idle", title: "SKUs on sale without requests", along: "SKUs", per: "second"}
	for _, c := range []struct {
		instances int
		skus      []int
	}{{1, []int{1, 100, 10_000}}, {4, []int{1, 100}}} {
		idle.steps = append(idle.steps, grow(strconv.Itoa(c.instances)+" instances", c.skus, func(n int) rush {
			return rush{underWay: -1, skus: n, instances: c.instances}
		})...)
	}
	counts := []int{1, 100, 10_000, 100_000}
	return []axis{connections,
		{name: "skus", title: "SKUs, chosen at random", along: "SKUs", steps: slices.Concat(
			grow("sold out", counts, func(n int) rush { return rush{what: soldOut, skus: n} }),
			grow("checked", counts[:3], func(n int) rush { return rush{what: aCheck, skus: n} }),
			grow("reserved", counts[:3], func(n int) rush { return rush{what: anOrder, skus: n} }),
			grow("nginx, sold out", counts, func(n int) rush { return rush{what: soldOut, skus: n, gate: "nginx"} }))},
		{name: "routes", title: "routes, chosen at random", along: "routes",
			steps: grow("sold out", []int{1, 10, 100}, func(n int) rush { return rush{what: soldOut, routes: n} })},
		{name: "keys", title: "keys of a rate", along: "keys",
			steps: grow("forwarded", []int{1000, 100_000, 1_000_000}, func(n int) rush { return rush{what: aPage, keys: n} })},
		{name: "batches", title: "orders under way", along: "orders under way",
			steps: grow("reserved", []int{8, 16, 32, 128, 512}, func(n int) rush {
				return rush{what: anOrder, connections: n, underWay: n}
			})}, sale, idle}
}

// axisGroup are the points of an axis.
func (f *field) axisGroup(a axis) group {
	g := group{name: a.name, title: a.title, along: a.along, per: cmp.Or(a.per, "request"), ratio: "of the first"}
	for _, st := range a.steps {
		if len(f.contenders([]string{st.gate}, st.what == soldOut)) == 0 {
			continue
		}
		g.trials = append(g.trials, trial{st.curve, st.at, st.gate, func(ctx context.Context) (sample, error) {
			return f.price(ctx, st.rush)
		}})
	}
	return g
}

// Time that is not measured, and the least that is.
const (
	settleIn   = 200 * time.Millisecond // of the load before it is measured
	perSKU     = time.Millisecond       // of each SKU beyond that, and instance: who has won it is read
	settleOut  = 150 * time.Millisecond // for what is settled after the answer
	idleSpan   = 2 * time.Second        // of an idle fleet: some of what it does it does once a second
	mostSpan   = 20 * time.Second       // of anything else
	mostRate   = 250_000                // requests a second, to reserve memory for
	beginnings = 10                     // how often a load may begin with wrong answers: connections are being opened, say
)

// price measures a load once, on fresh gates and a fresh stock.
func (f *field) price(ctx context.Context, l rush) (sample, error) {
	gates, err := f.assemble(ctx, l)
	defer gates.stop()
	if err != nil {
		return nil, err
	}
	if l.underWay < 0 {
		periodic.Pause(ctx, settleIn)
		return f.metered(ctx, gates, func() (asked, error) {
			periodic.Pause(ctx, idleSpan)
			return asked{took: idleSpan, per: idleSpan.Seconds()}, nil
		})
	}
	over := f.connect(l.connections, gates.fronts()...)
	defer over.Close()
	if err := over.Open(ctx); err != nil {
		return nil, err
	}
	if l.units > 0 { // a sale has no before
		return f.metered(ctx, gates, func() (asked, error) {
			a, err := f.rush(ctx, l, over, l.requests, mostSpan, false)
			a.per = 1
			periodic.Pause(ctx, settleOut)
			return a, err
		})
	}
	for try := range beginnings { // the gate meets every SKU, and gives the answers that it should
		if n := l.skus * l.instances; n > 1 && l.gate == "sluice" && (l.what == soldOut || l.what == aCheck) {
			_, _ = f.rush(ctx, l, over, n, mostSpan, true) // the answers may still be wrong
			periodic.Pause(ctx, min(time.Duration(n)*perSKU, mostSpan))
		}
		if _, err = f.rush(ctx, l, over, 0, settleIn, false); err == nil || ctx.Err() != nil {
			break
		}
		periodic.Pause(ctx, time.Duration(try+1)*settleOut)
	}
	if err != nil {
		return nil, err
	}
	return f.metered(ctx, gates, func() (asked, error) {
		a, err := f.rush(ctx, l, over, 0, f.span, false)
		periodic.Pause(ctx, settleOut)
		return a, err
	})
}

// rush has a crowd ask n times, or for so long as a span where n is 0. On a tour it asks for one SKU after another.
func (f *field) rush(ctx context.Context, l rush, over *load.Connections, n int, span time.Duration, tour bool) (asked,
	error) {
	if n == 0 {
		n = int(span.Seconds() * mostRate)
	}
	a, _, err := ask(ctx, load.Plan{Over: over, Busy: l.underWay, Arrivals: make([]time.Duration, n), GiveUpAfter: span,
		Request: l.request(f.run(), tour)}, func(status int) bool {
		switch l.what {
		case soldOut:
			return status == 409
		case tooMany:
			return status == 429
		case anOrder: // until the units are gone; 429: all are held, and some are not sold
			return status < 300 || l.units > 0 && (status == 409 || status == 429)
		}
		return status < 300
	})
	return a, err
}

// request writes requests; run is a word that no other crowd has, so that users differ.
func (l rush) request(run string, tour bool) func(dst []byte, n int) []byte {
	return func(dst []byte, n int) []byte {
		user, sku := "u"+strconv.Itoa(rand.IntN(l.keys)), rand.IntN(l.skus)
		if tour {
			sku = n % l.skus
		}
		switch l.what {
		case aPage:
			dst = append(dst, "GET /item/1001"...)
		case tooMany:
			dst = append(dst, "GET /limited"...)
		case soldOut:
			dst = fmt.Appendf(dst, "POST /order-%d/gone-%d/order", rand.IntN(l.routes), sku)
		case anOrder:
			dst = fmt.Appendf(dst, "POST /order-%d/open-%d/order", rand.IntN(l.routes), sku)
			user = run + "-" + strconv.Itoa(n)
		case aCheck:
			dst = fmt.Appendf(dst, "POST /check/open-%d/order", sku)
		}
		dst = append(append(dst, " HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: crowd\r\nAccept: application/json\r\n"+
			"Cookie: uid="...), user...)
		if l.what >= soldOut {
			dst = append(dst, "\r\nContent-Length: 0"...)
		}
		return append(dst, "\r\n\r\n"...)
	}
}

// fleet is the gates of one trial, all alike, before one shop and one Redis.
type fleet []*gate

func (gates fleet) stop() {
	for _, g := range gates {
		g.Stop()
	}
}

func (gates fleet) PIDs() (all []int) {
	for _, g := range gates {
		all = append(all, g.PIDs()...)
	}
	return all
}

func (gates fleet) fronts() (all []string) {
	for _, g := range gates {
		all = append(all, g.front)
	}
	return all
}

const fleetFile = "sluice/scale.toml"

// assemble starts the gates that a load wants, on the stock that it wants.
func (f *field) assemble(ctx context.Context, l rush) (gates fleet, err error) {
	if err := f.redis.stock(ctx, 0); err != nil {
		return nil, err
	}
	kinds := gateKinds()
	k := kinds[slices.Index(names(kinds), l.gate)]
	if l.gate != "sluice" {
		g, err := f.open(ctx, k, false)
		if err != nil {
			return nil, err
		}
		return fleet{g}, nil
	}
	for i := range l.instances {
		s, err := f.settings(false)
		if err != nil {
			return gates, err
		}
		s.Keys, s.Config = l.keys, filepath.Base(fleetFile)
		for i := range l.routes {
			s.Routes = append(s.Routes, i)
		}
		dir := filepath.Join(f.dir, fmt.Sprintf("gate-%d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return gates, err
		}
		k.files = []string{fleetFile}
		if err := k.render(dir, s); err != nil {
			return gates, err
		}
		if i == 0 {
			if err := f.furnish(ctx, l, filepath.Join(dir, filepath.Base(fleetFile))); err != nil {
				return gates, err
			}
		}
		g, err := f.launch(ctx, k, dir, s)
		if err != nil {
			return gates, err
		}
		gates = append(gates, g)
	}
	return gates, nil
}

// furnish puts up ledgers: one is made by sluice itself, and copied for each SKU, which a hundred thousand commands
// would take too long for.
func (f *field) furnish(ctx context.Context, l rush, file string) error {
	sku, units := "open", cmp.Or(l.units, plenty)
	if l.what == soldOut {
		sku, units = "gone", 0
	}
	if err := ledger(ctx, f.binary, file, sku, units); err != nil {
		return err
	}
	const atOnce = 5000
	for from := 0; from < l.skus; from += atOnce {
		pipe := f.redis.client.Pipeline()
		for i := from; i < min(l.skus, from+atOnce); i++ {
			name := fmt.Sprintf("%s-%d", sku, i)
			for _, part := range []string{"s", "q"} { // all that a ledger has before its first order
				pipe.Copy(ctx, "sluice:bench:{"+sku+"}:"+part, "sluice:bench:{"+name+"}:"+part, 0, true)
			}
			pipe.Copy(ctx, "stock:"+sku, "stock:"+name, 0, true)
			pipe.ZAdd(ctx, "sluice:bench:skus", redis.Z{Member: name})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("copy the ledger of %s: %w", sku, err)
		}
	}
	return nil
}
