package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/internal/load"
	"sluice/internal/periodic"
)

// scenario is one kind of request, and who can answer it.
type scenario struct {
	name       string
	title      string
	method     string
	path       string
	unique     bool     // each request comes from another user
	rejected   bool     // every answer is a rejection, but for the first few
	mixed      bool     // some are admitted and some rejected
	redis      bool     // Redis takes part, and is measured
	oneAPerson bool     // the gate sells one unit a person
	units      int      // of what is sold; 0 = as many as anybody asks for
	tells      string   // Sluice logs or traces meanwhile
	gates      []string // who can do this

	drive func(f *field, ctx context.Context, g *gate, n int) (asked, error) // nil = wrk
}

func (s scenario) label() string { return s.name }

// plenty is a stock that no run sells out.
const plenty = 1_000_000_000

// scenarios are all of them, in the order of the table and of a round.
func scenarios() []scenario {
	fronts, lua, alone := []string{"nginx", "haproxy", "sluice"}, []string{"nginx", "sluice"}, []string{"sluice"}
	limited := scenario{name: "limited", title: "429 by a rate of the client", method: "GET", path: "/limited",
		rejected: true, gates: []string{"nginx", "haproxy", "sluice", "decide", "bare"}}
	logged, traced := limited, limited
	logged.name, logged.title = "logged", "the same, and the sampled access log"
	traced.name, traced.title = "traced", "the same, and traces are on"
	logged.tells, logged.gates, traced.tells, traced.gates = "logged", alone, "traced", alone
	return []scenario{
		{name: "pass", title: "forwarded, no gate", method: "GET", path: "/item/1001",
			gates: []string{"nginx", "haproxy", "sluice", "decide", "naive"}},
		{name: "post", title: "what check forwards, no gate", method: "POST", path: "/plain/open/order", gates: alone},
		{name: "check", title: "admitted while there is stock", method: "POST", path: "/check/open/order", redis: true,
			gates: lua},
		limited, logged, traced,
		{name: "gone", title: "sold out", method: "POST", path: "/reserve/gone/order", rejected: true, redis: true,
			gates: []string{"nginx", "sluice", "decide", "bare"}},
		{name: "reserve", title: "a unit taken, forwarded, settled", method: "POST", path: "/reserve/open/order",
			unique: true, redis: true, gates: lua},
		{name: "reserve-once", title: "the same, one a person", method: "POST", path: "/reserve/open/order", unique: true,
			redis: true, oneAPerson: true, gates: lua},
		{name: "sale", title: "a crowd over 10,000 units, one a person", method: "POST", path: "/reserve/sale/order",
			unique: true, mixed: true, redis: true, oneAPerson: true, units: 10_000, gates: lua},
		{name: "latency", title: "forwarded, at a constant rate", gates: fronts, drive: (*field).steady},
		{name: "idle", title: "10,000 connections that have asked once", gates: append(fronts, "bare"),
			drive: (*field).throng},
	}
}

// scenarioGroup are the gates of a scenario, at each number of connections.
func (f *field) scenarioGroup(s scenario) group {
	g := group{name: s.name, title: s.title, along: "connections", per: "request", ratio: "of the best peer"}
	for i, n := range f.connections {
		if s.drive != nil && i > 0 {
			break
		}
		if s.name == "idle" {
			n = f.sized(10_000, 200)
		}
		for _, k := range f.contenders(s.gates, s.redis) {
			if k.bound() && i > 0 { // a bound is one at any number of connections
				continue
			}
			g.trials = append(g.trials, trial{k.title, n, k.name, func(ctx context.Context) (sample, error) {
				return f.play(ctx, k, s, n)
			}})
		}
	}
	return g
}

// sized is a number, or the one of a quick run.
func (f *field) sized(n, quick int) int {
	if f.quick {
		return quick
	}
	return n
}

