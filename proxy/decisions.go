package proxy

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/server"
	"sluice/stockgate/ledger"
)

// decisions are the requests that other proxies were told to forward, and of which something is to be given back. There
// are no more of them than limits and stock admit. It is safe for concurrent use.
type decisions struct {
	mu      sync.Mutex
	open    map[decisionKey]*decision
	untold  int    // of open: of which nothing was told yet
	settled uint64 // by a call
	expired uint64
}

// decisionKey names a decision. The serial of an order is the client's own key, which is unique in its SKU alone.
type decisionKey struct {
	sku    string // of the order; "" = there is none
	serial string
}

// decision is one of them.
type decision struct {
	decisionKey
	proxy    *Proxy // that has admitted it
	acquired acquired
	outcome  metrics.OrderOutcome
	told     bool // outcome is what the proxy has told
	admitted int64
	timer    *time.Timer
}

func newDecisions() *decisions { return &decisions{open: map[decisionKey]*decision{}} }

// add takes over what was acquired for r, and returns the serial by which it is settled; "" = there is nothing.
func (d *decisions) add(r *Request) (serial string) {
	a := &r.acquired
	if !a.order && !a.stock && a.slot == nil && !a.places.Any() {
		return ""
	}
	one := &decision{proxy: r.proxy, acquired: *a, outcome: metrics.OrderUnknown, admitted: r.proxy.Now()}
	r.acquired = acquired{}
	one.acquired.sku = append([]byte(nil), one.acquired.sku...)
	if one.serial = r.reservation.Serial; one.acquired.order {
		one.sku = string(r.buyer.sku)
	} else {
		one.serial = strconv.FormatUint(rand.Uint64(), 36)
	}
	d.mu.Lock()
	earlier := d.open[one.decisionKey] // the same key, after the ledger has ended its order
	held := earlier != nil && !earlier.told
	if held {
		d.expired++
	} else {
		d.untold++
	}
	d.open[one.decisionKey] = one
	one.timer = time.AfterFunc(r.proxy.SettleWithin, func() { d.expire(one) })
	d.mu.Unlock()
	if earlier != nil {
		earlier.timer.Stop()
	}
	if held {
		earlier.release(0)
	}
	return one.serial
}

// expire ends a decision whose time is over. If nothing was told of its order the resolver asks.
func (d *decisions) expire(one *decision) {
	d.mu.Lock()
	ends := d.open[one.decisionKey] == one && !one.told
	if ends {
		d.untold--
		d.expired++
	}
	if d.open[one.decisionKey] == one {
		delete(d.open, one.decisionKey)
	}
	d.mu.Unlock()
	if ends {
		one.release(0)
		one.settleOrder(metrics.OrderUnknown)
	}
}

// release gives slot and places back. took is how long the upstream had the request, 0 where that is not known.
func (one *decision) release(took time.Duration) {
	one.acquired.took = took
	one.proxy.releaseCounted(&one.acquired)
}

func (one *decision) settleOrder(outcome metrics.OrderOutcome) {
	if one.acquired.order {
		one.proxy.Orders.Settle(ledger.Order{SKU: []byte(one.sku)}, one.serial, outcome)
	}
}

// settle ends a decision, and returns the outcome that holds; nil = there is none. agrees is false where another one
// was told before. What is told first counts, but an outcome counts after it was unknown. It may wait until the ledger
// has room.
func (d *decisions) settle(of decisionKey, told metrics.OrderOutcome) (one *decision, outcome metrics.OrderOutcome,
	agrees bool) {
	d.mu.Lock()
	one = d.open[of]
	if one == nil {
		d.mu.Unlock()
		return nil, told, false
	}
	first := !one.told
	counts := first || one.outcome == metrics.OrderUnknown && told != metrics.OrderUnknown
	agrees = counts || told == metrics.OrderUnknown || told == one.outcome
	if counts {
		one.told, one.outcome = true, told
	}
	outcome = one.outcome
	if first {
		d.untold--
		d.settled++
	}
	if !one.acquired.order { // an order is remembered until its time is over: its proxy may tell of it twice
		delete(d.open, of)
		one.timer.Stop()
	}
	d.mu.Unlock()
	if first {
		one.release(max(1, time.Duration(one.proxy.Now()-one.admitted)))
	}
	if counts {
		one.settleOrder(told)
	}
	return one, outcome, agrees
}

// close ends all decisions: the process ends.
func (d *decisions) close() {
	d.mu.Lock()
	all := make([]*decision, 0, len(d.open))
	for _, one := range d.open {
		all = append(all, one)
	}
	d.mu.Unlock()
	for _, one := range all {
		one.timer.Stop()
		d.expire(one)
	}
}

// answerSettle takes what became of a request that was forwarded: POST /settle.
func (p *Proxy) answerSettle(ctx *fasthttp.RequestCtx, c *server.Conn, open *decisions) {
	r := p.newRequest(ctx, c)
	defer p.release(r)
	r.internal = true
	if r.rejection = p.settle(r, open); r.rejection.Reason != reject.Admitted {
		p.reject(r)
	}
}

