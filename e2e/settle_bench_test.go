//go:build linux

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	_ "modernc.org/sqlite" // by the name sqlite

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// What the benchmark of the settlement does beside the backlog, of which SLUICE_SETTLE_BENCH says the orders:
// 20,000 by default, and 600,000 in make bench-settle.
const (
	benchSKUs    = 8
	benchCall    = 8      // orders of one call to the ledger, as a gate has them in a sale
	benchRate    = 10_000 // orders/s while the lag is measured
	benchLasts   = 10 * time.Second
	benchSingles = 5 * time.Second // of each measurement of a transaction an order
)

// settleBench measures sluice-settle run beside a shop that books each order in a transaction of its own.
type settleBench struct {
	*testing.T
	url    string
	redis  *redistest.Server
	ledger *ledger.Store
}

// The figures are printed, and none is asserted: they are those of the machine.
func TestSettlementBench_BesideATransactionAnOrder(t *testing.T) {
	testkit.Nightly(t, "it measures CPU, memory and speed")
	orders, err := strconv.Atoi(os.Getenv("SLUICE_SETTLE_BENCH"))
	if err != nil {
		orders = 20_000
	}
	t.Run("postgres", func(t *testing.T) { benchSettlement(t, dbtest.Postgres(t).URL, orders) })
	t.Run("mariadb", func(t *testing.T) { benchSettlement(t, dbtest.MariaDB(t).URL, orders) })
	t.Run("sqlite", func(t *testing.T) {
		benchSettlement(t, "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), orders)
	})
}

func benchSettlement(t *testing.T, url string, orders int) {
	b := &settleBench{T: t, url: url, redis: redistest.Start(t)}
	var err error
	b.ledger, err = ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: redisconn.Options{
		Addresses: []string{b.redis.Addr}, PoolSize: 32, ConnectTimeout: long, Timeout: long,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
	}, Events: 100_000_000, Acknowledged: true, Visitor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.ledger.Close()
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("load average at the beginning: %s", strings.TrimSpace(string(load)))
	settleOK(t, "migrate", "--config", file(t, fmt.Sprintf("upstream.targets = [\"http://127.0.0.1:1\"]\n"+
		"settle.database = %q\n%s\n%s\n%s", url, keepsChanges, redisAt(b.redis), reserveRoutes)))
	one, many := b.singles(1), b.singles(16)
	t.Logf("a transaction an order, hot SKU: 1 connection %.0f orders/s, 16 connections %.0f", one, many)
	hot := b.backlog("one SKU, ledger calls of 1 order", []string{"hot"}, max(orders/6, 1000), 1)
	t.Logf("one SKU, beside a transaction an order: %.1f times as many", hot/max(one, many))
	skus := make([]string, benchSKUs)
	for i := range skus {
		skus[i] = fmt.Sprintf("many-%d", i)
	}
	b.backlog(fmt.Sprintf("%d SKUs, ledger calls of %d orders", benchSKUs, benchCall), skus, orders, benchCall)
	b.lag()
}

// singles books orders of one SKU, each in one transaction that guards against duplicates and deducts. It returns how
// many orders a second there were.
func (b *settleBench) singles(connections int) float64 {
	b.Helper()
	driver, source, tail := "pgx", b.url, " ON CONFLICT DO NOTHING"
	if rest, ok := strings.CutPrefix(b.url, "mysql://sluice@"); ok {
		host, name, _ := strings.Cut(rest, "/")
		driver, source, tail = "mysql", "sluice@tcp("+host+")/"+name+"?interpolateParams=true", ""
	} else if path, ok := strings.CutPrefix(b.url, "sqlite:"); ok {
		driver = "sqlite"
		source = "file:" + path + ".singles?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
			"&_pragma=synchronous(FULL)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	insert, deduct := "INSERT INTO one_order (sku, serial) VALUES (?, ?)"+tail,
		"UPDATE one_stock SET num = num - 1 WHERE sku = ? AND num >= 1"
	if driver == "pgx" {
		insert = strings.Replace(insert, "?, ?", "$1, $2", 1)
		deduct = strings.Replace(deduct, "?", "$1", 1)
	}
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS one_order (sku varchar(64) NOT NULL, serial varchar(64) NOT NULL, " +
			"PRIMARY KEY (sku, serial))",
		"CREATE TABLE IF NOT EXISTS one_stock (sku varchar(64) PRIMARY KEY, num bigint NOT NULL)",
		"DELETE FROM one_stock", "INSERT INTO one_stock VALUES ('hot', 100000000)",
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	var booked atomic.Int64
	var working sync.WaitGroup
	begin := time.Now()
	for n := range connections {
		working.Go(func() {
			for i := 0; time.Since(begin) < benchSingles; i++ {
				if err := single(db, insert, deduct, fmt.Sprintf("%d-%d-%d", connections, n, i)); err != nil {
					b.Error(err)
					return
				}
				booked.Add(1)
			}
		})
	}
	working.Wait()
	return float64(booked.Load()) / time.Since(begin).Seconds()
}

func single(db *sql.DB, insert, deduct, serial string) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(insert, "hot", serial); err != nil {
		return err
	}
	if _, err := tx.Exec(deduct, "hot"); err != nil {
		return err
	}
	return tx.Commit()
}

// sell reserves and confirms orders of a SKU, some in each call to its ledger.
func (b *settleBench) sell(sku string, first, orders, call int) {
	ctx := context.Background()
	codes, done := make([]ledger.Code, call), make([]ledger.Done, call)
	for n := first; n < first+orders; n += call {
		items := make([]ledger.Item, min(call, first+orders-n))
		for i := range items {
			items[i] = ledger.Item{Serial: fmt.Sprintf("%s-%09d", sku, n+i), User: fmt.Sprintf("user-%d", n+i), Quantity: 1}
		}
		now := time.Now().UnixMilli()
		keep := now + time.Hour.Milliseconds()
		if _, err := b.ledger.Reserve(ctx, sku, 0, now, keep, items, codes[:len(items)]); err != nil {
			b.Error(err)
			return
		}
		if _, err := b.ledger.Finish(ctx, sku, now, keep, ledger.Confirm, items, done[:len(items)]); err != nil {
			b.Error(err)
			return
		}
	}
}

// total gives SKUs their stock.
func (b *settleBench) total(skus []string) {
	b.Helper()
	for _, sku := range skus {
		if _, err := b.ledger.SetTotal(b.Context(), sku, 100_000_000, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// backlog lets one settler settle orders that wait, and returns how many orders a second it has settled. Time and CPU
// are those of the process from its start on.
func (b *settleBench) backlog(what string, skus []string, orders, call int) float64 {
	b.Helper()
	const sellers = 16
	b.total(skus)
	each := max(orders/sellers/call, 1) * call
	orders = each * sellers
	var selling sync.WaitGroup
	begin := time.Now()
	for n := range sellers {
		selling.Go(func() { b.sell(skus[n%len(skus)], n*each, each, call) })
	}
	selling.Wait()
	sold := time.Since(begin)
	begin = time.Now()
	s := settler(b.T, b.url, redisAt(b.redis))
	memory := 0
	for s.metric("sluice_settler_entries_total") < float64(2*orders/call) {
		time.Sleep(100 * time.Millisecond) // between two looks, which take CPU
		memory = max(memory, s.pss())
		if time.Since(begin) > time.Hour {
			b.Fatal("the backlog is not settled within an hour")
		}
	}
	took := time.Since(begin)
	memory = max(memory, s.pss())
	cpu := stopped(s)
	speed := float64(orders) / took.Seconds()
	b.Logf("%s: %d orders, sold in %.1f s, drained in %.1f s: %.0f orders/s; settler %.1f µs CPU an order, "+
		"PSS at most %.1f MiB", what, orders, sold.Seconds(), took.Seconds(), speed, cpu.Seconds()*1e6/float64(orders),
		float64(memory)/1024)
	return speed
}

// stopped ends a settler, and returns the processor time that it had.
func stopped(s *running) time.Duration {
	s.t.Helper()
	s.terminate()
	s.stopped()
	return s.process.ProcessState.UserTime() + s.process.ProcessState.SystemTime()
}

// lag sells at a constant rate, and reads the settler's histogram of the oldest change of each transaction.
func (b *settleBench) lag() {
	b.Helper()
	skus := []string{"lag-0", "lag-1", "lag-2", "lag-3"}
	b.total(skus)
	s := settler(b.T, b.url, redisAt(b.redis))
	soon(b.T, "the settler has begun", func() bool { return s.metric("sluice_settler_entries_total") >= 4 })
	begin := time.Now()
	const sellers = 8
	calls := int(benchRate*benchLasts.Seconds()) / benchCall / sellers // of each seller
	orders := calls * benchCall * sellers
	var selling sync.WaitGroup
	for n := range sellers {
		selling.Go(func() {
			every := time.Duration(float64(time.Second) * benchCall * sellers / benchRate)
			for i := range calls {
				time.Sleep(time.Until(begin.Add(time.Duration(i)*every + time.Duration(n)*every/sellers))) // a steady rate
				b.sell(skus[n%len(skus)], n*orders+i*benchCall, benchCall, benchCall)
			}
		})
	}
	selling.Wait()
	sold := time.Since(begin)
	want := float64(2*orders/benchCall + 4)
	soon(b.T, "everything is settled", func() bool { return s.metric("sluice_settler_entries_total") >= want })
	h := b.histogram(s)
	transactions, memory := s.metric("sluice_settler_transactions_total"), s.pss()
	cpu := stopped(s)
	b.Logf("%d orders in %.1f s (%.0f/s), 4 SKUs: lag p50 %s, p99 %s; %.0f transactions, settler %.1f µs CPU an "+
		"order, PSS %.1f MiB", orders, sold.Seconds(), float64(orders)/sold.Seconds(), quantile(h, 0.5), quantile(h, 0.99),
		transactions,
		cpu.Seconds()*1e6/float64(orders), float64(memory)/1024)
}

// histogram reads the lag with its fine buckets, which the text form has not.
func (b *settleBench) histogram(s *running) *dto.Histogram {
	b.Helper()
	for _, f := range s.families() {
		if f.GetName() == "sluice_settler_lag_seconds" {
			return f.GetMetric()[0].GetHistogram()
		}
	}
	b.Fatal("no lag in the metrics")
	return nil
}

// quantile is the upper bound of the fine bucket that has it.
func quantile(h *dto.Histogram, q float64) time.Duration {
	want, seen := q*float64(h.GetSampleCount()), float64(h.GetZeroCount())
	base := math.Exp2(math.Exp2(-float64(h.GetSchema())))
	deltas, n, index := h.GetPositiveDelta(), int64(0), int32(0)
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			n, deltas = n+deltas[0], deltas[1:]
			if seen += float64(n); seen >= want {
				return time.Duration(math.Pow(base, float64(index)) * float64(time.Second)).Round(time.Millisecond)
			}
			index++
		}
	}
	return 0
}
