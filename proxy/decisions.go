package proxy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
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
	"sluice/stockgate/ledger/protocol"
)

// decisions are the requests that other proxies were told to forward, and of which something is to be given back. There
// are no more of them than limits and stock admit. It is safe for concurrent use.
type decisions struct {
	mu      sync.Mutex
	open    map[string]*decision // by serial
	settled uint64               // by a call
	expired uint64
}

// decision is one of them.
type decision struct {
	proxy    *Proxy // that has admitted it
	serial   string
	acquired acquired
	sku      string // of the order
	outcome  metrics.OrderOutcome
	told     bool // outcome is what the proxy has told
	admitted int64
	timer    *time.Timer
}

func newDecisions() *decisions { return &decisions{open: map[string]*decision{}} }

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
		one.serial = fmt.Sprintf("%016x", rand.Uint64())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[one.serial] = one
	one.timer = time.AfterFunc(r.proxy.SettleWithin, func() { d.expire(one) })
	return one.serial
}

// expire ends a decision whose time is over. If nothing was told of its order the resolver asks.
func (d *decisions) expire(one *decision) {
	d.mu.Lock()
	ends := d.open[one.serial] == one && !one.told
	if ends {
		d.expired++
	}
	if d.open[one.serial] == one {
		delete(d.open, one.serial)
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
	one.proxy.releaseStockAndSlot(&one.acquired)
}

func (one *decision) settleOrder(outcome metrics.OrderOutcome) {
	if one.acquired.order {
		one.proxy.Orders.Settle([]byte(one.sku), one.serial, outcome)
	}
}

// settle ends the decision of serial; nil = there is none. agrees is false where another outcome was told before. What
// is told first counts, but an outcome counts after it was unknown. It may wait until the ledger has room.
func (d *decisions) settle(serial string, outcome metrics.OrderOutcome) (one *decision, agrees bool) {
	d.mu.Lock()
	one = d.open[serial]
	if one == nil {
		d.mu.Unlock()
		return nil, false
	}
	first := !one.told
	counts := first || one.outcome == metrics.OrderUnknown && outcome != metrics.OrderUnknown
	agrees = counts || outcome == metrics.OrderUnknown || outcome == one.outcome
	if counts {
		one.told, one.outcome = true, outcome
	}
	if first {
		d.settled++
	}
	if !one.acquired.order { // an order is remembered until its time is over: its proxy may tell of it twice
		delete(d.open, serial)
		one.timer.Stop()
	}
	d.mu.Unlock()
	if first {
		one.release(max(1, time.Duration(one.proxy.Now()-one.admitted)))
	}
	if counts {
		one.settleOrder(outcome)
	}
	return one, agrees
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

// answerSettle takes what became of a request that was forwarded: POST /settle?serial=…&status=…
func (p *Proxy) answerSettle(ctx *fasthttp.RequestCtx, c *server.Conn, open *decisions) {
	r := p.newRequest(ctx, c)
	defer p.release(r)
	r.internal = true
	if r.rejection = p.settle(r, open); r.rejection.Reason != reject.Admitted {
		p.reject(r)
	}
}

func (p *Proxy) settle(r *Request, open *decisions) rejection {
	query, err := url.ParseQuery(string(r.head.Query))
	serial, sku := query.Get("serial"), query.Get("sku")
	status, fault := strconv.Atoi(query.Get("status"))
	if err != nil || fault != nil || status < 100 || status > 999 || string(r.head.Method) != "POST" ||
		!param.ValidIdempotencyKey([]byte(serial)) || sku != "" && !param.ValidSKU([]byte(sku)) {
		return badRequest(reject.QueryInvalid, "")
	}
	r.reservation.Serial = serial
	outcome := p.toldOutcome(r, status)
	r.conn.StepAside()
	if one, agrees := open.settle(serial, outcome); one != nil {
		state := "ended"
		if one.acquired.order {
			state = orderStates[one.outcome].String()
		}
		p.writeSettled(r, one.sku, state, agrees)
		return rejection{}
	}
	found, reason := p.stateOf(r, sku, serial)
	if reason != reject.Admitted {
		return rejection{Reason: reason}
	}
	told := orderStates[outcome]
	agrees := found.State == told || outcome == metrics.OrderUnknown
	if found.State == orderStates[metrics.OrderUnknown] {
		p.Orders.Settle([]byte(found.SKU), serial, outcome)
		found.State, agrees = told, true
	}
	p.writeSettled(r, found.SKU, found.State.String(), agrees)
	return rejection{}
}

// toldOutcome reads what is told of an order as the response of the upstream would be read.
func (p *Proxy) toldOutcome(r *Request, status int) metrics.OrderOutcome {
	var resp fasthttp.Response
	resp.SetStatusCode(status)
	for name, value := range r.head.Fields {
		if octets.EqualFold(name, OrderHeader) {
			resp.Header.AddBytesV(OrderHeader, value)
		}
	}
	return p.Settlement.Outcome(&resp)
}

// orderStates are the state of an order after each outcome.
var orderStates = map[metrics.OrderOutcome]protocol.Status{
	metrics.OrderConfirmed: protocol.StatusSold, metrics.OrderRejected: protocol.StatusReleased,
	metrics.OrderUnknown: protocol.StatusHeld,
}

// stateOf is the state of an order that is not open here: it was settled, its time is over, or another instance has
// admitted it.
func (p *Proxy) stateOf(r *Request, sku, serial string) (OrderState, reject.Reason) {
	if p.Orders == nil {
		return OrderState{}, reject.Admitted
	}
	return p.Orders.State(r.now, []byte(sku), []byte(serial))
}

// writeSettled answers with the state that an order has now: 404 where there is none, 409 where it is not the one that
// was told.
func (p *Proxy) writeSettled(r *Request, sku, state string, agrees bool) {
	text, err := json.Marshal(struct {
		Serial string `json:"serial"`
		SKU    string `json:"sku,omitempty"`
		State  string `json:"state"`
	}{r.reservation.Serial, sku, state})
	if err != nil {
		panic("BUG: an order's state is no JSON: " + err.Error())
	}
	out := r.localResponse(fasthttp.StatusOK, "application/json")
	switch {
	case state == protocol.StatusNone.String():
		out.SetStatusCode(fasthttp.StatusNotFound)
	case !agrees:
		out.SetStatusCode(fasthttp.StatusConflict)
	}
	out.AppendBody(append(text, '\n'))
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
	open, settled, expired := len(d.open), d.settled, d.expired
	d.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(openDecisionsDesc, prometheus.GaugeValue, float64(open))
	ch <- prometheus.MustNewConstMetric(endedDecisionsDesc, prometheus.CounterValue, float64(settled), "settled")
	ch <- prometheus.MustNewConstMetric(endedDecisionsDesc, prometheus.CounterValue, float64(expired), "expired")
}
