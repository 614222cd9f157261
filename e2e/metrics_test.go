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
