package settler

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// message is a request as a receiver reads it.
type message struct {
	SKU, Position, State string
	Whole                bool
	Total, Held, Sold    int64
	Unreadable           string
	Changes              []struct {
		Serial, Status, User           string
		Quantity, Time, Epoch, Version int64
	}
}

// receiver is a real HTTP server that verifies every request and keeps what it has accepted.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	answer   func(m message) (status int, retryAfter string) // nil = 204
	tries    []time.Time
	accepted []message
	sending  map[string]context.Context // the request of each SKU that is not answered
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, sending: map[string]context.Context{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

// genuine is the check that docs/settlement-reference.md gives to receivers.
func genuine(header string, body []byte) bool {
	stamp, sum, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte(webhookKey))
	mac.Write(append([]byte(stamp+"."), body...))
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	age := time.Since(time.Unix(seconds, 0))
	return err == nil && hmac.Equal([]byte(sum), []byte(hex.EncodeToString(mac.Sum(nil)))) && age.Abs() < 5*time.Minute
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var m message
	if err != nil { // the settler was stopped while it sent
		return
	}
	if err := json.Unmarshal(body, &m); err != nil || q.Method != "POST" ||
		!genuine(q.Header.Get("Sluice-Webhook-Signature"), body) {
		r.t.Errorf("%s %q: %v, signature %q", q.Method, body, err, q.Header.Get("Sluice-Webhook-Signature"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.sending[m.SKU]
	r.sending[m.SKU] = q.Context()
	if other != nil && !gone(other) {
		r.t.Errorf("two requests of %q at once", m.SKU)
	}
	defer func() {
		if r.sending[m.SKU] == q.Context() {
			delete(r.sending, m.SKU)
		}
	}()
	r.mu.Unlock()
	time.Sleep(time.Millisecond) // others may come meanwhile
	r.mu.Lock()
	r.tries = append(r.tries, time.Now())
	status, after := http.StatusNoContent, ""
	if r.answer != nil {
		status, after = r.answer(m)
	}
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	if status/100 == 3 {
		w.Header().Set("Location", r.URL+"/elsewhere")
	}
	if status/100 == 2 {
		r.accepted = append(r.accepted, m)
	}
	w.WriteHeader(status)
	_, _ = w.Write(make([]byte, 0))
}

// gone waits until the settler of a request that is not answered has given it up, as one that is stopped does. The
// server may hear of that later than of the next settler's request.
func gone(request context.Context) bool {
	select {
	case <-request.Done():
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

// respond changes what every request gets.
func (r *receiver) respond(answer func(message) (int, string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// got are the changes of a SKU in the order of their arrival: serial, status, version.
func (r *receiver) got(sku string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.accepted {
		for _, c := range m.Changes {
			if m.SKU == sku {
				all = append(all, fmt.Sprintf("%s %s %d", c.Serial, c.Status, c.Version))
			}
		}
	}
	return all
}

func (r *receiver) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tries)
}

// site is a Redis with a ledger, a database and a receiver.
type site struct {
	*testing.T
	server   *redistest.Server
	receiver *receiver
	stream   settle.Stream
	ledger   *ledger.Store
	store    *sqlstore.Store
	timeout  time.Duration // of a request
	minWait  time.Duration // after a fault
}

func newSite(t *testing.T, url string) *site {
	t.Helper()
	s := &site{T: t, server: redistest.Start(t), receiver: newReceiver(t), timeout: 30 * time.Second}
	s.stream = settle.Stream{Name: "shop", Redis: storetest.Link(t, s.server.Addr)}
	var err error
	s.ledger, err = ledger.NewStore(ledger.StoreOptions{Name: "shop",
		Options: storetest.Redis(s.server.Addr), Events: 1_000_000, Acknowledged: true, Visitor: true,
	})
	s.need(err)
	t.Cleanup(func() { s.ledger.Close() })
	s.store, err = sqlstore.Open(sqlstore.Options{URL: url, Webhook: true})
	s.need(err)
	t.Cleanup(func() { s.store.Close() })
	_, err = s.store.Migrate(t.Context())
	s.need(err)
	return s
}

func sqlite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "settle.db") }

// eachDatabase runs f with SQLite, and where dbtest runs servers with PostgreSQL.
func eachDatabase(t *testing.T, f func(*site)) {
	t.Run("sqlite", func(t *testing.T) { f(newSite(t, sqlite(t))) })
	t.Run("postgres", func(t *testing.T) { f(newSite(t, dbtest.InPostgres(t))) })
}

func (s *site) need(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// trimmer lets the stream forget. A settler changes nothing else here.
type trimmer struct {
	settle.ChangeableLedger
	ledger *ledger.Store
}

func (l trimmer) Acknowledge(ctx context.Context, sku, id string) error {
	_, err := l.ledger.Acknowledge(ctx, sku, id)
	return err
}

// settler is a new settler of one of the targets, as after a restart.
func (s *site) settler(target string) *settle.Settler {
	s.Helper()
	var db settle.Database = s.store
	if target == settle.WebhookTarget {
		db = newWebhook(s.store, webhookOptions{
			URL: s.receiver.URL, Key: []byte(webhookKey), Batch: 3, Timeout: s.timeout, MinWait: s.minWait,
		})
	}
	worker, err := settle.New(s.stream, db, settle.Options{
		Target: target, Batch: 5, Ledger: trimmer{ledger: s.ledger}, Log: slog.New(slog.DiscardHandler),
	})
	s.need(err)
	return worker
}

// run runs a settler until stop is called, or the test ends.
func (s *site) run(target string) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	var running sync.WaitGroup
	worker := s.settler(target)
	running.Go(func() { worker.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	s.Cleanup(stop)
	return stop
}

func (s *site) set(sku string, total int64) {
	s.Helper()
	_, err := s.ledger.SetTotal(s.Context(), sku, total, 0)
	s.need(err)
}

// buy reserves and confirms n orders of one unit, numbered from first on.
func (s *site) buy(sku string, first, n int) {
	s.Helper()
	now := time.Now().UnixMilli()
	for i := first; i < first+n; i++ {
		items := []ledger.Item{{Serial: fmt.Sprintf("%s-%d", sku, i), User: "u\xff", Quantity: 1}}
		_, err := s.ledger.Reserve(s.Context(), sku, 0, now, now+time.Hour.Milliseconds(), items, make([]ledger.Code, 1))
		s.need(err)
		_, err = s.ledger.Finish(s.Context(), sku, now, now, ledger.Confirm, items, make([]ledger.Done, 1))
		s.need(err)
	}
}

// want are the changes of n bought orders, without a duplicate.
func want(sku string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d held %d", sku, i, 2*i+2), fmt.Sprintf("%s-%d sold %d", sku, i, 2*i+3))
	}
	return all
}

func (s *site) entries(sku string) []settle.Entry {
	s.Helper()
	all, err := s.stream.Entries(s.Context(), sku, settle.Position{}, 10_000)
	s.need(err)
	return all
}

func (s *site) position(target, sku string) settle.Position {
	s.Helper()
	c, _, err := s.store.For(target).Cursor(s.Context(), sku)
	s.need(err)
	return c.Position
}

func (s *site) soon(what string, done func() bool) {
	s.Helper()
	testkit.Eventually(s.T, what, done)
}

// once removes changes that came again. Their order is that of the first arrivals.
func once(all []string) (first []string) {
	seen := map[string]bool{}
	for _, c := range all {
		if !seen[c] {
			first = append(first, c)
		}
		seen[c] = true
	}
	return first
}
