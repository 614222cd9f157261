package settler

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// The environment of a test binary that is a settler or a worker, until it is killed.
const (
	childOf       = "JOBS_TEST_CHILD" // "settler" or "worker"
	childDatabase = "JOBS_TEST_DATABASE"
	childTo       = "JOBS_TEST_TO" // the address of Redis, or the URL of the webhook
)

var (
	jobKinds = []string{"order.held", "order.sold", "order.released", "order.refunded"}
	jobKey   = []byte("0123456789abcdef")
)

func TestJobs_OneForEachSettledChange(t *testing.T) {
	s := newJobSite(t)
	if _, err := s.ledger.SetTotal(t.Context(), "a", 1000, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.sell("a", 50); err != nil {
		t.Fatal(err)
	}
	worker := s.drain("a")
	s.wantsJobs("a", 50)
	if _, err := worker.Rebuild(t.Context(), "a"); err != nil { // it knows all changes
		t.Fatal(err)
	}
	s.wantsJobs("a", 50)
	// What was trimmed before it was read is found by the rows.
	s.exec("UPDATE sluice_order SET status = 'H' WHERE serial = 'a-1'")
	s.exec("DELETE FROM river_job WHERE args->>'serial' = 'a-1' AND kind = 'order.sold'")
	if _, err := worker.Rebuild(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	s.wantsJobs("a", 50)
	// The shop gives an order back by the database first: one job, also when the ledger's own change is settled.
	s.exec("INSERT INTO sluice_giveback (sku, serial) VALUES ('a', 'a-2')")
	due, err := s.store.Due(t.Context(), 1)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	for range 2 {
		known, _, err := s.store.GiveBack(t.Context(), due[0], settle.Position{})
		if err != nil || known != settle.KnownRefunded {
			t.Fatal(known, err)
		}
	}
	now := time.Now().UnixMilli()
	if _, err := s.ledger.Finish(t.Context(), "a", now, now+60_000, ledger.Refund, []ledger.Item{{Serial: "a-2"}},
		make([]ledger.Done, 1)); err != nil {
		t.Fatal(err)
	}
	s.drain("a")
	if n := s.count("SELECT count(*) FROM river_job WHERE args->>'serial' = 'a-2' AND kind = 'order.refunded'"); n != 1 {
		t.Errorf("%d jobs of an order that is given back: want 1", n)
	}
	if n := s.count(`SELECT count(*) FROM river_job WHERE queue = 'sluice' AND args->>'user' = '\x750031'`); n != 2 {
		t.Errorf("%d jobs name the user with a NUL: want 2", n)
	}
}

// Settlers are killed again and again; each change has one job in the end.
func TestJobs_OnceThoughSettlersAreKilled(t *testing.T) {
	s := newJobSite(t)
	const orders = 600
	skus := []string{"k1", "k2"}
	var selling sync.WaitGroup
	for _, sku := range skus {
		if _, err := s.ledger.SetTotal(t.Context(), sku, 10*orders, 0); err != nil {
			t.Fatal(err)
		}
		selling.Go(func() {
			if err := s.sell(sku, orders); err != nil {
				t.Error(err)
			}
		})
	}
	kills := 0
	for ; kills < 15; kills++ {
		one, two := startChild(t, "settler", s.url, s.redis.Addr), startChild(t, "settler", s.url, s.redis.Addr)
		<-time.After(time.Duration(10+7*kills) * time.Millisecond) // a kill comes at any moment
		kill(one)
		kill(two)
	}
	selling.Wait()
	for _, sku := range skus {
		s.drain(sku)
		s.wantsJobs(sku, orders)
	}
	t.Logf("%d settlers killed", 2*kills)
}

// jobReceiver keeps the requests that it gets, and answers the first ones as a test wants.
type jobReceiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []map[string]any
	each func(n int, w http.ResponseWriter)
}

func newJobReceiver(t *testing.T, each func(n int, w http.ResponseWriter)) *jobReceiver {
	r := &jobReceiver{each: each}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		at, sum, _ := strings.Cut(strings.TrimPrefix(q.Header.Get("Sluice-Webhook-Signature"), "t="), ",v1=")
		mac := hmac.New(sha256.New, jobKey)
		mac.Write([]byte(at + "." + string(text)))
		if hex.EncodeToString(mac.Sum(nil)) != sum {
			t.Errorf("the signature %q is not that of %s", q.Header.Get("Sluice-Webhook-Signature"), text)
		}
		var job map[string]any
		if err := json.Unmarshal(text, &job); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got = append(r.got, job)
		n := len(r.got)
		r.mu.Unlock()
		r.each(n, w)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *jobReceiver) requests() []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]map[string]any(nil), r.got...)
}

