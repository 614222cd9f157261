package proxy

import (
	"slices"
	"strings"

	"sluice/proxy/keyed"
	"sluice/proxy/limitkey"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// check is one row of a table of checks. A new limit is a field of Limiters, a row, and its function; a reason in
// package reject; its keys in package config; and a row in internal/app/limits. docs/adding-a-limit.md adds one.
type check struct {
	name    string          // as explain and the docs call it
	config  string          // where it is configured
	reasons []reject.Reason // for which it may reject; that of its own limit comes first

	// mayBlock says that it may wait for something. What it reads from its own client does not count.
	mayBlock bool
	atOnce   func(p *Proxy, r *Request) (no rejection, decided bool) // what can be decided without a wait; nil = nothing
	only     orders                                                  // 0 = both
	applies  func(p *Proxy, rt *boundRoute) bool                     // nil = always; a row that does not apply is left out
	due      func(r *Request) bool                                   // nil = for each request of the route
	run      func(p *Proxy, r *Request) rejection
}

// Limiters are what the rows ask.
type Limiters struct {
	ConnRate    func() ConnRateLimiter // for a new connection; nil = connections have no request rate of their own
	Rates       []keyed.Rate
	InFlight    []keyed.InFlight
	Windows     WindowLimiter
	Concurrency ConcurrencyLimiter
	Priority    limitkey.Priority // in the queue of Concurrency
}

// ask runs the check. The event loop is released before one that has to wait.
func (c *check) ask(p *Proxy, r *Request) rejection {
	if c.atOnce != nil {
		if no, decided := c.atOnce(p, r); decided {
			return no
		}
	}
	if c.mayBlock {
		r.conn.StepAside()
	}
	return c.run(p, r)
}

// orders are those that a check is for: those that are forwarded at once, or those that wait until they are delivered.
// The queue keeps to what the upstream has at once, and is never longer than the stock.
type orders byte

const (
	direct orders = iota + 1
	waiting
)

// reasons is a list of reasons, as a row of the table shows it.
func reasons(list ...reject.Reason) []reject.Reason { return list }

// The rows. Cheap checks come first; of two that cost the same the final one. A buyer who already has a unit never
// hears "sold out": the reservation is looked up before the schedule.
var (
	denyList = check{name: "deny list", config: "limits.deny", reasons: reasons(reject.DeniedIP),
		applies: func(p *Proxy, _ *boundRoute) bool { return p.deny.Used || p.bypass.Used }, run: (*Proxy).checkDenyList}
	unmatched = check{name: "route", config: "route",
		reasons: reasons(reject.NoRoute, reject.Ambiguous, reject.Loop),
		run:     func(_ *Proxy, r *Request) rejection { return r.unmatched }}
	connRate = check{name: "request rate of the connection", config: "limits.connection.request_rate",
		reasons: reasons(reject.ConnRate), run: (*Proxy).checkConnRate}
	identity = check{name: "identity", config: "route.sku, route.user, route.quantity",
		reasons: reasons(reject.BadRequest, reject.Ambiguous, reject.Unidentified, reject.TooLarge, reject.TooSlow,
			reject.Overloaded, reject.Concurrency, reject.Malformed),
		applies: func(_ *Proxy, rt *boundRoute) bool { return rt.limited() }, run: (*Proxy).checkIdentity}
	requirement = check{name: "conditions", config: "route.require",
		reasons: reasons(reject.Denied, reject.Unidentified, reject.Ambiguous, reject.BadRequest),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.require) > 0 }, run: (*Proxy).checkRequirement}
	earlierOrder = check{name: "earlier order", config: "stock.reserve",
		reasons: reasons(reject.SoldOut, reject.Undecided, reject.Confirmed, reject.Duplicate, reject.InProgress,
			reject.KeyReused, reject.Released, reject.NotStarted, reject.Ended, reject.Paused, reject.UnknownSKU,
			reject.StockError, reject.Concurrency),
		run: (*Proxy).checkEarlierOrder}
	earlierOrderInStore = check{name: "earlier order, looked up", config: "stock.reserve", mayBlock: true,
		reasons: earlierOrder.reasons, due: func(r *Request) bool { return r.lookUp }, run: (*Proxy).lookUpEarlierOrder}
	schedule = check{name: "schedule", config: "sale",
		reasons: reasons(reject.NotStarted, reject.Ended, reject.Paused, reject.SoldOut),
		applies: func(_ *Proxy, rt *boundRoute) bool { return !rt.sku.Empty() }, run: (*Proxy).checkSchedule}
	soldOut = check{name: "sold-out cache", config: "stock",
		reasons: reasons(reject.SoldOut, reject.Paused, reject.UnknownSKU), run: (*Proxy).checkSoldOut}
	orderToken = check{name: "order token", config: "route.order_token",
		reasons: reasons(reject.Token, reject.Ambiguous),
		applies: func(_ *Proxy, rt *boundRoute) bool { return rt.OrderToken }, run: (*Proxy).checkOrderToken}
	waitingRoom = check{name: "waiting room", config: "route.room",
		reasons: reasons(reject.Room, reject.Ambiguous),
		applies: func(_ *Proxy, rt *boundRoute) bool { return rt.room != nil }, run: (*Proxy).checkRoom}
	keyedRates = check{name: "keyed rates", config: "limits.rate",
		reasons: reasons(reject.Rate, reject.Ambiguous, reject.BadRequest, reject.ClientGone),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.rates) > 0 }, run: (*Proxy).checkRates}
	pageCache = check{name: "page cache", only: direct, config: "route.cache", mayBlock: true,
		reasons: reasons(reject.NoUpstream, reject.UpstreamBusy, reject.UpstreamError, reject.UpstreamTimeout),
		applies: func(p *Proxy, rt *boundRoute) bool { return rt.Route.Cache > 0 && p.Cache != nil },
		run:     (*Proxy).checkCache}
	inFlightFull = check{name: "in flight, before waiting", only: direct, config: "limits.in_flight",
		reasons: reasons(reject.InFlight, reject.Ambiguous, reject.BadRequest),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.inFlight) > 0 }, run: (*Proxy).checkInFlightFull}
	inFlight = check{name: "in flight", only: direct, config: "limits.in_flight", reasons: reasons(reject.InFlight),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.inFlight) > 0 }, run: (*Proxy).acquireInFlight}
	windowFull = check{name: "window, before waiting", only: direct, config: "limits.window",
		reasons: reasons(reject.Window), run: (*Proxy).checkWindowFull}
	queueFull = check{name: "concurrency, before waiting", only: direct, config: "limits.concurrency",
		reasons: reasons(reject.Concurrency), run: (*Proxy).checkQueueFull}
	// Before a window or slot is booked: a slow body would hold either.
	body = check{name: "body", only: direct, config: "server.max_body_size, server.body_memory",
		reasons: reasons(reject.TooLarge, reject.TooSlow, reject.Overloaded, reject.Malformed), run: (*Proxy).readBody}
	window = check{name: "window", only: direct, config: "limits.window",
		reasons: reasons(reject.Window, reject.ClientGone), mayBlock: true,
		atOnce: (*Proxy).bookWindow, run: (*Proxy).awaitWindow}
	slot = check{name: "concurrency", only: direct, config: "limits.concurrency", mayBlock: true,
		reasons: reasons(reject.Concurrency, reject.QueueTimeout, reject.ClientGone), atOnce: (*Proxy).takeFreeSlot,
		run: (*Proxy).acquireSlot}
	scheduleAgain = check{name: "schedule, after waiting", config: "sale",
		reasons: reasons(reject.NotStarted, reject.Ended, reject.Paused, reject.SoldOut),
		applies: func(_ *Proxy, rt *boundRoute) bool { return !rt.sku.Empty() }, run: (*Proxy).checkScheduleAgain}
	connection = check{name: "connection to the upstream", only: direct, config: "upstream.queue_timeout", mayBlock: true,
		reasons: reasons(reject.UpstreamBusy, reject.ClientGone), run: (*Proxy).acquireConnection}
	stock = check{name: "stock", config: "stock", mayBlock: true,
		reasons: reasons(reject.SoldOut, reject.Duplicate, reject.Concurrency, reject.UnknownSKU, reject.StockError,
			reject.Paused),
		atOnce: (*Proxy).checkReadStock, run: (*Proxy).checkStock}
	waitingBody = check{name: "body of an order that waits", only: waiting, config: "queue.max_order",
		reasons: body.reasons, run: (*Proxy).checkWaitingBody}
	reserveToWait = check{name: "reservation, until it is delivered", only: waiting, config: "stock.reserve",
		mayBlock: true,
		reasons:  append(slices.Clip(earlierOrder.reasons), reject.BadRequest, reject.ShuttingDown, reject.TooLarge),
		run:      (*Proxy).reserveToWait}
	reserve = check{name: "reservation", only: direct, config: "stock.reserve, sale.max_per_user",
		mayBlock: true,
		reasons:  append(slices.Clip(earlierOrder.reasons), reject.BadRequest, reject.ShuttingDown), run: (*Proxy).reserve}
)

