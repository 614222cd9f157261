package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// call is a request of a shopper, and the status that it must have.
type call struct {
	method, path string
	status       int
}

// steady sends so many requests a second over connections that stay open, until the returned function is called, and
// has every one that fails be an error of the test. Each shopper sends them in turn.
func (g *running) steady(perSecond int, calls ...call) (end func() (sent int64)) {
	shoppers := min(max(perSecond/40, 8), 128)
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	var answered atomic.Int64
	for range shoppers {
		crowd.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: long}
			defer client.CloseIdleConnections()
			tick := time.NewTicker(time.Second * time.Duration(shoppers) / time.Duration(perSecond))
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				next := calls[i%len(calls)]
				ask, err := http.NewRequest(next.method, "http://"+g.front+next.path, nil)
				if err != nil {
					panic(err)
				}
				resp, err := client.Do(ask)
				if err != nil {
					g.t.Errorf("a shopper noticed: %v", err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != next.status {
					g.t.Errorf("a shopper noticed at %s: %d, %.100q, %v", next.path, resp.StatusCode, body, err)
				}
				answered.Add(1)
			}
		})
	}
	return func() int64 {
		close(stop)
		crowd.Wait()
		return answered.Load()
	}
}

// told is one answer of the control API.
func (g *running) told(method, path, body string, into any) int {
	g.t.Helper()
	a := g.control(method, "/api/v1"+path, body)
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a.status
}

// rateOf is the load of a test: modest, unless SLUICE_RATE says otherwise.
func rateOf(t *testing.T) int {
	text := os.Getenv("SLUICE_RATE")
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_RATE=%q is no number of requests a second", text)
	}
	return n
}

// Forty times SIGHUP under load, with good and bad files by turns: no request fails, no counter falls, each bad
// file is told with line and key, an override outlives all of them, and who listens to the events goes on hearing them.
func TestReload_UnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := gate(t, shop.setting(), `stock.source = "off"`, unlimited, "limits.concurrency.max_in_flight = 1000",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"")
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ ID string }
	if code := g.told("POST", "/overrides", `{"key": "limits.concurrency.max_queue", "value": 77, "for": "1h"}`,
		&set); code != 200 {
		t.Fatalf("override: %d", code)
	}
	events, err := g.client.Transport.RoundTrip(mustAsk(t, "http://"+g.admin+"/api/v1/events"))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	var heard atomic.Int64
	go func() {
		for lines := bufio.NewScanner(events.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "event: second") {
				heard.Add(1)
			}
		}
	}()
	start, end := time.Now(), g.steady(rateOf(t), call{"GET", "/", 200})
	served := 0.0
	const pairs = 20
	for i := range pairs {
		good := strings.Replace(string(text), "max_in_flight = 1000", "max_in_flight = "+[]string{"1000", "2000"}[i%2], 1)
		g.rewrite(good, true)
		bad, key, line := spoilt(good, i)
		g.rewrite(bad, false)
		var s status
		g.told("GET", "/status", "", &s)
		if p := s.Reload.Problems; s.Reload.OK || len(p) != 1 || p[0].Key != key || p[0].Line != line {
			t.Fatalf("bad file %d is told as %+v, want %s on line %d", i, s.Reload, key, line)
		}
		if len(s.Overrides) != 1 || s.Overrides[0].ID != set.ID {
			t.Fatalf("the override has gone: %+v", s)
		}
		now := g.metric("sluice_http_requests_total", `route="all"`)
		if now < served {
			t.Errorf("the counter fell from %v to %v", served, now)
		}
		served = now
	}
	before := heard.Load()
	soon(t, "the events go on", func() bool { return heard.Load() > before })
	sent := end()
	g.wantMetric(float64(sent), "sluice_http_requests_total", `route="all"`)
	g.logs(t, "limits.concurrency.max_in_flight: 1000 -> 2000",
		"limits.concurrency.max_in_flight: 2000 -> 1000")
	t.Logf("%d requests, %.0f/s, and %d reloads: none failed", sent, float64(sent)/time.Since(start).Seconds(), 2*pairs)
}

// status is what the test looks at.
type status struct {
	Reload struct {
		OK       bool
		Problems []struct {
			Key  string
			Line int
		}
	}
	Overrides []struct{ ID string }
}

func mustAsk(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spoilt is a good file with a mistake of its own kind, at the key max_in_flight.
func spoilt(good string, i int) (bad, key string, line int) {
	wrong := []struct{ text, key string }{
		{"limits.concurrency.max_in_fligth = 1000", "limits.concurrency.max_in_fligth"},
		{"limits.concurrency.max_in_flight = 0", "limits.concurrency.max_in_flight"},
		{`limits.concurrency.max_in_flight = "many"`, "limits.concurrency.max_in_flight"},
	}[i%3]
	for n, l := range strings.Split(good, "\n") {
		if strings.Contains(l, "max_in_flight = ") {
			return strings.Replace(good, l, wrong.text, 1), wrong.key, n + 1
		}
	}
	panic(fmt.Sprintf("BUG: no max_in_flight in %s", good))
}