// A worker dies over a job: the job is rescued by another one. A job that the webhook rejects is tried again.
func TestWork_JobOfADeadWorkerIsRescued(t *testing.T) {
	s := newJobSite(t)
	hang := make(chan struct{})
	r := newJobReceiver(t, func(n int, w http.ResponseWriter) {
		switch n {
		case 1: // the worker dies
			<-hang
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	defer close(hang)
	if _, err := s.ledger.SetTotal(t.Context(), "r", 10, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	items := []ledger.Item{{Serial: "r-1", User: "alice", Quantity: 2}}
	if _, err := s.ledger.Reserve(t.Context(), "r", 0, now, now+60_000, items, make([]ledger.Code, 1)); err != nil {
		t.Fatal(err)
	}
	s.drain("r")
	dead := startChild(t, "worker", s.url, r.URL)
	s.soon("the job is worked", func() bool { return len(r.requests()) == 1 })
	kill(dead)
	// As if an hour had passed, and the dead worker's time to lead too.
	s.exec("UPDATE river_job SET attempted_at = attempted_at - interval '1 hour'")
	s.exec("DELETE FROM river_leader")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- workJobs(ctx, s.pool, work(r.URL, slog.New(slog.DiscardHandler))) }()
	s.soon("the job is done", func() bool { return s.completed() == 1 })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("work: %v", err)
	}
	got := r.requests()
	if len(got) != 3 {
		t.Fatalf("%d requests: want 3: %v", len(got), got)
	}
	for i, job := range got {
		if job["id"] != got[0]["id"] || job["attempt"] != float64(i+1) || job["kind"] != "order.held" ||
			job["sku"] != "r" || job["serial"] != "r-1" || job["user"] != "alice" || job["quantity"] != 2.0 ||
			job["status"] != "held" || job["version"] == nil {
			t.Errorf("request %d: %v", i+1, job)
		}
	}
}

// Two homes, or a database that is restored, have other numbers for the same change: shops deduplicate by id.
func TestWork_IDIsThatOfTheChange(t *testing.T) {
	s := newJobSite(t)
	r := newJobReceiver(t, func(int, http.ResponseWriter) {})
	if _, err := s.ledger.SetTotal(t.Context(), "i", 10, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	items := []ledger.Item{{Serial: "i-1", User: "alice", Quantity: 1}, {Serial: "i-2", User: "bob", Quantity: 1}}
	if _, err := s.ledger.Reserve(t.Context(), "i", 0, now, now+60_000, items, make([]ledger.Code, 2)); err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 2; round++ {
		s.exec("TRUNCATE sluice_order, sluice_cursor, river_job")
		s.drain("i")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- workJobs(ctx, s.pool, work(r.URL, slog.New(slog.DiscardHandler))) }()
		s.soon("the jobs are done", func() bool { return s.completed() == 2 })
		stop()
		if err := <-ended; err != nil {
			t.Errorf("work: %v", err)
		}
	}
	ids := make(map[any]any)
	for _, job := range r.requests() {
		if before, ok := ids[job["serial"]]; ok && before != job["id"] {
			t.Errorf("%v has the ids %v and %v", job["serial"], before, job["id"])
		}
		ids[job["serial"]] = job["id"]
	}
	if len(ids) != 2 || ids["i-1"] == ids["i-2"] {
		t.Errorf("ids: %v: want one for each of two orders", ids)
	}
}

// A webhook that always asks to wait does not keep a job for ever.
func TestWork_RetryAfterIsATryAfterADay(t *testing.T) {
	s := newJobSite(t)
	r := newJobReceiver(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if _, err := s.ledger.SetTotal(t.Context(), "w", 10, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	items := []ledger.Item{{Serial: "w-1", User: "alice", Quantity: 1}}
	if _, err := s.ledger.Reserve(t.Context(), "w", 0, now, now+60_000, items, make([]ledger.Code, 1)); err != nil {
		t.Fatal(err)
	}
	s.drain("w")
	s.exec("UPDATE river_job SET created_at = now() - interval '2 days', attempt = max_attempts - 1")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- workJobs(ctx, s.pool, work(r.URL, slog.New(slog.DiscardHandler))) }()
	s.soon("the job is discarded", func() bool {
		return s.count("SELECT count(*) FROM river_job WHERE state = 'discarded'") == 1
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("work: %v", err)
	}
}

// The example of a shop in Go works the jobs on the same tables.
func TestExample_BooksPointsOnce(t *testing.T) {
	s := newJobSite(t)
	program := filepath.Join(t.TempDir(), "river")
	if out, err := exec.Command("go", "build", "-o", program, "../../examples/river").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := s.ledger.SetTotal(t.Context(), "e", 100, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.sell("e", 20); err != nil {
		t.Fatal(err)
	}
	s.drain("e")
	s.exec("DELETE FROM river_job WHERE kind NOT IN ('order.sold', 'order.refunded')")
	shop := exec.Command(program, s.url)
	shop.Stderr = os.Stderr
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	defer kill(shop)
	s.soon("all jobs are done", func() bool { return s.completed() == 20 })
	if n := s.count("SELECT sum(points) FROM points"); n != 180 {
		t.Errorf("%d points: want 10 for each of 18 orders", n)
	}
}

func TestStatements_MakeTheTables(t *testing.T) {
	s := newJobSite(t)
	text, err := jobStatements(t.Context(), nil)
	if err != nil || strings.Contains(text, "TEMPLATE") {
		t.Fatalf("%v: %s", err, text)
	}
	s.exec("CREATE SCHEMA printed")
	for part := range strings.SplitSeq(text, "-- River ") { // each is a transaction of its own
		s.exec("SET search_path = printed; -- " + part + "; RESET search_path")
	}
	config := s.pool.Config()
	config.ConnConfig.RuntimeParams["search_path"] = "printed"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := checkJobTables(t.Context(), pool); err != nil {
		t.Error(err)
	}
	if applied, err := migrateJobs(t.Context(), pool); err != nil || len(applied) != 0 {
		t.Errorf("%q, %v: want nothing to do", applied, err)
	}
	if text, err := jobStatements(t.Context(), pool); err != nil || text != "" {
		t.Errorf("%v: %s: want nothing to do", err, text)
	}
}

func TestStore_JobsNeedPostgreSQL(t *testing.T) {
	for _, url := range []string{"sqlite:" + t.TempDir() + "/settle.db", "mysql://u@127.0.0.1/shop"} {
		if s, err := openStore(url); err == nil || !strings.Contains(err.Error(), "jobs need PostgreSQL") {
			t.Errorf("%s: %v, %v", url, s, err)
		}
	}
}