// tables are the checks of each gate, in their order.
var tables = [route.NumGates][]check{
	route.Pass: {denyList, connRate, keyedRates, pageCache, inFlightFull, inFlight},
	route.Limit: {denyList, connRate, identity, requirement, schedule, orderToken, waitingRoom,
		keyedRates, pageCache, inFlightFull, windowFull, queueFull, body, inFlight, window, slot, scheduleAgain},
	route.Check: {denyList, connRate, identity, requirement, schedule, soldOut, orderToken, waitingRoom,
		keyedRates, pageCache, inFlightFull, windowFull, queueFull, body, inFlight, window, slot, scheduleAgain, stock},
	route.Reserve: {denyList, connRate, identity, requirement, earlierOrder, schedule, orderToken, waitingRoom,
		keyedRates, pageCache, earlierOrderInStore, inFlightFull, windowFull, queueFull, body, waitingBody, inFlight, window,
		slot, connection, scheduleAgain, reserve, reserveToWait},
}

// compileChecks gives each route the rows of its gate that apply to it.
func (p *Proxy) compileChecks() {
	for i := range p.routes {
		p.routes[i].readBody, p.routes[i].readForm = p.routes[i].needsBody(), p.routes[i].needsForm()
		p.routes[i].checks = p.rowsThatApply(tables[p.routes[i].Gate], &p.routes[i])
	}
	p.rejecting = p.rowsThatApply([]check{denyList, connRate, unmatched}, &p.unmatched)
	p.preflight = p.rowsThatApply([]check{denyList}, &p.unmatched)
	p.internalChecks = p.rowsThatApply([]check{denyList, connRate}, &p.unmatched)
}

