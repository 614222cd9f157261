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
	"sluice/gateway/stores"
	"sluice/internal/embedredis"
	"sluice/internal/periodic"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// orderClocks are the gate's own, which runs evenly, and the one by which hours are kept, which all instances share.
type orderClocks struct {
	Now  func() int64 // in nanoseconds
	Wall func() time.Time
}

// orderLedger is the ledger behind routes that reserve. While it could not be opened yet, since Redis is away, they
// hear stock_error and everything else is served.
type orderLedger struct {
	Store  *ledger.Store
	now    atomic.Pointer[ledgerRules]
	clocks orderClocks
	log    *slog.Logger

	otherHours atomic.Pointer[string] // a ledger whose hours are not those of the schedule; nil or "" = none

	reserver atomic.Pointer[ledger.Reserver] // nil = the ledger is not open yet
	stop     context.CancelFunc
	first    chan error // what came of the first attempt to open the ledger
	work     sync.WaitGroup

	lost    atomic.Pointer[string] // a SKU whose ledger is gone; nil = none
	none    atomic.Bool            // Redis lists no SKU
	unknown chan struct{}          // holds one: a SKU that is asked for is not known
	left    leftOrders
}

// ledgerRules is what a configuration says. It does not change.
type ledgerRules struct {
	*config.Config
	quotas *quotas           // of the sales; nil = no sale bounds what a user may have
	status *ledger.StatusURL // nil = the upstream cannot be asked
	mirror ledger.Mirror     // nil = none
}

const (
	// LedgerTimeout bounds one attempt to open a ledger.
	LedgerTimeout = 3 * time.Second
	ledgerRetry   = 500 * time.Millisecond
	// leastGrace is how late the upstream's clock may be on every route. The last attempt of an order of the queue may end
	// with its reservation, so queue.grace counts here where it is longer.
	leastGrace = 5 * time.Second
	// ledgerCloseTimeout is how long the end of a gate waits: what a ledger has not heard by then is written to the log.
	ledgerCloseTimeout = 5 * time.Second
)

// openLedger begins to open the ledger, in memory where source is "memory"; Await tells what came of it. Redis takes
// its time, in which a gate that starts has other things to do.
func openLedger(c *config.Config, memory *embedredis.Server, mirror ledger.Mirror, by orderClocks,
	log *slog.Logger,
) (*orderLedger, error) {
	o := &orderLedger{clocks: by, log: log, first: make(chan error, 1), unknown: make(chan struct{}, 1)}
	o.left.found = make(chan struct{}, 1)
	o.left.queues = func() bool { return o.now.Load().Queues() }
	var err error
	if c.Stock.Source == "memory" {
		o.Store, err = stores.MemoryLedger(memory, c, false, log)
	} else {
		o.Store, err = stores.OpenLedger(c, false, log)
	}
	if err != nil {
		return nil, err
	}
	use, err := o.Prepare(c, mirror)
	if err != nil {
		_ = o.Store.Close()
		return nil, err
	}
	use()
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	o.work.Go(func() { o.run(ctx) })
	return o, nil
}

// Prepare finds out whether the ledger can go by c; use has it go by c from then on. An order keeps the deadline that
// it was given.
func (o *orderLedger) Prepare(c *config.Config, mirror ledger.Mirror) (use func(), err error) {
	before, next := o.now.Load(), &ledgerRules{Config: c, quotas: newQuotas(c, o.Store), mirror: mirror}
	switch text := c.Stock.Reserve.StatusURL; {
	case text == "":
	case before != nil && text == before.Stock.Reserve.StatusURL:
		next.status = before.status
	default:
		if next.status, err = ledger.NewStatusURL(text); err != nil {
			return nil, c.Errorf("stock.reserve.status_url", "%v", err)
		}
	}
	return func() {
		o.now.Store(next)
		if d := o.Reserver(); d != nil {
			d.Use(o.settings())
		}
		if before != nil && before.status != nil && before.status != next.status {
			before.status.Close()
		}
	}, nil
}

