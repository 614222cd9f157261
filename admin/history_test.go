package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// still is a Watch that looks only when a test says so.
func still(t *testing.T) *History {
	t.Helper()
	w := &History{traffic: none, metrics: prometheus.NewRegistry(), stop: make(chan struct{}),
		stopped: make(chan struct{}), news: make(chan struct{}), skus: map[string]*moments{}}
	w.now = w.read()
	return w
}

// none is the traffic of a gate without requests.
func none() (t metrics.Traffic) { return t }

// counted are some of a gate's counts and metrics.
type counted struct {
	all      metrics.Traffic
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	sold     *prometheus.GaugeVec
}

func newCounted() *counted {
	c := &counted{
		registry: prometheus.NewRegistry(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sluice_upstream_request_duration_seconds", Help: "h",
			Buckets: []float64{0.01, 0.02, 0.1}}, []string{"target"}),
		sold: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "sluice_stock_sold", Help: "h"}, []string{"sku"}),
	}
	c.registry.MustRegister(c.took, c.sold)
	return c
}

// traffic is a copy, as the gate's is.
func (c *counted) traffic() metrics.Traffic {
	t := c.all
	t.Routes, t.Rates = slices.Clone(t.Routes), slices.Clone(t.Rates)
	return t
}

// answer counts requests of a route, and what of them was rejected.
func (c *counted) answer(route string, requests int64, rejected map[reject.Reason]int64) {
	i, found := slices.BinarySearchFunc(c.all.Routes, route,
		func(r metrics.RouteTraffic, name string) int { return strings.Compare(r.Route, name) })
	if !found {
		c.all.Routes = slices.Insert(c.all.Routes, i, metrics.RouteTraffic{Route: route})
	}
	c.all.Requests += requests
	c.all.Routes[i].Requests += requests
	for reason, n := range rejected {
		c.all.Rejected[reason] += n
		c.all.Routes[i].Rejected += n
	}
}

func TestHistory_SecondIsWhatWasAddedInIt(t *testing.T) {
	c := newCounted()
	c.answer("order", 1000, map[reject.Reason]int64{reject.Window: 500})
	w := still(t)
	w.traffic, w.metrics = c.traffic, c.registry
	w.now = w.read()
	c.answer("order", 10, map[reject.Reason]int64{reject.Window: 3, reject.SoldOut: 4})
	c.answer("pages", 5, nil)
	c.answer("idle", 0, nil)
	c.all.Observed[reject.Rate] += 2
	c.all.Rates = []metrics.RateTraffic{{Rate: "per_ip", Rejected: 6}}
	for range 99 {
		c.took.WithLabelValues("a").Observe(0.015)
	}
	c.took.WithLabelValues("b").Observe(5)
	for sku := range 30 {
		c.sold.WithLabelValues(string(rune('A' + sku))).Set(float64(sku))
	}
	w.addSecond(100, 2)
	s := w.latest()
	if s.At != 100 || s.Span != 2 || s.Requests != 15 || s.Admitted != 8 || s.Rejected["window"] != 3 ||
		s.Rejected["sold_out"] != 4 || len(s.Rejected) != 2 ||
		s.Observed["rate"] != 2 || len(s.Observed) != 1 {
		t.Errorf("%+v", s)
	}
	if s.Upstream.P50 <= 10 || s.Upstream.P50 > 20 || s.Upstream.P99 > 20 || s.Redis != nil {
		t.Errorf("shop %+v, redis %v", s.Upstream, s.Redis)
	}
	if len(s.Stock) != mostStock || s.Stock[0].Sold != 29 || len(s.Routes) != 2 ||
		s.Routes[0] != (RouteSecond{"order", 10, 7}) || s.Routes[1] != (RouteSecond{"pages", 5, 0}) {
		t.Errorf("stock %v, routes %v", s.Stock, s.Routes)
	}
	l := Limit{Name: "per_ip", Reasons: []string{"rate"}}
	w.count(&l)
	if l.Rejected != 6 || l.RejectedPerSecond != 3 {
		t.Errorf("%+v", l)
	}
	l = Limit{Name: "window", Reasons: []string{"window"}}
	w.count(&l)
	if l.Rejected != 503 || l.RejectedPerSecond != 1.5 {
		t.Errorf("%+v", l)
	}
	w.addSecond(101, 1)
	if s = w.latest(); s.Requests != 0 || len(s.Rejected) != 0 || s.Upstream.P99 != 0 {
		t.Errorf("a second in which nothing happened: %+v", s)
	}
}

