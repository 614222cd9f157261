package proxy

import (
	"slices"
	"strings"

	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// check is one row of a table of checks. A new limit is a field of Limiters, a row, and its function; a reason in
// package reject; its keys in package config; and a row in gateway/limits.go. docs/adding-a-limit.md adds one.
type check struct {
	name    string          // as explain and the docs call it
	config  string          // where it is configured
	reasons []reject.Reason // for which it may reject; that of its own limit comes first

	peeks   bool                                // it is the full of a row that comes later
	bypass  bool                                // clients on the bypass list do not meet it
	direct  bool                                // not for orders that wait in the queue until they are delivered
	forward bool                                // it is about forwarding: not where another proxy forwards
	applies func(p *Proxy, rt *boundRoute) bool // nil = always; a row that does not apply is left out

	// full rejects what decide would reject, and takes nothing: it is asked before the body is read. nil = it cannot tell.
	full func(p *Proxy, r *Request) rejection
	// decide releases the event loop (Conn.StepAside) before it blocks, and sets Request.checked after a wait.
	decide func(p *Proxy, r *Request) rejection
}

// Limiters are what the rows ask.
type Limiters struct {
	ConnRate    func() ConnRateLimiter // for a new connection; nil = connections have no request rate of their own
	Rates       []Rate
	InFlight    []InFlight
	Windows     WindowLimiter
	Concurrency ConcurrencyLimiter
	Priority    *param.Condition // requests that meet it go first in the queue of Concurrency; nil = none
}

// reasons is a list of reasons, as a row of the table shows it.
func reasons(list ...reject.Reason) []reject.Reason { return list }

// The rows. Cheap checks come first; of two that cost the same the final one. Memory tells a buyer of an earlier order
// before the schedule. What must be looked up comes after the cheap limits; above its capacity a buyer hears "sold out"
// with Retry-After.
var (
	denyList = check{name: "deny list", config: "limits.deny", reasons: reasons(reject.DeniedIP),
		applies: func(p *Proxy, _ *boundRoute) bool { return p.deny.lookup != nil || p.bypass.lookup != nil },
		decide:  (*Proxy).checkDenyList}
	unmatched = check{name: "route", config: "route",
		reasons: reasons(reject.NoRoute, reject.Ambiguous, reject.Loop),
		decide:  func(_ *Proxy, r *Request) rejection { return r.unmatched }}
	connRate = check{name: "request rate of the connection", bypass: true, config: "limits.connection.request_rate",
		reasons: reasons(reject.ConnRate), decide: (*Proxy).checkConnRate}
	identity = check{name: "identity", config: "route.sku, route.user, route.quantity",
		reasons: reasons(reject.BadRequest, reject.Ambiguous, reject.Unidentified, reject.TooLarge, reject.TooSlow,
			reject.Overloaded, reject.Concurrency, reject.Malformed),
		applies: func(_ *Proxy, rt *boundRoute) bool { return rt.limited() }, decide: (*Proxy).checkIdentity}
	requirement = check{name: "conditions", config: "route.require",
		reasons: reasons(reject.Denied, reject.Unidentified, reject.Ambiguous, reject.BadRequest),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.require) > 0 },
		decide:  (*Proxy).checkRequirement}
	// ledgerMemory has the sold-out cache of reserve routes, and the orders that this instance has seen win.
	ledgerMemory = check{name: "ledger's memory", config: "stock.reserve",
		reasons: reasons(reject.SoldOut, reject.Undecided, reject.Confirmed, reject.Duplicate, reject.InProgress,
			reject.KeyReused, reject.Released, reject.NotStarted, reject.Ended, reject.Paused, reject.UnknownSKU,
			reject.StockError, reject.Concurrency),
		decide: (*Proxy).checkLedgerMemory}
	storedOrder = check{name: "earlier order, looked up", config: "stock.reserve", reasons: ledgerMemory.reasons,
		decide: (*Proxy).checkStoredOrder}
	schedule = check{name: "schedule", config: "sale",
		reasons: reasons(reject.NotStarted, reject.Ended, reject.Paused, reject.SoldOut),
		applies: func(_ *Proxy, rt *boundRoute) bool { return !rt.sku.Empty() }, decide: (*Proxy).checkSchedule}
	soldOut = check{name: "sold-out cache", config: "stock",
		reasons: reasons(reject.SoldOut, reject.Paused, reject.UnknownSKU), decide: (*Proxy).checkSoldOut}
	firstReading = check{name: "first reading", config: "stock",
		reasons: reasons(reject.SoldOut, reject.Paused, reject.UnknownSKU, reject.Concurrency),
		decide:  (*Proxy).awaitReading}
	orderToken = check{name: "order token", config: "route.order_token",
		reasons: reasons(reject.Token, reject.Ambiguous),
		applies: func(_ *Proxy, rt *boundRoute) bool { return rt.OrderToken }, decide: (*Proxy).checkOrderToken}
	waitingRoom = check{name: "waiting room", bypass: true, config: "route.room",
		reasons: append(reasons(reject.Room, reject.Ambiguous), ledgerMemory.reasons...),
		applies: func(_ *Proxy, rt *boundRoute) bool { return rt.room != nil },
		decide:  (*Proxy).checkRoom}
	keyedRates = check{name: "keyed rates", bypass: true, config: "limits.rate",
		reasons: reasons(reject.Rate, reject.Ambiguous, reject.BadRequest, reject.ClientGone),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.rates) > 0 },
		decide:  (*Proxy).checkRates}
	pageCache = check{name: "page cache", direct: true, forward: true, config: "route.cache",
		reasons: reasons(reject.NoUpstream, reject.UpstreamBusy, reject.UpstreamError, reject.UpstreamTimeout),
		applies: func(p *Proxy, rt *boundRoute) bool { return rt.Route.Cache > 0 && p.Cache != nil },
		decide:  (*Proxy).checkCache}
	// The body comes before all that a slow one would hold.
	body = check{name: "body", forward: true, config: "server.max_body_size, server.body_memory, queue.max_order",
		reasons: reasons(reject.TooLarge, reject.TooSlow, reject.Overloaded, reject.Malformed),
		decide:  (*Proxy).checkBody}
	inFlight = check{name: "in flight", bypass: true, direct: true, config: "limits.in_flight",
		reasons: reasons(reject.InFlight, reject.Ambiguous, reject.BadRequest),
		applies: func(_ *Proxy, rt *boundRoute) bool { return len(rt.inFlight) > 0 },
		full:    (*Proxy).inFlightFull, decide: (*Proxy).acquireInFlight}
	window = check{name: "window", bypass: true, direct: true, config: "limits.window",
		reasons: reasons(reject.Window, reject.ClientGone),
		full:    (*Proxy).windowFull, decide: (*Proxy).bookWindow}
	slot = check{name: "concurrency", bypass: true, direct: true, config: "limits.concurrency",
		reasons: reasons(reject.Concurrency, reject.QueueTimeout, reject.ClientGone),
		full:    (*Proxy).queueFull, decide: (*Proxy).acquireSlot}
	connection = check{name: "connection to the upstream", direct: true, forward: true, config: "upstream.queue_timeout",
		reasons: reasons(reject.UpstreamBusy, reject.ClientGone), decide: (*Proxy).acquireConnection}
	stock = check{name: "stock", config: "stock",
		reasons: reasons(reject.SoldOut, reject.Duplicate, reject.Concurrency, reject.UnknownSKU, reject.StockError,
			reject.Paused),
		decide: (*Proxy).checkStock}
	reserve = check{name: "reservation", config: "stock.reserve, sale.max_per_user",
		reasons: append(slices.Clip(ledgerMemory.reasons), reject.BadRequest, reject.TooLarge),
		decide:  (*Proxy).reserve}
)