// run opens the ledger, and has it looked after from the first attempt on. It tries again until it succeeds or the gate
// ends.
func (o *orderLedger) run(ctx context.Context) {
	err := o.open(ctx)
	o.readFirst(ctx)
	o.work.Go(func() { o.watch(ctx) })
	if err == nil || needsOperator(err) {
		o.first <- err
		return
	}
	o.log.Warn("cannot open the ledger; "+o.whileClosed()+" until it opens", "err", err, "fix", redisconn.Remedy(err))
	o.first <- err
	for told := false; periodic.Pause(ctx, ledgerRetry); {
		switch err := o.open(ctx); {
		case err == nil:
			o.readFirst(ctx)
			o.log.Info("the ledger is open")
			return
		case needsOperator(err) && !told:
			told = true
			o.log.Error("the ledger stays closed; "+o.whileClosed(), "err", err)
		}
	}
}

// whileClosed is what becomes of orders.
func (o *orderLedger) whileClosed() string {
	if o.now.Load().Mode == "observe" {
		return `orders on reserve routes are forwarded (mode = "observe")`
	}
	return "orders on reserve routes are rejected with 503 stock_error"
}

// needsOperator reports whether no ledger can be opened until an operator changes something.
func needsOperator(err error) bool {
	return errors.Is(err, ledger.ErrUnfit) || errors.Is(err, redisconn.ErrClaimed)
}

// Reserver is what reserves in the ledger; nil = the ledger is not open yet.
func (o *orderLedger) Reserver() *ledger.Reserver { return o.reserver.Load() }

// Status asks the upstream about orders; nil = it cannot be asked.
func (o *orderLedger) Status() *ledger.StatusURL { return o.now.Load().status }

// Await waits for the first attempt, once. A Redis that must not keep a ledger, or where the name is another shop's, is
// an error; one that is away is waited for in the background.
func (o *orderLedger) Await() error {
	switch err := <-o.first; {
	case errors.Is(err, ledger.ErrUnfit):
		return o.now.Load().Errorf("stock.redis.addresses",
			"%v; set it with: redis-cli config set maxmemory-policy noeviction", err)
	case errors.Is(err, redisconn.ErrClaimed):
		return o.now.Load().Errorf("name", "%v", err)
	}
	return nil
}

// open makes the reserver.
func (o *orderLedger) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, LedgerTimeout)
	defer cancel()
	options, ask := o.settings()
	if err := o.identify(ctx, &options); err != nil {
		return err
	}
	r, err := ledger.New(options, failStore(o.Store), ask)
	if err != nil {
		return err
	}
	o.reserver.Store(r)
	r.Use(o.settings()) // what is in force may have changed meanwhile
	return nil
}

// maxBatch is how many orders one call of a script has. 64 occupy a Redis that others share for about 1 ms.
const maxBatch = 64

// settings are what a reserver goes by, and who is asked about orders.
func (o *orderLedger) settings() (options ledger.Options, ask ledger.AskOrder) {
	now := o.now.Load()
	r := now.Stock.Reserve
	if now.status != nil {
		ask = now.status.Ask
	}
	return ledger.Options{
		Secret: []byte(r.Secret), PerUser: int64(r.MaxPerUser), Hold: r.ReservationTTL, Keep: ledger.KeepReleased,
		OnNotFound: r.OnNotFound, SoldOutMemory: now.Stock.SoldOutTTL,
		Grace:      max(leastGrace, now.Queue.Grace),
		MaxBatch:   maxBatch,
		Timeout:    now.Stock.Redis.ConnectTimeout() + now.Stock.Redis.Timeout,
		Resend:     now.Stock.Redis.Timeout,
		MetricSKUs: now.Ops.MetricsMaxSKUs,
		Named:      stores.LabelledSKUs(now.Config),
		Mirror:     now.mirror,
		Now:        o.clocks.Now, Wall: o.clocks.Wall, Log: o.log,
	}, ask
}

// identify adds what Redis keeps for all instances, where it is fit.
func (o *orderLedger) identify(ctx context.Context, options *ledger.Options) (err error) {
	if err = o.Store.Check(ctx); err != nil {
		return err
	}
	if len(options.Secret) == 0 {
		if options.Secret, err = o.Store.Secret(ctx); err != nil {
			return err
		}
	}
	options.Mark, err = o.Store.Mark(ctx)
	return err
}

