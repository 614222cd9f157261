package settler

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childOf) {
	case "settler":
		runSettler()
	case "worker":
		runWorker()
	default:
		redistest.Main(dbtest.Main(m))
	}
}

// untilTheParentEnds ends with the test.
func untilTheParentEnds() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("ready")
	return ctx
}

func stderr() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func runSettler() {
	r, err := redisconn.New(storetest.Redis(os.Getenv(childTo)))
	if err != nil {
		panic(err)
	}
	store, err := openStore(os.Getenv(childDatabase))
	if err != nil {
		panic(err)
	}
	s, err := settle.New(settle.Stream{Name: "shop", Redis: r}, store, settle.Options{Batch: 10, Log: stderr()})
	if err != nil {
		panic(err)
	}
	s.Run(untilTheParentEnds())
}

func runWorker() {
	pool, err := openJobs(os.Getenv(childDatabase), "")
	if err != nil {
		panic(err)
	}
	if err := workJobs(untilTheParentEnds(), pool, work(os.Getenv(childTo), stderr())); err != nil {
		panic(err)
	}
}

func work(url string, log *slog.Logger) jobOptions {
	return jobOptions{Queue: "sluice", Workers: 4, URL: url, Key: jobKey, Timeout: time.Minute, Log: log}
}

func openStore(url string) (*sqlstore.Store, error) {
	inserted, err := newJobs(jobKinds, "sluice", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return sqlstore.Open(sqlstore.Options{URL: url, Jobs: inserted})
}

func startChild(t *testing.T, what, database, to string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childOf+"="+what, childDatabase+"="+database, childTo+"="+to)
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err1 != nil || err2 != nil || c.Start() != nil {
		t.Fatalf("the %s does not start: %v, %v", what, err1, err2)
	}
	t.Cleanup(func() { in.Close(); kill(c) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the %s did not start: %q, %v", what, line, err)
	}
	return c
}

func kill(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// jobSite is a Redis with ledgers and a PostgreSQL with the tables of orders and jobs.
type jobSite struct {
	*testing.T
	redis  *redistest.Server
	url    string
	pool   *pgxpool.Pool
	store  *sqlstore.Store
	ledger *ledger.Store
	stream settle.Stream
}

func newJobSite(t *testing.T) *jobSite {
	t.Helper()
	s := &jobSite{T: t, url: dbtest.InPostgres(t), redis: redistest.Start(t)}
	s.stream = settle.Stream{Name: "shop", Redis: storetest.Link(t, s.redis.Addr)}
	var err1, err2, err3 error
	s.pool, err1 = openJobs(s.url, "")
	s.store, err2 = openStore(s.url)
	s.ledger, err3 = ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: storetest.Redis(s.redis.Addr),
		Events: 1_000_000, Acknowledged: true, Visitor: true})
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { s.pool.Close(); s.store.Close(); s.ledger.Close() })
	if _, err := s.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := checkJobTables(t.Context(), s.pool); err == nil || !strings.Contains(err.Error(), "sluice-settle migrate") {
		t.Fatalf("without tables of jobs: %v", err)
	}
	for _, want := range []bool{true, false} {
		if applied, err := migrateJobs(t.Context(), s.pool); err != nil || (len(applied) > 0) != want {
			t.Fatalf("migrate: %q, %v", applied, err)
		}
	}
	if err := checkJobTables(t.Context(), s.pool); err != nil {
		t.Fatal(err)
	}
	return s
}

// exec runs a statement.
func (s *jobSite) exec(query string) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), query); err != nil {
		s.Fatal(err)
	}
}

// count is the number that a query returns.
func (s *jobSite) count(query string, args ...any) (n int) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), query, args...).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// drain settles one SKU.
func (s *jobSite) drain(sku string) *settle.Settler {
	s.Helper()
	worker, err := settle.New(s.stream, s.store, settle.Options{Batch: 10, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = worker.Drain(s.Context(), sku)
	}
	if err != nil {
		s.Fatal(err)
	}
	return worker
}

// sell sells ten orders in each round: 8 are confirmed, one is released, one refunded.
func (s *jobSite) sell(sku string, orders int) error {
	ctx := context.Background()
	now := time.Now().UnixMilli()
	keep := now + time.Hour.Milliseconds()
	for first := 0; first < orders; first += 10 {
		items, codes, done := make([]ledger.Item, 10), make([]ledger.Code, 10), make([]ledger.Done, 10)
		for i := range items {
			items[i] = ledger.Item{Serial: fmt.Sprintf("%s-%d", sku, first+i), User: fmt.Sprintf("u\x00%d", first+i),
				Quantity: 1}
		}
		if _, err := s.ledger.Reserve(ctx, sku, 0, now, keep, items, codes); err != nil {
			return err
		}
		for _, step := range []struct {
			op    ledger.Op
			items []ledger.Item
		}{{ledger.Confirm, items[:9]}, {ledger.Release, items[9:]}, {ledger.Refund, items[8:9]}} {
			if _, err := s.ledger.Finish(ctx, sku, now, keep, step.op, step.items, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantsJobs fails the test unless every order has one job for each of its changes.
func (s *jobSite) wantsJobs(sku string, orders int) {
	s.Helper()
	for kind, want := range map[string]int{"order.held": orders, "order.sold": orders * 9 / 10,
		"order.released": orders / 10, "order.refunded": orders / 10} {
		of := "FROM river_job WHERE args->>'sku' = $1 AND kind = $2"
		jobs, different := s.count("SELECT count(*) "+of, sku, kind),
			s.count("SELECT count(DISTINCT args->>'serial') "+of, sku, kind)
		if jobs != want || different != want {
			s.Errorf("%s: %d jobs %s of %d orders: want one of each of %d", sku, jobs, kind, different, want)
		}
	}
}

func (s *jobSite) soon(what string, is func() bool) {
	s.Helper()
	testkit.Eventually(s.T, what, is)
}

func (s *jobSite) completed() int {
	return s.count("SELECT count(*) FROM river_job WHERE state = 'completed'")
}