// play measures one gate in one scenario, on a fresh process and a fresh stock.
func (f *field) play(ctx context.Context, k kind, s scenario, n int) (sample, error) {
	if err := f.redis.stock(ctx, s.units); err != nil {
		return nil, err
	}
	k.tells = s.tells
	g, err := f.open(ctx, k, s.oneAPerson)
	if err != nil {
		return nil, err
	}
	defer g.Stop()
	if (k.name == "sluice" || k.name == "decide") && s.redis {
		for sku, units := range map[string]int{"open": plenty, "gone": 0, "sale": s.units} {
			if err := ledger(ctx, f.binary, g.file, sku, units); err != nil {
				return nil, err
			}
		}
	}
	if s.drive != nil {
		return f.metered(ctx, fleet{g}, func() (asked, error) { return s.drive(f, ctx, g, n) })
	}
	if !s.mixed && !f.quick { // a sale is over when it has been warmed up
		if _, err := f.wrk(ctx, g, s, n, time.Second); err != nil {
			return nil, err
		}
	}
	return f.metered(ctx, fleet{g}, func() (asked, error) {
		b, err := f.wrk(ctx, g, s, n, f.span)
		if err == nil {
			err = b.is(s)
		}
		if s.redis {
			periodic.Pause(ctx, 200*time.Millisecond) // what is settled after the answer is part of the order
		}
		return asked{requests: b.requests, took: b.took, p50: b.p50.Seconds() * 1e3, p99: b.p99.Seconds() * 1e3}, err
	})
}

func plainRequest(dst []byte, _ int) []byte {
	return append(dst, "GET /item/1001 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: wrk\r\nAccept: "+
		"application/json\r\nCookie: uid=r1\r\n\r\n"...)
}

// constantRate is that of the latency, in requests a second.
const constantRate = 8000

// steady asks at a constant rate, whatever the answers take. (A closed loop asks less while the gate is slow, and so
// leaves out the very requests that would have waited.)
func (f *field) steady(ctx context.Context, g *gate, n int) (asked, error) {
	rate := f.sized(constantRate, 200)
	arrivals := make([]time.Duration, int(f.span.Seconds()*float64(rate)))
	for i := range arrivals {
		arrivals[i] = time.Duration(i) * time.Second / time.Duration(rate)
	}
	over := f.connect(n, g.front)
	defer over.Close()
	a, c, err := ask(ctx, load.Plan{Over: over, Arrivals: arrivals, Request: plainRequest, GiveUpAfter: 10 * time.Second},
		func(status int) bool { return status == 200 })
	if err == nil {
		felt := c.Felt.Times() // from when each was due, whether or not a connection was free
		a.p50, a.p99 = felt.P50, felt.P99
	}
	return a, err
}

// throng opens the connections, and asks once on each. They wait until the memory was read.
func (f *field) throng(ctx context.Context, g *gate, n int) (asked, error) {
	over := f.connect(n, g.front)
	a, _, err := ask(ctx, load.Plan{Over: over, Busy: 64, Arrivals: make([]time.Duration, n), Request: plainRequest,
		GiveUpAfter: time.Minute}, func(status int) bool { return status == 200 || status == 429 }) // bare rejects all
	if err != nil {
		over.Close()
		return a, err
	}
	periodic.Pause(ctx, 2*time.Second) // until all are quiet
	a.waiting, a.close = n, over.Close
	return a, nil
}

// ask has a crowd ask, once each.
func ask(ctx context.Context, p load.Plan, want func(status int) bool) (a asked, c *load.Crowd, err error) {
	p.Tries = 1
	if c, err = load.New(p); err != nil {
		return a, nil, err
	}
	begin := time.Now()
	c.Run(ctx, begin)
	n, times := c.Counts(), load.Together(c.Answers, c.Rejections).Times()
	a = asked{took: time.Since(begin), p50: times.P50, p99: times.P99}
	wrong := int(n.Broken)
	for status, count := range n.Status {
		a.requests += int(count)
		if !want(status) {
			wrong += int(count)
		}
	}
	if a.requests == 0 || wrong > a.requests/100+10 {
		err = fmt.Errorf("%d of %d answers are not those of the load: by status %v, %d broke off", wrong, a.requests,
			n.Status, n.Broken)
	}
	return a, c, err
}

// rival tells an alternative that one would use instead of Sluice; bare fasthttp is no gate.
func rival(gate string) bool { return slices.Contains([]string{"nginx", "haproxy"}, gate) }
