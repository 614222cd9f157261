package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/auth"
	"sluice/proxy/reject"
	"sluice/proxy/server"
	"sluice/queue"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// queueParts are what a queue works on.
type queueParts struct {
	Store    *ledger.Store
	Upstream *upstream.Pool
	Reserver func() *ledger.Reserver // nil while the ledger is not open yet
	Draining func() bool             // no client may wait any longer
	SoldOut  func(sku string)        // hears that the shop's own stock is used up
	Log      *slog.Logger
}

// orderQueue is the queue of a gate. It implements proxy.Queue and admin.Queue.
type orderQueue struct {
	queueParts
	within    atomic.Int64 // ns
	options   atomic.Pointer[queue.Options]
	signer    *auth.Signer // nil = what the upstream is told is not signed
	deliverer *queue.Deliverer
	closing   sync.Once
	closed    chan struct{}
	attending sync.WaitGroup
	parking   parking
}

const lookLimit = 2 * time.Second

// openQueue makes a queue, which delivers orders that wait from the first Use on.
func openQueue(c *config.Config, parts queueParts) (q *orderQueue, err error) {
	q = &orderQueue{queueParts: parts, closed: make(chan struct{})}
	q.parking = parking{orders: map[orderName]*parked{}, answers: map[server.Client]parkedAnswer{},
		filled: make(chan struct{}, 1)}
	if key := c.Stock.Reserve.Secret; key != "" {
		if q.signer, err = auth.NewSigner([]byte(key)); err != nil {
			return nil, c.Errorf("stock.reserve.secret_file", "%v", err)
		}
	}
	return q, nil
}

// deliveryAttempts is how often an order is sent; then its unit stays held until a person decides.
const deliveryAttempts = 10

// Use delivers as c says from now on, reads the shop's answers by rules, and asks status about orders; nil = it cannot
// be asked. Orders that wait already keep their time.
func (q *orderQueue) Use(c *config.Config, rules proxy.OutcomeRules, status *ledger.StatusURL) {
	if q == nil {
		return
	}
	k, reserve := &c.Queue, &c.Stock.Reserve
	q.within.Store(int64(min(k.DeliverWithin, reserve.ReservationTTL-c.LongestAttempt())))
	o := queue.Options{
		Store: q.Store, Send: q.Upstream.Send, Signer: q.signer, Outcome: rules.Outcome,
		Fenced: reserve.OnNotFound == "release_after_deadline", Cancels: reserve.OnNotFound == "cancel_then_release",
		MaxInFlight: k.MaxInFlight, Rate: float64(k.Rate), Attempts: deliveryAttempts,
		MaxOrder: int(k.MaxOrder), ByKey: k.Redeliver == "by_key",
		Pulls: k.Pull > 0, Timeout: c.FirstAttempt(), Grace: k.Grace, Keep: ledger.KeepReleased,
		Settled: q.settled, Settle: q.settle, News: q.news, SoldOut: q.SoldOut, Log: q.Log,
	}
	if status != nil {
		o.Ask = status.Ask
	}
	q.options.Store(&o)
	if q.deliverer != nil {
		q.deliverer.Use(o)
		return
	}
	q.deliverer = queue.New(o)
	q.attending.Go(q.attend)
}

// settled tells the reserver what the store has.
func (q *orderQueue) settled(sku, serial string, op ledger.Op, h ledger.StockVersion) {
	if r := q.Reserver(); r != nil {
		r.Delivered(sku, serial, op, h)
	}
}

// settle has the reserver tell the store. While there is none, the order is asked about later.
func (q *orderQueue) settle(sku, serial string, op ledger.Op) {
	if r := q.Reserver(); r != nil {
		r.Settle(sku, serial, op)
	}
}

// Check tells whether orders that wait are delivered, for readyz. It is never a reason to send clients elsewhere: all
// instances share the queue.
func (q *orderQueue) Check(now time.Time) (string, admin.Health) {
	if q == nil {
		return "no order waits", admin.Healthy
	}
	if stalled := q.deliverer.Stalled(now); stalled > 0 {
		return fmt.Sprintf("orders wait, nothing is granted for %s: compare Redis' clock with this machine's",
			stalled.Round(time.Second)), admin.Degraded
	}
	return "orders that wait are delivered", admin.Healthy
}

