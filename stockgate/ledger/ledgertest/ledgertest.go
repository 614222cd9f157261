// Package ledgertest has what the tests of the ledger's packages share.
//
// It promises helpers without state, and does not reach the binary.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"sluice/stockgate/ledger/protocol"
)

// SKU is the one that most tests sell.
const SKU = "1001"

// ErrNetwork is what a network does to a call.
var ErrNetwork = errors.New("lost")

// store is a *redisstore.Store, or a fake of the reserver's tests. The tests of package redisstore import this package,
// so that it cannot name the former.
type store interface {
	Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []protocol.Item, codes []protocol.Code) (
		protocol.StockVersion, error)
	Finish(ctx context.Context, sku string, now, keep int64, op protocol.Op, items []protocol.Item,
		done []protocol.Done) (protocol.StockVersion, error)
	ReadStock(ctx context.Context, sku string) (protocol.Stock, bool, error)
	SetTotal(ctx context.Context, sku string, total, limit int64) (protocol.Stock, error)
}

// Take reserves one unit for a user until 1,000 and returns the code.
func Take(t testing.TB, s store, serial, user string) protocol.Code {
	t.Helper()
	codes := make([]protocol.Code, 1)
	_, err := s.Reserve(context.Background(), "1001", 0, 1, 1_000,
		[]protocol.Item{{Serial: serial, User: user, Quantity: 1}}, codes)
	Check(t, err)
	return codes[0]
}

// Finish decides one serial at the time 1; tombstones stay until 2,000.
func Finish(t testing.TB, s store, op protocol.Op, serial string) protocol.Done {
	t.Helper()
	done := make([]protocol.Done, 1)
	_, err := s.Finish(context.Background(), "1001", 1, 2_000, op,
		[]protocol.Item{{Serial: serial, User: "ann", Quantity: 1}}, done)
	Check(t, err)
	return done[0]
}

func StockOf(t testing.TB, s store) protocol.Stock {
	t.Helper()
	stock, ok, err := s.ReadStock(context.Background(), "1001")
	Check(t, err)
	if !ok {
		t.Fatal("no ledger")
	}
	return stock
}

func Want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// Storm runs n calls on workers goroutines.
func Storm(n, workers int, call func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				call(i)
			}
		})
	}
	all.Wait()
}

func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Until waits for what a real server does in its own time.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 30_000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func Differ[T any](what string, got, want T) error {
	if reflect.DeepEqual(got, want) { // much faster than a diff
		return nil
	}
	return fmt.Errorf("%s differ (-want +got):\n%s", what, cmp.Diff(want, got))
}

// Scrape is what Prometheus would read of c.
func Scrape(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	if answer.Code != 200 {
		t.Fatalf("scrape: %s", answer.Body)
	}
	return answer.Body.String()
}

// Value is the value of a counter or a gauge.
func Value(m prometheus.Metric) int64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		panic(err)
	}
	return int64(d.GetCounter().GetValue() + d.GetGauge().GetValue())
}

// LogTo logs to w.
func LogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// FillUp reserves n units of 1001 for serials "0" to "n-1", and confirms every third.
func FillUp(t testing.TB, r store, n int) {
	t.Helper()
	Must[protocol.Stock](t)(r.SetTotal(context.Background(), "1001", int64(2*n), 0))
	for from := 0; from < n; from += 100 {
		var items, confirmed []protocol.Item
		for i := from; i < min(from+100, n); i++ {
			items = append(items, protocol.Item{Serial: fmt.Sprint(i), User: fmt.Sprint("user ", i), Quantity: 1})
			if i%3 == 0 {
				confirmed = append(confirmed, items[len(items)-1])
			}
		}
		_, err := r.Reserve(context.Background(), "1001", 0, 1, 1_000_000, items, make([]protocol.Code, len(items)))
		Check(t, err)
		_, err = r.Finish(context.Background(), "1001", 1, 2_000_000, protocol.Confirm, confirmed,
			make([]protocol.Done, len(confirmed)))
		Check(t, err)
	}
}
