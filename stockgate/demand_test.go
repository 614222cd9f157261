package stockgate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	dto "github.com/prometheus/client_model/go"

	"sluice/internal/embedredis"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// watched is a Watch over stock in memory that looks when it is told to.
type watched struct {
	*Watch
	shop  *counted
	log   bytes.Buffer
	shard *metrics.Shard
}

// counted is a source that counts what is read at once.
type counted struct {
	*Redis
	sizes []int
}

func (c *counted) Read(ctx context.Context, skus []string, out []layout.Reading) error {
	c.sizes = append(c.sizes, len(skus))
	return c.Redis.Read(ctx, skus, out)
}

func watch(t *testing.T, most int, named ...string) *watched {
	t.Helper()
	w := &watched{shop: &counted{Redis: shopInProcess(t)}}
	now := func() int64 { return 0 }
	gate, err := New(Options{Now: now}, w.shop.Redis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gate.Close)
	counters := metrics.NewCounters(1)
	w.shard = counters.Shard()
	w.Watch = newWatch(WatchOptions{Counters: counters, Named: named, Most: most, Gate: gate, Source: w.shop, Reads: true,
		Now: now, Log: slog.New(slog.NewTextHandler(&w.log, nil))})
	return w
}

// wanted counts n requests for a SKU.
func (w *watched) wanted(sku string, n int) {
	for range n {
		w.shard.CountSKU([]byte(sku), false, 0)
	}
}

// series are the values of all series, by name and labels.
func (w *watched) series(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.Watch)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			all[strings.TrimPrefix(f.GetName(), "sluice_")+labels(m)] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func labels(m *dto.Metric) (text string) {
	for _, l := range m.Label {
		text += " " + l.GetValue()
	}
	return text
}

func TestWatch_NamesTheMostWantedSKUsThatHaveStock(t *testing.T) {
	w := watch(t, 2, "1001")
	for _, sku := range []string{"1002", "1003", "\xff"} {
		if err := w.shop.Set(t.Context(), sku, 5); err != nil {
			t.Fatal(err)
		}
	}
	w.wanted("\xff", 90)
	w.wanted("invented", 80)
	w.wanted("1002", 60)
	w.wanted("1003", 40)
	w.look(t.Context())
	w.wanted("1002", 3)
	w.wanted("1003", 3)
	all := w.series(t)
	for name, want := range map[string]float64{
		"sku_requests_total rejected 1001": 0, "sku_requests_total rejected 1002": 3, // since it has a name
		"sku_requests_total rejected _other": 273, "sku_stock_left 1002": 5,
		"hot_sku_requests 1002": 60, "hot_sku_requests 1003": 40,
	} {
		if got, ok := all[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name := range all {
		if strings.Contains(name, "invented") || strings.Contains(name, "\xff") || name == "sku_stock_left 1003" {
			t.Errorf("there is a series %q", name)
		}
	}
}

func TestWatch_NamesNothingWhereMetricsShallNot(t *testing.T) {
	w := watch(t, 0, "1001")
	if err := w.shop.Set(t.Context(), "1001", 5); err != nil {
		t.Fatal(err)
	}
	w.wanted("1001", 5000)
	w.look(t.Context())
	for name := range w.series(t) {
		if strings.Contains(name, "1001") {
			t.Errorf("there is a series %q", name)
		}
	}
}

func TestWatch_ASKUWithALedgerIsNamed(t *testing.T) {
	w := watch(t, 10)
	w.o.Reads, w.reads = false, false
	w.o.Ledger = func(sku string) bool { return sku == "1001" }
	w.wanted("1001", 5)
	w.wanted("invented", 9)
	w.look(t.Context())
	all := w.series(t)
	if all["hot_sku_requests 1001"] != 5 || len(w.shop.sizes) != 0 {
		t.Errorf("%v; read %v", all, w.shop.sizes)
	}
	if _, ok := all["hot_sku_requests invented"]; ok {
		t.Errorf("a name without stock: %v", all)
	}
}

// However many SKUs sales name, one look reads a bounded number of keys, and some looks read all.
func TestWatch_ReadsABoundedNumberOfSKUsAtOnce(t *testing.T) {
	var named []string
	for i := range 700 {
		named = append(named, fmt.Sprintf("%04d", i))
	}
	w := watch(t, 1000, named...)
	for i, sku := range named {
		if err := w.shop.Set(t.Context(), sku, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		w.look(t.Context())
	}
	all := w.series(t)
	for i, sku := range named {
		if got, ok := all["sku_stock_left "+sku]; !ok || got != float64(i) {
			t.Fatalf("what is left of %s is %v (%v)", sku, got, ok)
		}
	}
	if fmt.Sprint(w.shop.sizes) != "[320 320 60]" {
		t.Errorf("read %v at once", w.shop.sizes)
	}
}

func TestWatch_TheLogNamesAHotSKUOnce(t *testing.T) {
	w := watch(t, 10, "1001", "1002")
	w.wanted("1002", hotRequests-1)
	w.look(t.Context())
	if w.log.Len() > 0 {
		t.Errorf("too early: %s", &w.log)
	}
	w.wanted("1002", 1)
	w.wanted("1001", 30)
	for range 3 {
		w.look(t.Context())
	}
	if text := w.log.String(); strings.Count(text, "hot") != 1 || !strings.Contains(text, "sku=1002 requests=1000") ||
		!strings.Contains(text, "percent=97 left=unknown") {
		t.Errorf("the log: %s", text)
	}
}

// shopInProcess is stock of a shop, a counter for each SKU, in a Redis of this process.
func shopInProcess(t *testing.T) *Redis {
	t.Helper()
	s := embedredis.Start()
	t.Cleanup(s.Stop)
	l, err := layout.New(layout.Options{Type: layout.Counter, Key: "seckill:stock:$sku"})
	testkit.Check(t, err)
	r := testkit.Must[*Redis](t)(NewRedis(redisconn.Options{Addresses: []string{"memory"}, Dialer: s.Dial, PoolSize: 64,
		ConnectTimeout: time.Minute, Timeout: time.Minute, BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
		Log: slog.New(slog.DiscardHandler)}, l))
	t.Cleanup(func() { _ = r.Close() })
	return r
}
