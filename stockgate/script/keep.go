package script

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/periodic"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/script/records"
)

// Keep says how orders are kept until they are decided: what is not confirmed in time is given back.
type Keep struct {
	Prefix     string                   // of the keys
	Status     ledger.OrderStatusSource // asked about orders that are not decided; nil = they wait for a person
	OnNotFound string                   // as in ledger.Options
	Released   time.Duration            // for so long a released serial is remembered; default 24 h
	Timeout    time.Duration            // of one call; default 250 ms
	Owner      func()                   // closes Status; may be nil
}

// keeper keeps the orders of a Reserver. An order is kept after its units were taken and before it is forwarded: what
// is kept was taken, and no unit is given back that was not. An instance that dies between both loses the units.
type keeper struct {
	r      *Reserver
	store  *records.Store
	orders *ledger.Reserver // settles and resolves; it reserves nothing
	stop   context.CancelFunc
	work   sync.WaitGroup
	owed   atomic.Int64 // orders whose units are to be given back
	oldest atomic.Int64 // Unix ms since when the oldest is; 0 = none
	late   bool         // the log says that one is
	told   bool         // the log says that what takes units has changed
	unsaid []unsaid     // of run alone
	ready  bool         // the last write of orders succeeded; of send alone
}

const (
	giveBackInterval = 250 * time.Millisecond
	keeperInterval   = 5 * time.Second
	maxTracked       = 10_000 // SKUs whose orders are looked after
)

// keepOrders has the orders of r kept.
func (r *Reserver) keepOrders() error {
	k := &keeper{r: r, store: records.New(r.way.Client, r.o.Keep.Prefix)}
	var err error
	k.orders, err = ledger.New(ledger.Options{
		Secret: protocol.NewSecret(), Hold: r.o.Hold, Keep: cmp.Or(r.o.Keep.Released, 24*time.Hour),
		OnNotFound: r.o.Keep.OnNotFound, Timeout: r.o.Keep.Timeout, Named: r.o.Named, MetricSKUs: r.o.MetricSKUs,
		Log: r.o.Log,
	}, k.store, r.o.Keep.Status)
	if err != nil {
		return err
	}
	k.store.Track(func(sku string) { k.orders.Track(sku) })
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	k.work.Go(func() { periodic.Now(ctx, giveBackInterval, k.giveBackDue) })
	k.work.Go(func() { periodic.Now(ctx, keeperInterval, k.look) })
	r.keeper = k
	return nil
}

// close settles what is pending until ctx ends. What is owed then is given back by another instance, or later.
func (k *keeper) close(ctx context.Context) {
	k.orders.Close(ctx)
	k.stop()
	k.work.Wait()
	k.repeat(ctx)
	for _, u := range k.unsaid {
		k.warnUnsaid(u)
	}
	if k.r.o.Keep.Owner != nil {
		k.r.o.Keep.Owner()
	}
}

// Records are the orders that are kept, and what settles them; nil where none are.
func (r *Reserver) Records() (*records.Store, func() *ledger.Reserver) {
	if r == nil || r.keeper == nil {
		return nil, nil
	}
	return r.keeper.store, func() *ledger.Reserver { return r.keeper.orders }
}

// payload is what giving back needs of an order.
type payload struct {
	Quantity int64
	User     []byte
	Token    string
	At       int64
	Extra    []extra `json:",omitempty"`
	By       string  // the fingerprint of what took the units
}

// extra is a value behind the code of a reply: a number where Text is nil.
type extra struct {
	Number int64 `json:",omitempty"`
	Text   []byte
}

// fingerprint is that of what gives the units of o back: the script, its keys and arguments. It tells apart the keys of
// two sales.
func (s *Script) fingerprint(o *order) string {
	bare := *o
	bare.extra = nil
	c := s.call(*s.givingBack, &bare)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %q", c.sha, c.keys, c.args))
	return hex.EncodeToString(sum[:16])
}