// tables are the checks of each gate, in their order. The schedule is asked again after all that may have waited: a
// pause and an end are for waiting requests, too.
var tables = [route.NumGates][]check{
	route.Pass: {denyList, connRate, keyedRates, pageCache, inFlight},
	route.Limit: {denyList, connRate, identity, requirement, schedule, orderToken, waitingRoom,
		keyedRates, pageCache, body, inFlight, window, slot, schedule},
	route.Check: {denyList, connRate, identity, requirement, schedule, soldOut, orderToken, waitingRoom,
		keyedRates, pageCache, firstReading, body, inFlight, window, slot, schedule, stock},
	route.Reserve: {denyList, connRate, identity, requirement, ledgerMemory, schedule, orderToken, waitingRoom,
		keyedRates, pageCache, storedOrder, body, inFlight, window, slot, connection, schedule, reserve},
}

// compileChecks gives each route the rows of its gate that apply to it.
func (p *Proxy) compileChecks() {
	for i := range p.routes {
		p.routes[i].readBody, p.routes[i].readForm = p.routes[i].needsBody(), p.routes[i].needsForm()
		p.routes[i].checks = withPeeks(p.rowsThatApply(tables[p.routes[i].Gate], &p.routes[i]))
		p.routes[i].asked = slices.DeleteFunc(slices.Clone(p.routes[i].checks), func(c check) bool { return c.forward })
	}
	p.rejecting = p.rowsThatApply([]check{denyList, connRate, unmatched}, &p.unmatched)
	p.preflight = p.rowsThatApply([]check{denyList}, &p.unmatched)
	p.internalChecks = p.rowsThatApply([]check{denyList, connRate}, &p.unmatched)
}

