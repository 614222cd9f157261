package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/internal/app/stores"
	"sluice/internal/failpoint"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/memstore"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
)

// clocks are the gate's own, which runs evenly, and the one by which hours are kept, which all instances share.
type clocks struct {
	now  func() int64
	wall func() time.Time
}

// reserver is the ledger behind routes that reserve. While it could not be opened yet, since Redis is away, they hear
// stock_error and everything else is served.
type reserver struct {
	config *config.Config
	Store  protocol.Store
	redis  *redisstore.Store // nil = the ledger is in memory
	status *ledger.StatusURL // nil = the upstream cannot be asked
	mirror ledger.Mirror     // nil = none
	clocks
	log *slog.Logger

	reserver atomic.Pointer[ledger.Reserver] // nil = the ledger is not open yet
	stop     context.CancelFunc
	first    chan error    // what came of the first attempt to open the ledger
	done     chan struct{} // opening has ended

	watching sync.WaitGroup
}

// askAgain is when an order that was not looked up does well to come again.
const askAgain = time.Second

const (
	OpenTimeout = 3 * time.Second
	openAgain   = 500 * time.Millisecond
	settleLast  = 5 * time.Second // what the ledger has not heard by then at the end is written to the log
)

// openReserver begins to open the ledger; await tells what came of it. Redis takes its time, in which a gate that
// starts has other things to do.
func openReserver(c *config.Config, memory *memstore.Store, mirror ledger.Mirror, by clocks, log *slog.Logger) (
	*reserver, error,
) {
	o := &reserver{config: c, mirror: mirror, clocks: by, log: log, first: make(chan error, 1), done: make(chan struct{})}
	if c.Stock.Reserve.StatusURL != "" {
		var err error
		if o.status, err = ledger.NewStatusURL(c.Stock.Reserve.StatusURL); err != nil {
			return nil, c.Errorf("stock.reserve.status_url", "%v", err)
		}
	}
	if c.Stock.Source == "memory" {
		if memory == nil {
			memory = memstore.New()
		}
		o.Store = memory
	} else {
		var err error
		if o.redis, err = stores.OpenLedger(c, false, log); err != nil {
			return nil, err
		}
		o.Store = o.redis
	}
	o.Store = failpoint.Store(o.Store)
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	go o.run(ctx)
	return o, nil
}

// run opens the ledger, and has it looked after from the first attempt on.
func (o *reserver) run(ctx context.Context) {
	defer close(o.done)
	err := o.open(ctx)
	o.readFirst(ctx)
	o.watching.Go(func() { o.watch(ctx) })
	unfit := errors.Is(err, redisstore.ErrUnfit)
	if err != nil && !unfit {
		o.log.Warn("cannot open the ledger; orders on reserve routes are rejected with 503 stock_error until it opens", "err",
			err)
	}
	o.first <- err
	if err != nil && !unfit {
		o.openLater(ctx)
	}
}

// await waits for the first attempt, once. A Redis that must not keep a ledger is an error; one that is away is waited
// for in the background.
func (o *reserver) await() error {
	if err := <-o.first; errors.Is(err, redisstore.ErrUnfit) {
		return o.config.Errorf("stock.redis.addresses",
			"%v; set it with: redis-cli config set maxmemory-policy noeviction", err)
	}
	return nil
}

// open makes the reserver.
func (o *reserver) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	options, err := o.options(ctx)
	if err != nil {
		return err
	}
	var source ledger.OrderStatusSource
	if o.status != nil {
		source = o.status
	}
	r, err := ledger.New(options, o.Store, source)
	if err != nil {
		return err
	}
	o.reserver.Store(r)
	return nil
}

