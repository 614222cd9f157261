package settler

// The webhook gets the changes of the stock ledgers by a cursor of its own in the database. Every change is sent at
// least once, those of a SKU in the ledger's order, and the cursor moves only after a 2xx. A receiver that rejects a
// change gets it again until it takes it: no change is left out. One settler alone sends the changes of a SKU at a
// time. It does not follow redirects, or read more than 4 KiB of a response.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/settle"
	"sluice/settle/sqlstore"
)

const (
	webhookMinWait     = time.Second     // after the first fault of a SKU, by default
	webhookMaxWait     = 5 * time.Minute // between two tries
	webhookLeaseMargin = 5 * time.Second // beyond a request's time, for the database
)

// webhookOptions configure a webhookTarget.
type webhookOptions struct {
	URL     string
	Key     []byte        // signs each request
	Batch   int           // changes of a request at most, 1 to 1000
	Timeout time.Duration // of a request
	MinWait time.Duration // after the first fault of a SKU; 0 = 1 s

	// Here, if not nil, reports whether a SKU is settled in this home now.
	Here func(ctx context.Context, sku string) (bool, error)
}

// webhookTarget implements settle.Database: what it settles is sent. It is safe for concurrent use.
type webhookTarget struct {
	o        webhookOptions
	store    *sqlstore.Store
	poster   *poster
	requests *prometheus.CounterVec

	mu     sync.Mutex
	faults map[string]int // of each SKU since its last success
	until  time.Time      // the receiver wants no request before
}

// newWebhook returns a target whose cursors are in store.
func newWebhook(store *sqlstore.Store, o webhookOptions) *webhookTarget {
	if o.MinWait == 0 {
		o.MinWait = webhookMinWait
	}
	return &webhookTarget{
		o: o, store: store.For(settle.WebhookTarget), faults: make(map[string]int),
		poster: newPoster(o.URL, o.Key, o.Timeout),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_settler_webhook_requests_total",
			Help: "Requests to the webhook: 2xx, 3xx, 4xx, 5xx, or error without a response.",
		}, []string{"code"}),
	}
}

// Describe implements prometheus.Collector.
func (t *webhookTarget) Describe(ch chan<- *prometheus.Desc) { t.requests.Describe(ch) }

// Collect implements prometheus.Collector.
func (t *webhookTarget) Collect(ch chan<- prometheus.Metric) { t.requests.Collect(ch) }

// Cursor implements settle.Database.
func (t *webhookTarget) Cursor(ctx context.Context, sku string) (settle.Cursor, bool, error) {
	return t.store.Cursor(ctx, sku)
}

// Cursors implements settle.Database.
func (t *webhookTarget) Cursors(ctx context.Context) (map[string]settle.Cursor, error) {
	return t.store.Cursors(ctx)
}

// Settled implements settle.Database.
func (t *webhookTarget) Settled(ctx context.Context, sku string) (settle.Position, error) {
	return t.store.Settled(ctx, sku)
}

// Orders implements settle.Database: the target keeps none.
func (t *webhookTarget) Orders(context.Context, string, int64, func(settle.Record)) error { return nil }

// Report implements settle.Database.
func (t *webhookTarget) Report(ctx context.Context, conflicts ...settle.Conflict) error {
	return t.store.Report(ctx, conflicts...)
}

// Settle implements settle.Database. It sends the batch under a lease of the cursor, and then moves the cursor.
func (t *webhookTarget) Settle(ctx context.Context, b settle.Batch) (settle.Outcome, error) {
	if wait := t.pause(); wait > 0 {
		return settle.Outcome{}, &settle.PostponedError{Wait: wait, Err: errors.New("the webhook asks to wait")}
	}
	all, err := bodies(b, t.o.Batch)
	if err != nil {
		return settle.Outcome{}, err
	}
	lease, err := t.send(ctx, b, all)
	if err == nil {
		err = t.unhurried(ctx, func(ctx context.Context) error { return t.store.Advance(ctx, b, lease) })
	} else if lease != 0 {
		err = errors.Join(err, t.unhurried(ctx, func(ctx context.Context) error {
			return t.store.Release(ctx, b.SKU, lease)
		}))
	}
	return settle.Outcome{Cursor: b.To}, err
}

// send sends one request after another, each under a lease that is long enough. It ends when the SKU is moved: what the
// new home sends is newer. It returns the lease, 0 = none.
func (t *webhookTarget) send(ctx context.Context, b settle.Batch, all [][]byte) (lease int64, err error) {
	for _, text := range all {
		err := t.unhurried(ctx, func(ctx context.Context) error {
			longer, err := t.store.Lease(ctx, b, lease, t.o.Timeout+webhookLeaseMargin)
			if err == nil {
				lease = longer
			}
			return err
		})
		if err != nil {
			return lease, err
		}
		if err := t.isHere(ctx, b.SKU); err != nil {
			return lease, err
		}
		class, after, err := t.poster.Post(ctx, text)
		t.requests.WithLabelValues(class).Inc()
		if err != nil {
			return lease, &settle.PostponedError{
				Wait: t.fail(b.SKU, after), Err: fmt.Errorf("send to the webhook: %w", err),
			}
		}
	}
	t.mu.Lock()
	delete(t.faults, b.SKU)
	t.mu.Unlock()
	return lease, nil
}

// isHere is settle.ErrElsewhere if another home settles the SKU now.
func (t *webhookTarget) isHere(ctx context.Context, sku string) error {
	if t.o.Here == nil {
		return nil
	}
	here, err := t.o.Here(ctx, sku)
	if err == nil && !here {
		err = settle.ErrElsewhere
	}
	return err
}

// unhurried changes the cursor's row also while the settler stops: a lease that stays behind would hold up the next
// one, and a response that is not noted is asked for again.
func (t *webhookTarget) unhurried(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookLeaseMargin)
	defer cancel()
	return change(ctx)
}

// fail returns how long the SKU waits after another fault: MinWait, twice that, four times ... 5 min, or longer if the
// receiver wants it. Then no other SKU is sent before either.
func (t *webhookTarget) fail(sku string, after time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := webhookMaxWait
	if n := t.faults[sku]; n < 9 {
		wait = min(t.o.MinWait<<n, webhookMaxWait)
	}
	t.faults[sku]++
	if after > 0 {
		t.until = time.Now().Add(after)
	}
	return max(wait, after)
}

// pause is how long the receiver wants no request.
func (t *webhookTarget) pause() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.until)
}