// payload writes o, whose units s took.
func (s *Script) payload(o *order) string {
	p := payload{Quantity: o.quantity, User: []byte(o.user), Token: o.token, At: o.at, By: s.fingerprint(o)}
	for _, v := range o.extra {
		switch v := v.(type) {
		case int64:
			p.Extra = append(p.Extra, extra{Number: v})
		case nil: // as a script is given it: empty
			p.Extra = append(p.Extra, extra{Text: []byte{}})
		default:
			p.Extra = append(p.Extra, extra{Text: fmt.Append([]byte{}, v)})
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("BUG: an order is no JSON: " + err.Error())
	}
	return string(text)
}

// orderOf reads an order whose units are to be given back, and the fingerprint of what took them.
func orderOf(in records.Owed) (*order, string, error) {
	var p payload
	if err := json.Unmarshal([]byte(in.Payload), &p); err != nil {
		return nil, "", fmt.Errorf("read what is owed of %q: %w", in.Serial, err)
	}
	o := &order{sku: in.SKU, serial: in.Serial, user: string(p.User), token: p.Token, at: p.At, quantity: p.Quantity}
	for _, v := range p.Extra {
		if v.Text != nil {
			o.extra = append(o.extra, string(v.Text))
		} else {
			o.extra = append(o.extra, v.Number)
		}
	}
	return o, p.By, nil
}

// writable reports whether orders can be kept now. Units are taken only then: else each try would take further ones.
func (k *keeper) writable(ctx context.Context) (err error) {
	if !k.ready {
		err = k.store.Probe(ctx)
		k.ready = err == nil
	}
	return err
}

// keepTaken keeps the orders of a batch whose units were taken. One that cannot be kept is not admitted. Its units are
// given back where it is certain that it was not kept, and else stay taken.
func (r *Reserver) keepTaken(batch []*pending) {
	bySKU, deadline := map[string][]*pending{}, time.Now().Add(r.o.Hold).UnixMilli()
	for _, p := range batch {
		p.deadline = deadline
		if p.outcome == taken {
			bySKU[p.sku] = append(bySKU[p.sku], p)
		}
	}
	if r.keeper == nil {
		return
	}
	for sku, some := range bySKU {
		r.keeper.keep(sku, deadline, some)
	}
}

func (k *keeper) keep(sku string, deadline int64, some []*pending) {
	orders := make([]records.Order, len(some))
	for i, p := range some {
		orders[i] = records.Order{Serial: p.serial, User: p.user, Quantity: p.quantity,
			Payload: k.r.script.payload(&p.order)}
	}
	before, err := k.store.Write(k.r.ctx, sku, deadline, orders)
	k.orders.Track(sku)
	k.ready = k.ready && err == nil
	for i, p := range some {
		switch {
		case err != nil:
			p.kept, p.err = reject.StockError, err
			// The client may try again, and a repeatable script of the shop's own then says "taken" of the same units.
			k.putBack(p, !answered(err) && !unsent(err) || k.r.script.repeatable && !k.r.script.preset)
		case before[i].Status != protocol.StatusNone:
			p.kept = k.answer(p, before[i])
		}
	}
}

// answerKnown answers the orders of a batch whose serials have a record, before a script runs: a repeatable one of the
// shop's own says "taken" of units of before, too, and takes anew those that were given back.
func (k *keeper) answerKnown(batch []*pending) {
	names := make([]protocol.OrderName, len(batch))
	for i, p := range batch {
		names[i] = protocol.OrderName{SKU: p.sku, Serial: p.serial}
	}
	for i, found := range k.store.FindAll(k.r.ctx, names) {
		switch p := batch[i]; {
		case found.Err != nil:
			p.kept, p.err = reject.StockError, found.Err
		case found.OK:
			p.kept = answerOf(protocol.Replay(found.Record, protocol.Item{User: p.user, Quantity: p.quantity}))
		}
	}
}

// answer is what an order hears whose serial is known. The units that were taken for it now are given back, unless they
// may be those of the order before: another instance may have kept that since the script ran here, and given its units
// back, too. A release that came before any order has none.
func (k *keeper) answer(p *pending, before protocol.Record) reject.Reason {
	s, code := k.r.script, protocol.Replay(before, protocol.Item{User: p.user, Quantity: p.quantity})
	mine := before.Quantity == 0 || s.preset && (code == protocol.Released || code == protocol.OtherOrder)
	k.putBack(p, s.repeatable && !mine)
	return answerOf(code)
}

// recall answers an order with a key that gets no units for a reason: by its record, where it has one. What cannot be
// looked up within the bound of a ledger's look-ups may be asked again.
func (k *keeper) recall(o *order, reason reject.Reason) proxy.Reservation {
	found, ok, err := k.orders.Recall(o.sku, o.serial)
	switch {
	case err != nil:
		return proxy.Reservation{Reason: reason, Wait: recallAgain}
	case !ok:
		return proxy.Reservation{Reason: reason}
	}
	return proxy.Reservation{Reason: answerOf(protocol.Replay(found, protocol.Item{User: o.user, Quantity: o.quantity}))}
}

// recallAgain is when an order that was not looked up does well to come again.
const recallAgain = time.Second

// answerOf is what an order hears whose serial is known.
func answerOf(code protocol.Code) reject.Reason {
	switch code {
	case protocol.ReplayHeld:
		return reject.InProgress
	case protocol.ReplaySold:
		return reject.Confirmed
	case protocol.OtherOrder:
		return reject.KeyReused
	}
	return reject.Released
}

// putBack has the units given back that were taken for an order which is not kept, unless they may be those of one that
// is.
func (k *keeper) putBack(p *pending, unsure bool) {
	if unsure {
		k.r.counts.countUnits(&p.order, unitsUnanswered)
		return
	}
	p.owes = true
}

// settle tells the records what became of an order.
func (k *keeper) settle(o *order, f metrics.OrderOutcome) {
	item := protocol.Item{Serial: o.serial}
	switch f {
	case metrics.OrderConfirmed:
		k.orders.Settle(o.sku, item, protocol.Confirm)
	case metrics.OrderRejected:
		k.orders.Settle(o.sku, item, protocol.Release)
	default:
		k.orders.Unknown(o.sku, o.serial)
	}
}

// state tells what is known of a serial.
func (k *keeper) state(sku, serial string) (proxy.OrderState, reject.Reason) {
	rec, of, ok, err := k.orders.State(sku, serial)
	switch {
	case errors.Is(err, ledger.ErrTooMany):
		return proxy.OrderState{}, reject.Rate
	case err != nil:
		return proxy.OrderState{}, reject.StockError
	case !ok:
		return proxy.OrderState{State: "none"}, reject.Admitted
	}
	names := map[byte]string{protocol.StatusHeld: "held", protocol.StatusSold: "confirmed",
		protocol.StatusReleased: "released", protocol.StatusRefunded: "refunded"}
	return proxy.OrderState{SKU: of, State: names[rec.Status], Deadline: rec.Deadline}, reject.Admitted
}

// look finds out which SKUs have orders, and what is owed.
func (k *keeper) look(ctx context.Context) {
	skus, err := k.store.SKUs(ctx, maxTracked)
	if err != nil {
		return
	}
	for _, sku := range skus {
		k.orders.Track(sku)
	}
	all, err := k.store.Owed(ctx)
	if err != nil {
		return
	}
	var first records.Owed
	for _, o := range all {
		if first.Serial == "" || o.Since.Before(first.Since) {
			first = o
		}
	}
	k.owed.Store(int64(len(all)))
	if k.oldest.Store(0); len(all) > 0 {
		k.oldest.Store(first.Since.UnixMilli())
	}
	late := len(all) > 0 && time.Since(first.Since) > records.Late
	if late && !k.late {
		k.r.o.Log.Error("units wait to be given back for an hour, and are not for sale", "next",
			"sluice reservation list --state owed", "script", k.r.script.name, "sku", first.SKU, "serial", first.Serial,
			"tries", first.Tries, "orders", len(all))
	}
	k.late = late
}

// collect shows the orders, and what is owed.
func (k *keeper) collect(ch chan<- prometheus.Metric) {
	k.orders.Collect(ch)
	age := 0.0
	if since := k.oldest.Load(); since > 0 {
		age = time.Since(time.UnixMilli(since)).Seconds()
	}
	gauge := func(name, help string, n float64) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, n)
	}
	gauge("sluice_script_givebacks", "Orders whose units are to be given back by the shop's script.",
		float64(k.owed.Load()))
	gauge("sluice_script_giveback_oldest_seconds", "Age of the oldest of them; 0: there is none.", age)
}
