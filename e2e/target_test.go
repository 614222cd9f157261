package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
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