const (
	watchEvery = 5 * time.Second
	watchSoon  = time.Second // while clients ask for a SKU that is not known
	watchRests = 20          // and so many times as long as a list of all SKUs took, for the sake of Redis
	mostWatch  = 10_000      // SKUs whose holds are looked after although no request asks for them
)

// watch lets the reserver look after every ledger, also those without requests on this instance: another one may
// have died with their orders. Of more than mostWatch it knows the names. A SKU that is asked for and not known may be
// new.
func (o *orderLedger) watch(ctx context.Context) {
	for {
		began := time.Now()
		if d := o.Reserver(); d != nil {
			o.watchAll(ctx, d)
		}
		if !periodic.Pause(ctx, max(watchSoon, watchRests*time.Since(began))) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-o.unknown:
		case <-time.After(watchEvery - watchSoon):
		}
	}
}

// NoteUnknown has the ledgers listed soon, since a client asks for a SKU that is lost or not known here. It does not
// wait.
func (o *orderLedger) NoteUnknown() {
	select {
	case o.unknown <- struct{}{}:
	default:
	}
}

func (o *orderLedger) watchAll(ctx context.Context, d *ledger.Reserver) {
	ctx, cancel := context.WithTimeout(ctx, LedgerTimeout)
	defer cancel()
	skus, err := o.Store.SKUs(ctx, ledger.MaxListed)
	if err != nil {
		return // what is wrong with Redis is said elsewhere
	}
	o.none.Store(len(skus) == 0)
	for i, sku := range skus {
		if i < mostWatch {
			d.Track(sku)
		} else {
			d.Preload(sku)
		}
	}
	if o.Store.NoteLost(ctx, skus) == nil {
		o.noteLost(ctx)
	}
	o.left.find(ctx, o.Store, skus, o.log)
}

// noteLost keeps the first SKU that Redis lists without a ledger, for readyz.
func (o *orderLedger) noteLost(ctx context.Context) {
	lost, err := o.Store.LostSKUs(ctx, 1)
	switch {
	case err == nil && len(lost) > 0:
		o.lost.Store(&lost[0])
	case err == nil:
		o.lost.Store(nil)
	}
}

// Close settles what is pending and closes the reserver.
func (o *orderLedger) Close() {
	o.stop()
	o.work.Wait()
	if d := o.Reserver(); d != nil {
		ctx, cancel := context.WithTimeout(context.Background(), ledgerCloseTimeout)
		defer cancel()
		d.Close(ctx)
	}
	_ = o.Store.Close()
	if status := o.Status(); status != nil {
		status.Close()
	}
}

// Check tells whether orders can be taken, for readyz.
func (o *orderLedger) Check() (string, admin.Health) {
	if o.Reserver() == nil {
		return "the ledger could not be opened yet", admin.Unready
	}
	if sku := o.lost.Load(); sku != nil {
		return fmt.Sprintf("%q is listed in Redis and has no ledger, so its orders are rejected: %s; sluice stock list "+
			"shows all such SKUs", *sku, ledger.RecoverLost(*sku)), admin.Degraded
	}
	if text := o.Reserver().Untaken(); text != "" {
		return text, admin.Degraded
	}
	if sku := o.Reserver().Stuck(); sku != "" {
		return fmt.Sprintf("%q stays frozen, so its orders are rejected: sluice stock recover %s shows both books; with "+
			"--from FILE --apply it opens it; sluice stock list shows all such SKUs", sku, sku), admin.Degraded
	}
	if text := o.Store.Unkept(); text != "" {
		return text, admin.Degraded
	}
	if o.none.Load() {
		o.NoteUnknown() // one may have been made since
		return fmt.Sprintf("no SKU has one: every order would be rejected as unknown_sku; if it was ever sold: %s; else: %s",
			ledger.RecoverLost("SKU"), "sluice stock set SKU UNITS"), admin.Degraded
	}
	return "open", admin.Healthy
}

// Describe implements prometheus.Collector.
func (o *orderLedger) Describe(ch chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (o *orderLedger) Collect(ch chan<- prometheus.Metric) {
	if d := o.Reserver(); d != nil {
		d.Collect(ch)
	}
	o.Store.Collect(ch)
}
