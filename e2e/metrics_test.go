package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// metric is the sum of a metric's series that have all the given labels, each like `route="order"`.
func (g *running) metric(name string, labels ...string) float64 {
	g.t.Helper()
	sum := 0.0
	for text := range strings.Lines(g.scrape()) {
		series, value, _ := strings.Cut(strings.TrimSpace(text), " ")
		family, of, _ := strings.Cut(series, "{")
		if family != name || !has(of, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			g.t.Fatalf("metric %s: %v", series, err)
		}
		sum += v
	}
	return sum
}

func has(series string, labels []string) bool {
	for _, l := range labels {
		if !strings.Contains(series, l) {
			return false
		}
	}
	return true
}

// scrape is the text of /metrics.
func (g *running) scrape() string {
	g.t.Helper()
	status, text := g.peek("/metrics")
	if status != http.StatusOK {
		g.t.Fatalf("GET /metrics: %d %s", status, text)
	}
	return text
}

// wantMetric waits until a metric has a value: a request may be counted after its response is sent.
func (g *running) wantMetric(want float64, name string, labels ...string) {
	g.t.Helper()
	v := g.metric(name, labels...)
	for end := time.Now().Add(2 * long); v != want && time.Now().Before(end); v = g.metric(name, labels...) {
		time.Sleep(pause) // between two looks
	}
	if v != want {
		g.t.Errorf("%s%v is %v, want %v", name, labels, v, want)
	}
}

// measures waits until /metrics has all parts.
func (g *running) measures(t *testing.T, parts ...string) {
	t.Helper()
	for _, p := range parts {
		soon(t, fmt.Sprintf("%q is measured", p), func() bool { return strings.Contains(g.scrape(), p) })
	}
}

// promised are the metrics that this version has; dashboards and alerts are built on their names.
var promised = map[string]string{
	"sluice_http_requests_total":                  "counter",
	"sluice_rejected_requests_total":              "counter",
	"sluice_observed_rejections_total":            "counter",
	"sluice_observed_connection_rejections_total": "counter",
	"sluice_rejected_connections_total":           "counter",
	"sluice_http_request_duration_seconds":        "histogram",
	"sluice_decision_duration_seconds":            "histogram",
	"sluice_windows_total":                        "counter",
	"sluice_windows_saturated_total":              "counter",
	"sluice_connections":                          "gauge",
	"sluice_upstream_requests_total":              "counter",
	"sluice_upstream_request_duration_seconds":    "histogram",
	"sluice_upstream_in_flight":                   "gauge",
	"sluice_upstream_in_flight_limit":             "gauge",
	"sluice_queue_length":                         "gauge",
	"sluice_upstream_up":                          "gauge",
	"sluice_redis_command_duration_seconds":       "histogram",
	"sluice_redis_calls_total":                    "counter",
	"sluice_redis_batch_size":                     "histogram",
	"sluice_redis_errors_total":                   "counter",
	"sluice_redis_up":                             "gauge",
	"sluice_stock_fallback_total":                 "counter",
	"sluice_fleet_instances":                      "gauge",
	"sluice_fleet_up":                             "gauge",
	"sluice_fleet_heartbeats_total":               "counter",
	"sluice_access_log_lines_total":               "counter",
	"sluice_access_log_dropped_total":             "counter",
	"sluice_build_info":                           "gauge",
	"go_goroutines":                               "gauge",
	"process_open_fds":                            "gauge",
}

func TestMetrics_EveryPromisedMetricIsThereOnce(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	redis.Client.Set(t.Context(), "seckill:stock:1001", 10, 0)
	g := gate(t, shop.setting(), redisAt(redis), `limits.window.scope = "fleet"`)
	g.order("1001").must(t, 200, "")
	g.order("1002").must(t, 404, "unknown_sku")
	kinds, helps := map[string]string{}, map[string]int{}
	for text := range strings.Lines(g.scrape()) {
		if f := strings.Fields(text); f[0] == "#" && f[1] == "TYPE" {
			kinds[f[2]] = f[3]
		} else if f[0] == "#" && f[1] == "HELP" {
			helps[f[2]]++
		}
	}
	for name, kind := range promised {
		if kinds[name] != kind {
			t.Errorf("%s is %q, want a %s", name, kinds[name], kind)
		}
	}
	for name, n := range helps {
		if n != 1 {
			t.Errorf("%s has %d HELP lines", name, n)
		}
	}
	g.wantMetric(1, "sluice_build_info", fmt.Sprintf("version=%q", builtVersion))
	g.wantMetric(1, "sluice_http_requests_total", `route="order"`, `code="200"`)
	g.wantMetric(1, "sluice_http_requests_total", `route="order"`, `code="404"`)
	g.wantMetric(1, "sluice_rejected_requests_total", `route="order"`, `reason="unknown_sku"`)
	g.wantMetric(2, "sluice_decision_duration_seconds_count") // the first forwarded request, and the first rejection
	g.wantMetric(1, "sluice_redis_up")
}

func TestMetrics_PassPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: it comes with Prometheus (apt install prometheus)")
	}
	redis, shop := redistest.Start(t), open(t, nil)
	g := gate(t, shop.setting(), redisAt(redis))
	g.order("1001")
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(g.scrape())
	if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("promtool: %v\n%s", err, text)
	}
}
