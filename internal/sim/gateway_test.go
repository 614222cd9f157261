package sim

// Time in this file is virtual (testing/synctest).

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"sluice/internal/settler"
	"sluice/queue"
	"sluice/settle"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

const (
	sku     = "1001"
	hold    = 1500 * time.Millisecond
	long    = 12 * time.Second // a hold that outlives a loss: a SKU that has lost something is closed for 3 s and more
	longer  = 2 * time.Minute  // one that outlives an instance that never comes back: others wait a minute for it
	timeout = 200 * time.Millisecond
)

// gateway is one instance: the real ledger client.
type gateway struct {
	w        *world
	name     string
	stateDir string
	began    time.Time
	store    *ledger.Store
	reserver *ledger.Reserver
	queue    *queue.Deliverer // nil where orders do not wait
	stops    atomic.Bool
}

// redisOptions are those of one client.
func (w *world) redisOptions(who string) redisconn.Options {
	return redisconn.Options{
		Topology: redisconn.Single, Addresses: []string{"redis:6379"}, PoolSize: 4, ConnectTimeout: timeout,
		Timeout: timeout, BreakerErrors: 20, BreakerPause: time.Second, Log: w.log, Dialer: w.network.dialer(who),
	}
}

// start starts an instance.
func (w *world) start(name, stateDir string, mark int64) *gateway {
	g := &gateway{w: w, name: name, stateDir: stateDir, began: time.Now()}
	var err error
	g.store, err = ledger.NewStore(ledger.StoreOptions{
		Name: "shop", Options: w.redisOptions(name), Events: 10_000, Acknowledged: w.settles, Instance: name,
		StateDir: stateDir, HandOutAfter: 3 * time.Second, Log: w.log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	g.reserver, err = ledger.New(ledger.Options{
		Secret: []byte("0123456789abcdef"), Hold: w.hold, OnNotFound: "release_after_ttl", Grace: grace,
		Timeout: timeout, Clock: func() time.Time { return time.Now().Add(w.skews[mark%2]) },
		Mark: mark, Log: w.log, PerUser: w.perUser, MaxSKUs: 8, MaxKnown: 64, MaxQueue: 64, MaxSettling: 64,
	}, g.store, w.shop.Ask)
	if err != nil {
		w.t.Fatal(err)
	}
	g.reserver.Track(sku)
	if w.waits {
		g.openQueue()
	}
	return g
}

// buy is one shopper: the gateway takes a unit, forwards the order, and tells what became of it.
func (g *gateway) buy(b buying) {
	o := ledger.Order{SKU: []byte(sku), User: []byte(b.user), Key: []byte(b.key), Quantity: b.quantity}
	if g.queue != nil {
		o.Request = request(b.number, g.w.hold)
	}
	out := g.reserver.Reserve(int64(time.Since(g.began)), o)
	g.w.tell("%s buy %s %d: code %d %s", g.name, b.user, b.quantity, out.Code, out.Serial)
	switch {
	case out.Code != ledger.Held || g.w.isDead(g):
		return
	case g.queue != nil:
		g.queue.Accepted(sku)
		g.w.repeat(out.Serial, b)
		return
	}
	g.w.shop.receive(out.Serial, b.user, b.quantity, b.after, b.makes)
	time.Sleep(b.answer)
	if g.w.isDead(g) {
		return
	}
	g.w.tell("%s answer for %s: makes %t, lost %t", g.name, out.Serial, b.makes, b.lost)
	if has("an order is sent again") && b.lost {
		g.w.shop.receive(out.Serial, b.user, b.quantity, b.after, b.makes)
	}
	switch {
	case b.lost && has("a hold is released when time is out"):
		g.reserver.Settle(sku, out.Serial, ledger.Release)
	case b.lost || b.after > b.answer:
		g.reserver.Unknown(sku, out.Serial)
	case b.makes:
		g.reserver.Settle(sku, out.Serial, ledger.Confirm)
	default:
		g.reserver.Settle(sku, out.Serial, ledger.Release)
	}
	g.w.repeat(out.Serial, b)
}

// repeat has the shop say what became of an order once more, to some instance. It says nothing while it does not know.
func (w *world) repeat(serial string, b buying) {
	if b.repeats == 0 {
		return
	}
	time.Sleep(b.repeats) // of synctest
	op := ledger.Release
	switch seen, made := w.shop.has(serial); {
	case made:
		op = ledger.Confirm
	case !seen || b.makes:
		return
	}
	g := w.at(b.number % len(w.gateways))
	if w.isDead(g) {
		return
	}
	w.tell("the shop says again what became of %s: %s", serial, op)
	g.reserver.Settle(sku, serial, op)
}

// stop ends an instance: in good order, or as if it was killed, when its connections are cut.
func (g *gateway) stop(kill bool) {
	wait := 5 * time.Second
	if kill {
		wait = 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if g.queue != nil {
		g.queue.Close(ctx)
	}
	g.reserver.Close(ctx)
	_ = g.store.Close()
}

// startSettler starts the real settler on the modelled database.
func (w *world) startSettler(ctx context.Context) error {
	store, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: w.redisOptions("settler"), Events: 10_000,
		Acknowledged: true,
		Visitor:      true, Log: w.log})
	if err != nil {
		return err
	}
	link, err := redisconn.New(w.redisOptions("settler"))
	if err != nil {
		return err
	}
	w.stream = settle.Stream{Name: "shop", Redis: link}
	s, err := settle.New(w.stream, w.database, settle.Options{Batch: 500, Workers: 1, Log: w.log, Givebacks: w.database,
		Verify:  5*time.Second + time.Microsecond, // at an instant of its own
		Auditor: w.database, Ledger: settler.NewLedgers(store, "", w.hold)})
	if err != nil {
		return err
	}
	w.background.Go(func() {
		s.Run(ctx)
		_ = store.Close()
		_ = link.Close()
	})
	return nil
}

// logTo is a log that goes to the trace.
func logTo(w *world) *slog.Logger {
	timeless := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(writer{w}, &slog.HandlerOptions{ReplaceAttr: timeless}))
}

type writer struct{ w *world }

func (x writer) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("stays frozen")) {
		x.w.named.Store(true)
	}
	if bytes.Contains(p, []byte("if_it_stays_closed")) {
		x.w.advised.Store(true)
	}
	x.w.tell("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func (b buying) String() string {
	return fmt.Sprintf("%s buys %d (key %q): the shop makes it %t after %v, answers after %v, lost %t, repeats %v", b.user,
		b.quantity, b.key, b.makes, b.after, b.answer, b.lost, b.repeats)
}