func (p *Proxy) rowsThatApply(rows []check, rt *boundRoute) []check {
	return slices.DeleteFunc(slices.Clone(rows), func(c check) bool {
		return c.direct && rt.Queue || c.applies != nil && !c.applies(p, rt)
	})
}

// withPeeks asks the rows behind the body, before it is read, whether they are full: a client must not send a body for
// nothing, and a slow one must not take a place.
func withPeeks(rows []check) (all []check) {
	for i, row := range rows {
		if row.name == body.name {
			for _, behind := range rows[i+1:] {
				if behind.full != nil {
					all = append(all, check{name: behind.name, peeks: true, bypass: behind.bypass, decide: behind.full})
				}
			}
		}
		all = append(all, row)
	}
	return all
}

// CheckRow is one check of a route, as operators see it.
type CheckRow struct {
	Name     string   `json:"name"`
	Config   string   `json:"config"`  // where it is configured
	Reasons  []string `json:"reasons"` // for which it may reject
	Value    string   `json:"value,omitempty"`
	Observed bool     `json:"observe_only,omitempty"` // it is counted and not enforced
}

func (p *Proxy) describeAll(checks []check, rt *boundRoute) (rows []CheckRow) {
	for i := range checks {
		if !checks[i].peeks {
			rows = append(rows, p.describe(&checks[i], rt))
		}
	}
	return rows
}

func (p *Proxy) describe(c *check, rt *boundRoute) CheckRow {
	row := CheckRow{Name: c.name, Config: c.config, Value: p.Bounds[c.reasons[0]], Observed: p.observeOnly[c.reasons[0]]}
	if c.name == keyedRates.name {
		row.Observed = !slices.ContainsFunc(rt.rates, func(m boundRate) bool { return !m.Observe })
	}
	if c.name == inFlight.name {
		row.Value, row.Observed = describeInFlight(rt.inFlight)
	}
	if c.name == requirement.name {
		row.Value = strings.Join(rt.Require, ", ")
	}
	if c.name == body.name && !rt.Queue {
		row.Config = "server.max_body_size, server.body_memory"
	}
	if c.name == stock.name {
		row.Value = strings.Replace(strings.TrimPrefix(p.Unit, "stock."), ": ", " ", 1)
	}
	if c.name == slot.name && rt.Bound != "" {
		row.Value = rt.Bound
	}
	for _, reason := range c.reasons {
		row.Reasons = append(row.Reasons, reason.String())
	}
	return row
}