func (p *Proxy) rowsThatApply(rows []check, rt *boundRoute) []check {
	return slices.DeleteFunc(slices.Clone(rows), func(c check) bool {
		return c.only == direct && rt.Queue || c.only == waiting && !rt.Queue || c.applies != nil && !c.applies(p, rt)
	})
}

// CheckRow is one check of a route, as operators see it.
type CheckRow struct {
	Name     string   `json:"name"`
	Config   string   `json:"config"`  // where it is configured
	Reasons  []string `json:"reasons"` // for which it may reject
	Value    string   `json:"value,omitempty"`
	Observed bool     `json:"observe_only,omitempty"` // it is counted and not enforced
}

// Checks are the checks that a request of a route passes, in their order; nil where there is no such route.
func (p *Proxy) Checks(routeName string) (rows []CheckRow) {
	for i := range p.routes {
		if p.routes[i].Name != routeName {
			continue
		}
		for _, c := range p.routes[i].checks {
			rows = append(rows, p.describe(&c, &p.routes[i]))
		}
	}
	return rows
}

func (p *Proxy) describe(c *check, rt *boundRoute) CheckRow {
	row := CheckRow{Name: c.name, Config: c.config, Value: p.Bounds[c.reasons[0]], Observed: p.observeOnly[c.reasons[0]]}
	if c.name == keyedRates.name {
		row.Observed = !slices.ContainsFunc(rt.rates, func(m keyed.BoundRate) bool { return !m.Observe })
	}
	if c.config == inFlight.config {
		row.Value, row.Observed = keyed.DescribeInFlight(rt.inFlight)
	}
	if c.name == requirement.name {
		row.Value = strings.Join(rt.Require, ", ")
	}
	if c.name == slot.name && rt.Bound != "" {
		row.Value = rt.Bound
	}
	for _, reason := range c.reasons {
		row.Reasons = append(row.Reasons, reason.String())
	}
	return row
}