// Close ends the delivery, once: no order is taken any more, and those that were sent get until the end of limit. It
// comes before the event loops end, which the connections to the upstream wait on.
func (q *orderQueue) Close(limit time.Duration) {
	if q == nil {
		return
	}
	q.closing.Do(func() {
		if q.deliverer == nil {
			return // it was never used
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		q.deliverer.Close(ctx)
		close(q.closed)
		q.attending.Wait()
	})
}

// Accept implements proxy.Queue.
func (q *orderQueue) Accept(m *proxy.QueuedRequest) string {
	return ledger.NewRequest(time.Now().Add(time.Duration(q.within.Load())).UnixMilli(), m.Text())
}

// Accepted implements proxy.Queue.
func (q *orderQueue) Accepted(sku, serial string) proxy.WaitingOrder {
	ahead, eta := q.deliverer.Accepted(sku)
	return proxy.WaitingOrder{Serial: serial, SKU: sku, State: string(ledger.Queued), Ahead: ahead, ETA: eta}
}

// Proof implements proxy.Queue.
func (q *orderQueue) Proof(sku, serial string) string {
	r := q.Reserver()
	if r == nil {
		return "" // it proves no client
	}
	return r.Proof(sku, serial)
}

// Find implements proxy.Queue.
func (q *orderQueue) Find(sku, serial string, wait time.Duration, client server.Client) (
	o proxy.WaitingOrder, suspended bool, reason reject.Reason,
) {
	if client.Resumed() {
		if o, ok := q.parking.answer(client); ok {
			return o, false, reject.Admitted
		}
	}
	client.StepAside()
	o, reason = q.look(sku, serial)
	if reason != reject.Admitted || wait <= 0 || !o.Pending() || q.Draining() {
		return o, false, reason
	}
	now := time.Now()
	if !q.parking.park(&o, client, now.Add(q.lookAgain(&o)), now.Add(wait)) {
		return o, false, reject.Admitted
	}
	if o.State == string(ledger.Delivering) && !q.deliverer.Delivers(sku, serial) { // its news may have come before
		q.parking.later(orderName{sku, serial}, now.Add(lookSoon))
	}
	return o, true, reject.Admitted
}

func (q *orderQueue) look(sku, serial string) (proxy.WaitingOrder, reject.Reason) {
	if r := q.Reserver(); r != nil && !r.Knows(sku) { // SKUs that a client invents share calls
		switch _, _, ok, err := r.State(sku, serial); {
		case errors.Is(err, ledger.ErrTooMany):
			return proxy.WaitingOrder{}, reject.Rate
		case err != nil:
			return proxy.WaitingOrder{}, reject.StockError
		case !ok:
			return waitingOrder(sku, serial, &queue.State{}), reject.Admitted
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	s, tooMany, err := q.deliverer.Find(ctx, sku, serial)
	switch {
	case tooMany:
		return proxy.WaitingOrder{}, reject.Rate
	case err != nil, s.Err != nil:
		return proxy.WaitingOrder{}, reject.StockError
	}
	return waitingOrder(sku, serial, &s), reject.Admitted
}

func waitingOrder(sku, serial string, s *queue.State) proxy.WaitingOrder {
	o := proxy.WaitingOrder{Serial: serial, SKU: sku, User: s.User, State: waitingState(s), Ahead: s.Ahead, ETA: s.ETA,
		Answer: s.Answer}
	if s.Status == ledger.StatusHeld {
		o.Deadline = s.Deadline
	}
	return o
}

// waitingState names a state as clients read it.
func waitingState(s *queue.State) string {
	switch {
	case s.Status.Final() && s.Answer.State != "":
		return s.Answer.State
	case s.Status == ledger.StatusHeld && s.Where != ledger.NotWaiting:
		return string(s.Where)
	}
	return s.Status.String()
}

// Cancel implements proxy.Queue.
func (q *orderQueue) Cancel(sku, serial string) (o proxy.WaitingOrder, late bool, reason reject.Reason) {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	done, err := q.deliverer.Cancel(ctx, sku, serial)
	if err != nil {
		return o, false, reject.StockError
	}
	o, reason = q.look(sku, serial)
	return o, done != ledger.Changed && done != ledger.Already && done != ledger.NotFound, reason
}

// Describe implements prometheus.Collector.
func (q *orderQueue) Describe(ch chan<- *prometheus.Desc) { q.deliverer.Describe(ch) }

// Collect implements prometheus.Collector.
func (q *orderQueue) Collect(ch chan<- prometheus.Metric) { q.deliverer.Collect(ch) }