func (o *reserver) options(ctx context.Context) (ledger.Options, error) {
	r := o.config.Stock.Reserve
	options := ledger.Options{
		Secret: []byte(r.Secret), PerUser: int64(r.MaxPerUser), Hold: r.ReservationTTL, Keep: stores.KeepReleased,
		OnNotFound:    r.OnNotFound,
		MaxBatch:      r.MaxBatch,
		Timeout:       o.config.Stock.Redis.ConnectTimeout + o.config.Stock.Redis.Timeout,
		Resend:        o.config.Stock.Redis.Timeout,
		SoldOutMemory: o.config.Stock.SoldOutTTL,
		MetricSKUs:    o.config.Ops.MetricsMaxSKUs,
		Named:         labelledSKUs(o.config),
		Mirror:        o.mirror,
		Now:           o.now, Wall: o.wall, Log: o.log,
	}
	if o.redis == nil {
		if len(options.Secret) == 0 {
			options.Secret = protocol.NewSecret()
		}
		return options, nil
	}
	if err := o.redis.Check(ctx); err != nil {
		return options, err
	}
	var err error
	if len(options.Secret) == 0 {
		if options.Secret, err = o.redis.Secret(ctx); err != nil {
			return options, err
		}
	}
	options.Mark, err = o.redis.Mark(ctx)
	return options, err
}

// openLater tries again until it succeeds or the gate ends.
func (o *reserver) openLater(ctx context.Context) {
	tick := time.NewTicker(openAgain)
	defer tick.Stop()
	unfit := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := o.open(ctx)
		if err == nil {
			o.readFirst(ctx)
			o.log.Info("the ledger is open")
			return
		}
		if errors.Is(err, redisstore.ErrUnfit) && !unfit {
			unfit = true
			o.log.Error("the ledger stays closed; orders on reserve routes are rejected with 503 stock_error", "err", err)
		}
	}
}

const (
	watchEvery = 5 * time.Second
	watchRests = 20      // and so many times as long as a list of all SKUs took, for the sake of Redis
	mostWatch  = 10_000  // SKUs whose holds are looked after although no request asks for them
	mostListed = 100_000 // SKUs that are known to have a ledger
)

