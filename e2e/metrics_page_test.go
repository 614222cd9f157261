package e2e

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"sluice/internal/redistest"
)

// families asks for the protocol buffers that Prometheus asks for: the only form that carries native histograms.
func (g *running) families() (all []*dto.MetricFamily) {
	g.t.Helper()
	req, err := http.NewRequest("GET", "http://"+g.ops+"/metrics", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	format := expfmt.ResponseFormat(resp.Header)
	if format.FormatType() != expfmt.TypeProtoDelim {
		g.t.Fatalf("/metrics comes as %q", resp.Header.Get("Content-Type"))
	}
	for from := expfmt.NewDecoder(resp.Body, format); ; {
		f := new(dto.MetricFamily)
		if from.Decode(f) != nil {
			return all
		}
		all = append(all, f)
	}
}

// everyMetric is what gates of all kinds tell, in the form of the page: "type | labels", by name.
func everyMetric(t *testing.T) (all map[string]string, families []*dto.MetricFamily) {
	t.Helper()
	redis, shop := redistest.Start(t), open(t, nil)
	redis.Client.Set(t.Context(), "seckill:stock:1001", 10, 0)
	checks := gate(t, shop.setting(), redisAt(redis), `limits.window.scope = "fleet"`,
		"stock.redis.replicas = ["+strconv.Quote(redis.Addr)+"]",
		`traces.endpoint = "http://127.0.0.1:1"`, `limits.concurrency.scope = "fleet"`,
		"[[limits.in_flight]]\nname = \"two-each\"\nkey = \"$cookie_uid\"\nmax = 2\n"+
			"[[limits.rate]]\nname = \"per-user\"\nkey = \"$cookie_uid\"\nrate = \"9/s\"\nburst = 9\nscope = \"fleet\"\n"+
			strings.NewReplacer("gate = \"check\"", "gate = \"check\"\nmax_in_flight = 5", "gate = \"pass\"",
				"gate = \"pass\"\ncache = \"1s\"").Replace(routes)+
			"[[sale]]\nname = \"later\"\nskus = [\"9\"]\nstarts = 2099-11-11T00:00:00+08:00\nends = 2099-11-11T02:00:00+08:00\n"+
			decides("nginx"))
	checks.order("1001")
	checks.order("1002")
	tell(t, checks.front, "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: +1\r\n\r\n") // one that is malformed
	soon(t, "the most wanted SKU has been read, and keys are shared", func() bool {
		text := checks.scrape()
		return strings.Contains(text, `sluice_sku_stock_left{sku="1001"}`) && strings.Contains(text, "sluice_fleet_shared_keys{")
	})
	other := redistest.Start(t)
	reserves := gate(t, shop.setting(), redisAt(other), "stock.reserve.write_back = true", reserveRoutes)
	ok(t, "stock", "set", "--config", reserves.file, "1001", "5")
	reserves.order("1001")
	soon(t, "the audit has counted the stock",
		func() bool { return strings.Contains(reserves.scrape(), "\nsluice_stock_total{") })
	waits := gate(t, shop.setting(), `stock.source = "memory"`, waitingRoutes)

	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("the key of the webhook"), 0o600); err != nil {
		t.Fatal(err)
	}
	settled := settler(t, "sqlite:settle.db", redisAt(other), "settle.webhook.url = "+strconv.Quote(hook.URL),
		"settle.webhook.key_file = "+strconv.Quote(key))
	soon(t, "an order is settled and sent", func() bool {
		text := settled.scrape()
		return !strings.Contains(text, "sluice_settler_orders_total{target=\"orders\"} 0\n") &&
			strings.Contains(text, "sluice_settler_webhook_requests_total{code=\"2xx\"}")
	})

	works := settles(t, "work", "settle.jobs.listen", "postgres://u@127.0.0.1:1/shop", redisAt(other),
		"settle.jobs.kinds = [\"order.sold\"]", "settle.jobs.url = "+strconv.Quote(hook.URL),
		"settle.jobs.key_file = "+strconv.Quote(key))

	rooms, _ := roomGates(t, 1, time.Now().Add(time.Hour))
	soon(t, "the room knows its units", func() bool {
		return rooms[0].metric("sluice_room_units", "room", "rush", "state", "free") == 10
	})

	all = map[string]string{}
	for _, g := range []*running{checks, reserves, waits, settled, works, rooms[0]} {
		for _, f := range g.families() {
			if strings.HasPrefix(f.GetName(), "sluice_") {
				all[f.GetName()] = strings.ToLower(f.GetType().String()) + " | " + labelsOf(f)
				families = append(families, f)
			}
		}
	}
	return all, families
}

// tell sends bytes and waits for the end of the answer.
func tell(t *testing.T, front, bytes string) {
	t.Helper()
	conn, err := net.Dial("tcp", front)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, bytes); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
}

func labelsOf(f *dto.MetricFamily) string {
	names := map[string]bool{}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			names[l.GetName()] = true
		}
	}
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

var metricRow = regexp.MustCompile("(?m)^\\| `(sluice_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, –]+) \\| [^|]+ \\| [^|]+ \\|$")

// The page is held against gates that run, both ways: what it names is there, with its type and labels, and the
// reverse.
func TestMetrics_DocumentationMatchesRunningGates(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	live, families := everyMetric(t)
	told := map[string]bool{}
	for _, row := range metricRow.FindAllStringSubmatch(string(text), -1) {
		name, labels := row[1], strings.Split(row[3], ", ")
		slices.Sort(labels)
		told[name] = true
		if want := row[2] + " | " + strings.Join(labels, ", "); live[name] != want {
			t.Errorf("the page has %s as %q, gates as %q", name, want, live[name])
		}
	}
	for name := range live {
		if !told[name] {
			t.Errorf("docs/metrics.md does not tell of %s", name)
		}
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if h := m.GetHistogram(); h != nil && (len(h.Bucket) == 0 || h.GetZeroThreshold() == 0) {
				t.Errorf("%s is not both a classic and a native histogram", f.GetName())
			}
		}
	}
}