func (p *Proxy) settle(r *Request, open *decisions) rejection {
	if string(r.head.Method) != "POST" || len(r.head.Query) > 0 {
		return badRequest(reject.QueryInvalid, "")
	}
	of, told, fault := p.readSettlement(r.head)
	if fault != "" {
		return badRequest(reject.QuestionIncomplete, fault)
	}
	r.reservation.Serial = of.serial
	r.conn.StepAside()
	if one, outcome, agrees := open.settle(of, told); one != nil {
		state := "ended"
		if one.acquired.order {
			state = orderStates[outcome].String()
		}
		p.writeSettled(r, of.sku, state, agrees)
		return rejection{}
	}
	found, reason := p.stateOf(r, of)
	if reason != reject.Admitted {
		return rejection{Reason: reason}
	}
	agrees := found.State == orderStates[told] || told == metrics.OrderUnknown
	if found.State == ledger.StatusHeld {
		p.Orders.Settle(ledger.Order{SKU: []byte(of.sku)}, of.serial, told)
		found.State, agrees = orderStates[told], true
	}
	p.writeSettled(r, of.sku, found.State.String(), agrees)
	return rejection{}
}

// readSettlement reads the fields of POST /settle. Each may be there once; fault names one that is not as it should be.
// A proxy whose upstream has not answered has no status, or one below 100.
func (p *Proxy) readSettlement(head *server.Request) (of decisionKey, told metrics.OrderOutcome, fault string) {
	fields := [...]struct {
		name, value string
		there       bool
	}{{name: serialHeader}, {name: skuHeader}, {name: toldHeader}, {name: OrderHeader}}
	for name, value := range head.Fields {
		for i := range fields {
			if f := &fields[i]; octets.EqualFold(name, f.name) {
				if f.there {
					return of, told, f.name
				}
				f.value, f.there = string(value), true
			}
		}
	}
	of = decisionKey{serial: fields[0].value, sku: fields[1].value}
	if !param.ValidIdempotencyKey([]byte(of.serial)) {
		return of, told, serialHeader
	}
	if of.sku != "" && !param.ValidSKU([]byte(of.sku)) {
		return of, told, skuHeader
	}
	status, order := 0, fields[3].value
	if text := fields[2].value; text != "" && text != "-" {
		var err error
		if status, err = strconv.Atoi(text); err != nil || status > 999 {
			return of, told, toldHeader
		}
	}
	return of, p.toldOutcome(status, order), ""
}

// toldOutcome reads what is told of an order as the response of the upstream would be read.
func (p *Proxy) toldOutcome(status int, order string) metrics.OrderOutcome {
	if status < 100 && order == "" {
		return metrics.OrderUnknown
	}
	var resp fasthttp.Response
	resp.SetStatusCode(status)
	if order != "" {
		resp.Header.Add(OrderHeader, order)
	}
	return p.Outcomes.Outcome(&resp)
}

// orderStates are the state of an order after each outcome.
var orderStates = map[metrics.OrderOutcome]ledger.Status{
	metrics.OrderConfirmed: ledger.StatusSold, metrics.OrderRejected: ledger.StatusReleased,
	metrics.OrderUnknown: ledger.StatusHeld,
}

// stateOf is the state of an order that is not open here: it was settled, its time is over, or another instance has
// admitted it. Without a SKU there is none: orders of several SKUs may have the serial.
func (p *Proxy) stateOf(r *Request, of decisionKey) (OrderState, reject.Reason) {
	if p.Orders == nil || of.sku == "" {
		return OrderState{}, reject.Admitted
	}
	return p.Orders.State(r.now, []byte(of.sku), []byte(of.serial))
}

// writeSettled answers with the state that an order has now: 404 where there is none, 409 where it is not the one that
// was told.
func (p *Proxy) writeSettled(r *Request, sku, state string, agrees bool) {
	text := jsonLine(struct {
		Serial string `json:"serial"`
		SKU    string `json:"sku,omitempty"`
		State  string `json:"state"`
	}{r.reservation.Serial, sku, state})
	out := r.localResponse(fasthttp.StatusOK, "application/json")
	switch {
	case state == ledger.StatusNone.String():
		out.SetStatusCode(fasthttp.StatusNotFound)
	case !agrees:
		out.SetStatusCode(fasthttp.StatusConflict)
	}
	out.AppendBody(text)
}

var (
	openDecisionsDesc = prometheus.NewDesc("sluice_decisions_open",
		"Requests that other proxies forward, and of which a unit or a slot is to be given back.", nil, nil)
	endedDecisionsDesc = prometheus.NewDesc("sluice_decisions_ended_total",
		"Such requests by how they ended: settled by a call, or expired without one.", []string{"how"}, nil)
)

// collect is part of Server.Collect.
func (d *decisions) collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	open, settled, expired := d.untold, d.settled, d.expired
	d.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(openDecisionsDesc, prometheus.GaugeValue, float64(open))
	ch <- prometheus.MustNewConstMetric(endedDecisionsDesc, prometheus.CounterValue, float64(settled), "settled")
	ch <- prometheus.MustNewConstMetric(endedDecisionsDesc, prometheus.CounterValue, float64(expired), "expired")
}
