package upstream

import (
	"context"
	"log/slog"
	"sluice/internal/testkit"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var quietLog = slog.New(slog.DiscardHandler)

func TestHealth_CheckPassesOnTheStatusesNamed(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		head, _, err := v.request()
		if err != nil {
			return
		}
		switch targetOf(head) {
		case "/200":
			v.reply(ok("fine"))
		case "/399":
			v.reply("HTTP/1.1 399 Hm\r\nContent-Length: 0\r\n\r\n")
		case "/500":
			v.reply("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
		case "/garbage":
			v.reply("nonsense\r\n\r\n")
		case "/hang":
			v.waitClosed()
		}
	})
	p := newPool(t, options(server.url()))
	x := p.targets.Load().all[0]
	for path, want := range map[string]bool{"/200": true, "/399": true, "/500": false, "/garbage": false, "/hang": false} {
		timeout := 30 * time.Second
		if path == "/hang" {
			timeout = 300 * time.Millisecond
		}
		err := x.check(context.Background(), Health{Path: path, Timeout: timeout})
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A target that fails its checks gets no request while another one is up; one that is the last does.
func TestHealth_UnhealthyTargetGetsNoRequest(t *testing.T) {
	checked := make(chan struct{}, 100)
	sick := newRawServer(t, func(v *visit) {
		head, _, err := v.request()
		if err != nil {
			return
		}
		v.reply("HTTP/1.1 503 Sick\r\nContent-Length: 0\r\n\r\n")
		if targetOf(head) == "/health" {
			checked <- struct{}{}
		}
	})
	well := newRawServer(t, echo)
	o := options(sick.url(), well.url())
	o.Policy = "first"
	o.Health = Health{"/health", time.Millisecond, 5 * time.Second, 2, 2}
	p := newPool(t, o)
	for range 3 { // the third check begins after the second was judged
		<-checked
	}
	for _, target := range []string{"/1", "/2", "/3"} {
		mustAnswer(t, p, target)
	}
	if st := p.Targets(); st[0].Healthy || !st[1].Healthy {
		t.Errorf("%+v", st)
	}
	if err := replace(p, []string{sick.url()}); err != nil {
		t.Fatal(err)
	}
	if outcome, resp := sendOrder(p, "POST", "/last"); outcome != Answered || resp.StatusCode() != 503 {
		t.Errorf("the last target got no request: outcome %d", outcome)
	}
}

// A check that hangs does not hold up Close.
func TestHealth_CloseEndsACurrentCheck(t *testing.T) {
	arrived := make(chan struct{})
	server := newRawServer(t, func(v *visit) {
		v.request()
		arrived <- struct{}{}
		v.waitClosed()
	})
	o := options(server.url())
	o.Health = Health{Path: "/health", Interval: time.Hour, Timeout: time.Hour, Fails: 1, Passes: 1}
	p := newPool(t, o)
	<-arrived
	p.Close() // would otherwise wait for an hour
}

func TestEjection_UnreachableTargetIsEjected(t *testing.T) {
	well := newRawServer(t, echo)
	o := options(closedPort(t), well.url())
	o.Policy = "first"
	p := newPool(t, o)
	for range ejectAfter {
		mustAnswer(t, p, "/")
	}
	if st := p.Targets(); !st[0].Ejected || st[1].Ejected {
		t.Errorf("%+v", st)
	}
}

func TestMetrics_CountEveryOutcome(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		v.each(func(head string) {
			switch targetOf(head) {
			case "/late":
				v.waitClosed()
			case "/broken":
				v.reply("x\r\n\r\n")
			case "/409":
				v.reply("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n")
			default:
				v.reply(ok("x"))
			}
		})
	})
	o := options(server.url(), "http://127.0.0.1:1")
	o.Policy = "first"
	p := newPool(t, o)
	for _, target := range []string{"/", "/", "/409", "/broken"} {
		sendOrder(p, "POST", target)
	}
	first := p.targets.Load().all[0]
	short := *first.settings.Load()
	short.response = 50 * time.Millisecond
	first.settings.Store(&short)
	sendOrder(p, "POST", "/late")
	server.stop()
	sendOrder(p, "POST", "/stopped")
	brief := strings.NewReplacer("sluice_upstream_", "", server.url(), "shop", "http://127.0.0.1:1", "dead")
	got := map[string]float64{}
	for name, value := range testkit.Series(t, p) {
		got[brief.Replace(name)] = value
	}
	want := map[string]float64{
		"requests_total 200 shop": 2, "requests_total 409 shop": 1, "requests_total error shop": 1,
		"requests_total timeout shop": 1, "requests_total not_sent shop": 1,
		"requests_total error dead": 0, "requests_total timeout dead": 0, "requests_total not_sent dead": 1,
		"in_flight shop": 0, "in_flight dead": 0, "pending_requests": 0,
		"held_connections shop": 0, "held_connections dead": 0, "response_memory_bytes": 0,
		"requests_total capped shop": 0, "requests_total capped dead": 0,
		"waits_total served": 0, "waits_total timed_out": 0, "waits_total full": 0, "up shop": 1, "up dead": 1,
		"connect_errors_total name shop": 0, "connect_errors_total refused shop": 1,
		"connect_errors_total timeout shop": 0, "connect_errors_total certificate shop": 0,
		"connect_errors_total tls shop": 0, "connect_errors_total other shop": 0,
		"connect_errors_total name dead": 0, "connect_errors_total refused dead": 1,
		"connect_errors_total timeout dead": 0, "connect_errors_total certificate dead": 0,
		"connect_errors_total tls dead": 0, "connect_errors_total other dead": 0,
		"request_duration_seconds shop": 5, "request_duration_seconds dead": 0, // only of what was written
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	testkit.Scrape(t, p) // lints it
}