// watch lets the reserver look after every ledger, also those without requests on this instance: another one may
// have died with their orders. Of more than mostWatch it knows the names.
func (o *reserver) watch(ctx context.Context) {
	for {
		began := time.Now()
		if d := o.reserver.Load(); d != nil {
			o.watchAll(ctx, d)
		}
		pause := time.NewTimer(max(watchEvery, watchRests*time.Since(began)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

func (o *reserver) watchAll(ctx context.Context, d *ledger.Reserver) {
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	skus, err := o.Store.SKUs(ctx, mostListed)
	if err != nil {
		return // what is wrong with Redis is said elsewhere
	}
	for i, sku := range skus {
		if i < mostWatch {
			d.Track(sku)
		} else {
			d.Preload(sku)
		}
	}
}

// close settles what is pending and closes the reserver.
func (o *reserver) close() {
	o.stop()
	<-o.done
	o.watching.Wait()
	if d := o.reserver.Load(); d != nil {
		ctx, cancel := context.WithTimeout(context.Background(), settleLast)
		defer cancel()
		d.Close(ctx)
	}
	if o.redis != nil {
		_ = o.redis.Close()
	}
	if o.status != nil {
		o.status.Close()
	}
}

// Decided implements proxy.Orders.
func (o *reserver) Decided(now int64, in proxy.Order) (proxy.Reservation, bool) {
	d := o.reserver.Load()
	if d == nil {
		return proxy.Reservation{Reason: reject.StockError}, true
	}
	out, closed := d.Cached(now, ledger.Order(in))
	if !closed {
		return proxy.Reservation{LookUp: out.LookUp}, false
	}
	return o.reservation(in, out), true
}

// LookUp implements proxy.Orders.
func (o *reserver) LookUp(now int64, in proxy.Order) (proxy.Reservation, bool) {
	d := o.reserver.Load()
	if d == nil {
		return proxy.Reservation{Reason: reject.StockError}, true
	}
	out, found := d.LookUp(now, ledger.Order(in))
	if !found {
		return proxy.Reservation{}, false
	}
	return o.reservation(in, out), true
}

// Reserve implements proxy.Orders.
func (o *reserver) Reserve(now int64, in proxy.Order) proxy.Reservation {
	d := o.reserver.Load()
	if d == nil {
		return proxy.Reservation{Reason: reject.StockError}
	}
	return o.reservation(in, d.Reserve(now, ledger.Order(in)))
}

// reservation says in the gate's words what the ledger said of an order.
func (by clocks) reservation(in proxy.Order, out ledger.Outcome) proxy.Reservation {
	t := proxy.Reservation{Serial: out.Serial, Deadline: out.Deadline}
	switch out.Code {
	case protocol.Held:
		t.Reason = reject.Admitted
	case protocol.ReplayHeld:
		t.Reason = reject.InProgress
	case protocol.ReplaySold:
		t.Reason = reject.Duplicate
		if len(in.Key) > 0 {
			t.Reason = reject.Confirmed
		}
	case protocol.SoldOut:
		t.Reason = reject.SoldOut
		if out.Unverified {
			t.Wait = askAgain
		}
	case ledger.Undecided:
		t.Reason = reject.Undecided
	case protocol.NotOnSale:
		t.Reason = offSale(out.State)
		if out.State == protocol.Waiting {
			t.Wait = time.UnixMilli(out.Opens).Sub(by.wall())
		}
	case protocol.UserLimit:
		t.Reason, t.Serial = reject.Duplicate, "" // it left no trace that could be asked for
	case protocol.OtherOrder:
		t.Reason, t.Serial = reject.KeyReused, ""
	case protocol.Released:
		t.Reason = reject.Released
	case protocol.UnknownSKU:
		t.Reason = reject.UnknownSKU
	case ledger.Overloaded:
		t.Reason = reject.Concurrency
	case ledger.Invalid:
		t.Reason = reject.BadRequest
	default: // Unsure
		t.Reason = reject.StockError
	}
	return t
}

func offSale(s protocol.State) reject.Reason {
	switch s {
	case protocol.Waiting:
		return reject.NotStarted
	case protocol.Ended, protocol.Over:
		return reject.Ended
	case protocol.Frozen, protocol.Doubted, protocol.Lost:
		return reject.StockError
	}
	return reject.Paused
}

// Settle implements proxy.Orders.
func (o *reserver) Settle(sku []byte, serial string, f metrics.OrderOutcome) {
	d := o.reserver.Load() // there is one: it took the order
	switch f {
	case metrics.OrderConfirmed:
		d.Settle(string(sku), protocol.Item{Serial: serial}, protocol.Confirm)
	case metrics.OrderRejected:
		d.Settle(string(sku), protocol.Item{Serial: serial}, protocol.Release)
	default:
		d.Unknown(string(sku), serial)
	}
}

// stateNames are the states of a record, as clients and operators read them.
var stateNames = map[byte]string{'H': "held", 'C': "confirmed", 'X': "released", 'R': "refunded"}

// State implements proxy.Orders.
func (o *reserver) State(now int64, sku, serial []byte) (proxy.OrderState, reject.Reason) {
	d := o.reserver.Load()
	if d == nil {
		return proxy.OrderState{}, reject.StockError
	}
	r, of, ok, err := d.State(string(sku), string(serial))
	switch {
	case errors.Is(err, ledger.ErrTooMany):
		return proxy.OrderState{}, reject.Rate
	case err != nil:
		return proxy.OrderState{}, reject.StockError
	case !ok:
		return proxy.OrderState{State: "none"}, reject.Admitted
	}
	return proxy.OrderState{SKU: of, State: stateNames[r.Status], Deadline: r.Deadline}, reject.Admitted
}

// opened reports whether orders can be taken, for readyz.
func (o *reserver) opened() (string, bool) {
	if o.reserver.Load() == nil {
		return "the ledger could not be opened yet", false
	}
	return "open", true
}

// Describe implements prometheus.Collector.
func (o *reserver) Describe(ch chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (o *reserver) Collect(ch chan<- prometheus.Metric) {
	if d := o.reserver.Load(); d != nil {
		d.Collect(ch)
	}
	if o.redis != nil {
		o.redis.Collect(ch)
	}
}