// A target that goes with a reload takes its counts with it: no number falls below 0.
func TestHistory_NoNumberFallsBelowZero(t *testing.T) {
	c := newCounted()
	c.answer("order", 1000, nil)
	c.took.WithLabelValues("a").Observe(0.015)
	w := still(t)
	w.traffic, w.metrics = c.traffic, c.registry
	w.now = w.read()
	c.all = metrics.Traffic{}
	c.took.Reset()
	w.addSecond(100, 1)
	if s := w.latest(); s.Requests != 0 || s.Admitted != 0 || s.Upstream.P50 != 0 {
		t.Errorf("%+v", s)
	}
}

func TestHistory_TenMinutesAreKeptInAFixedRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewHistory(none, prometheus.NewRegistry())
		time.Sleep(2*keptSeconds*time.Second + time.Second/2) // of synctest
		synctest.Wait()
		w.Close()
		seconds, _ := w.after(0)
		if len(seconds) != keptSeconds {
			t.Fatalf("%d seconds are kept, want %d", len(seconds), keptSeconds)
		}
		for i := 1; i < len(seconds); i++ {
			if seconds[i].second.At != seconds[i-1].second.At+1 {
				t.Fatalf("%d follows %d", seconds[i].second.At, seconds[i-1].second.At)
			}
		}
		if later, _ := w.after(seconds[590].second.At); len(later) != 9 {
			t.Errorf("%d seconds after the 591st, want 9", len(later))
		}
	})
}

// listen reads one event at a time of a stream.
func listen(t *testing.T, url, last string) (next func() (event, data string), leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	next = func() (event, data string) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = text
			} else if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return event, text
			}
		}
		return "", ""
	}
	return next, func() { cancel(); resp.Body.Close() }
}

func TestHistory_EventsTellEachSecondAndEachDeed(t *testing.T) {
	w := still(t)
	w.addSecond(100, 1)
	w.addSecond(101, 1)
	api := &API{Gate: wheel{}, Controller: &wheel{}, History: w, Log: slog.New(slog.DiscardHandler)}
	server := httptest.NewServer(api.Handler())
	defer server.Close()
	at := func(data string) int64 {
		var s Second
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		return s.At
	}
	fresh, leave := listen(t, server.URL, "")
	defer leave()
	if event, data := fresh(); event != "second" || at(data) != 101 {
		t.Errorf("who comes hears %s %s, want the latest second", event, data)
	}
	back, leave := listen(t, server.URL, "99")
	defer leave()
	for _, want := range []int64{100, 101} {
		if _, data := back(); at(data) != want {
			t.Errorf("who comes back hears %s, want %d", data, want)
		}
	}
	api.AuditLog.Record(AuditEntry{Role: "operator", What: "stock.change", Object: "1001"}, "")
	w.addSecond(102, 1)
	if event, data := fresh(); event != "audit" || !strings.Contains(data, `"object":"1001"`) {
		t.Errorf("%s %s, want the deed", event, data)
	}
	if event, data := fresh(); event != "second" || at(data) != 102 {
		t.Errorf("%s %s, want the second", event, data)
	}
	close(w.stop)
	if event, _ := fresh(); event != "" {
		t.Errorf("%s after the end", event)
	}
}

func TestHistory_StreamsAreBounded(t *testing.T) {
	h, api := gated(t, &wheel{})
	for range maxStreams {
		if !api.History.acquireListener() {
			t.Fatal("full too early")
		}
	}
	if w := ask(h, "GET", "/api/v1/events", "", nil); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	api.History.releaseListener()
	if !api.History.acquireListener() {
		t.Error("a place that was given back is lost")
	}
}
