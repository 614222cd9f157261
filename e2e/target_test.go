package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// garbage answers what is no HTTP.
func garbage(c net.Conn, _ *http.Request) bool {
	_, _ = io.WriteString(c, "\x00\x01 I am a teapot\r\n\r\n") // the gate may have hung up
	return true
}

// silence never answers.
func silence(net.Conn, *http.Request) bool { return true }

// patience keeps a silent shop from being waited for long; a busy machine takes its time for what another says.
var patience = map[string]string{"silence": `upstream.response_header_timeout = "300ms"`, "garbage": ""}

func TestUpstream_UnreachableShopIsNoUpstream(t *testing.T) {
	t.Parallel()
	target := nowhere(t)
	g := stocked(t, "upstream.targets = "+quoted(target))
	for range 20 { // before and after the target is put out
		a := g.order("1001")
		a.must(t, 503, "no_upstream")
		if a.header.Get("Retry-After") == "" {
			t.Error("nothing was sent, so the order may be tried again: Retry-After is missing")
		}
	}
	g.wantMetric(0, "sluice_upstream_up")
	g.wantMetric(20, "sluice_rejected_requests_total", `route="order"`, `reason="no_upstream"`)
	soon(t, "a gate without a shop is not ready", func() bool { return !g.ready() })
}

func TestUpstream_ShopWithoutAValidResponseIsAskedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     deed
		status int
		reason string
	}{
		"garbage": {garbage, 502, "upstream_error"},
		"silence": {silence, 504, "upstream_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := misbehave(t, c.do)
			g := stocked(t, "upstream.targets = "+quoted(bad.url), patience[name])
			for i := range 10 {
				serial := fmt.Sprintf("%s-%d", name, i)
				a := g.order("1001", "Serial: "+serial)
				a.must(t, c.status, c.reason)
				if a.header.Get("Retry-After") != "" {
					t.Error("the order may exist: Retry-After invites a second one")
				}
				if n := bad.seen(serial); n != 1 {
					t.Errorf("the shop saw order %s %d times", serial, n)
				}
			}
		})
	}
}

// A second target takes over what was not sent, and never what may have been.
func TestUpstream_SecondTargetGetsOnlyWhatWasNotSent(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]deed{"garbage": garbage, "silence": silence} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good, bad := open(t, nil), misbehave(t, do)
			g := stocked(t, "upstream.targets = "+quoted(nowhere(t), bad.url, good.url), `upstream.policy = "round_robin"`,
				patience[name])
			answered := 0
			for i := range 30 {
				serial := fmt.Sprint(i)
				a := g.order("1001", "Serial: "+serial)
				if n := good.seen(serial) + bad.seen(serial); n != 1 {
					t.Errorf("order %s was seen %d times", serial, n)
				}
				// The good shop is late, too, where the machine is busy.
				if a.reason != "upstream_timeout" && a.status == 200 != (good.seen(serial) == 1) {
					t.Errorf("order %s was answered %d, but the good shop saw it %d times", serial, a.status, good.seen(serial))
				}
				if a.status == 200 {
					answered++
				}
			}
			if bad.arrivals.Load() == 0 || answered == 0 {
				t.Errorf("%d orders went to the bad shop, %d to the good one: nothing was tried", bad.arrivals.Load(), answered)
			}
		})
	}
}

func TestUpstream_UnhealthyTargetGetsNoRequest(t *testing.T) {
	t.Parallel()
	const healthy, sick = http.StatusOK, http.StatusServiceUnavailable
	var firsts, seconds, pages atomic.Int64 // what the two say of their health; the pages asked of the second
	firsts.Store(healthy)
	seconds.Store(healthy)
	first := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(int(firsts.Load()))
		}
	})
	second := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(int(seconds.Load()))
			return
		}
		pages.Add(1)
	})
	g := gate(t, "upstream.targets = "+quoted(first.url, second.url), `upstream.health.path = "/healthz"`)
	page := func() answer { return g.ask("GET", "/page") }
	up := func(n float64) func() bool { return func() bool { return g.metric("sluice_upstream_up") == n } }
	soon(t, "both are asked", func() bool { page().must(t, 200, ""); return pages.Load() > 0 })

	seconds.Store(sick)
	soon(t, "one target is down", up(1))
	before := pages.Load()
	for range 20 {
		page().must(t, 200, "")
	}
	if n := pages.Load() - before; n != 0 {
		t.Errorf("%d pages were asked of a target that is down", n)
	}
	wants(t, g.readiness(), "WARN upstream: 1 of 2 targets up")

	firsts.Store(sick)
	soon(t, "both are down", up(0))
	wants(t, g.readiness(), "FAIL upstream: 0 of 2 targets up", "not ready")

	firsts.Store(healthy)
	seconds.Store(healthy)
	soon(t, "both are up", up(2))
	soon(t, "the target that was down is asked again",
		func() bool { page().must(t, 200, ""); return pages.Load() > before })
	soon(t, "the gate is ready", g.ready)
}
