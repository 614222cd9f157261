package proxy

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// salesFunc is a schedule of one line.
type salesFunc func(sku string, reserved bool) (Reason, time.Duration)

func (f salesFunc) Closed(_ int64, sku []byte, reserved bool) (Reason, time.Duration) {
	return f(string(sku), reserved)
}

// pupil remembers what the shop taught.
type pupil struct {
	soldOut map[string]bool
	learnt  []string
}

func (p *pupil) SoldOut(_ int64, sku []byte) bool { return p.soldOut[string(sku)] }
func (p *pupil) Learn(_ int64, sku []byte, reserved bool) {
	word := string(sku)
	if reserved {
		word += " held"
	}
	p.learnt = append(p.learnt, word)
}

func TestScheduleRefusesBeforeAnyLimitIsAsked(t *testing.T) {
	for _, gated := range []Gate{Limit, Check, Reserve} {
		shop := &seen{}
		o, c := reserving(shop)
		o.Routes[0].Gate = gated
		var taken atomic.Int64
		o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) { taken.Add(1); return 0, true })
		o.Sales = salesFunc(func(sku string, reserved bool) (Reason, time.Duration) {
			if sku != "1001" || reserved != (gated == Reserve) {
				t.Errorf("asked for %q, reserved %v", sku, reserved)
			}
			return NotStarted, 5 * time.Second
		})
		addr, _ := gate(t, o)
		resp, body := talk(t, addr, buying)
		if resp.StatusCode != 403 || resp.Header.Get("X-Sluice-Reason") != "not_started" || resp.Header.Get("Retry-After") != "5" {
			t.Errorf("gate %v: %d %v", gated, resp.StatusCode, resp.Header)
		}
		if taken.Load() != 0 || len(c.orders) != 0 || len(shop.all()) != 0 {
			t.Errorf("gate %v: an early request cost %d windows, asked for %q, reached the shop %q", gated, taken.Load(), c.orders, shop.all())
		}
		if early := strings.Contains(body, "not charged"); gated == Reserve && early {
			t.Errorf("who may have an order of an earlier sale is told that there is none: %s", body)
		}
		if _, body := talk(t, addr, strings.Replace(buying, "Idempotency-Key: mine\r\n", "", 1)); !strings.Contains(body, "not charged") {
			t.Errorf("gate %v: who is early is not told that there is no order: %s", gated, body)
		}
	}
}

func TestWinnerIsHeardBeforeTheSchedule(t *testing.T) {
	o, c := reserving(&seen{})
	c.closed, c.says.Reason = true, Confirmed
	o.Sales = salesFunc(func(string, bool) (Reason, time.Duration) { return Paused, 0 })
	addr, _ := gate(t, o)
	if resp, _ := talk(t, addr, buying); resp.StatusCode != 200 || resp.Header.Get("X-Sluice-Reason") != "confirmed" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestShopTeachesThatASKUIsSoldOut(t *testing.T) {
	on := &SoldOutOn{Status: []int{409}, Header: "X-Stock", Value: "0", JSON: &JSONValue{Keys: []string{"data", "code"}, Values: []string{`500500`, `"gone"`}}}
	for _, tt := range []struct {
		name   string
		gate   Gate
		on     *SoldOutOn
		answer func(*fasthttp.Response)
		learnt string
	}{
		{"all of it", Limit, on, saysSo(409, "X-Stock", "0", `{"data":{"code":500500}}`), "1001"},
		{"checked", Check, on, saysSo(409, "X-Stock", "0", `{"data":{"code":"gone"}}`), "1001"},
		{"another status", Limit, on, saysSo(200, "X-Stock", "0", `{"data":{"code":500500}}`), ""},
		{"another value", Limit, on, saysSo(409, "X-Stock", "1", `{"data":{"code":500500}}`), ""},
		{"no header", Limit, on, saysSo(409, "X-Other", "0", `{"data":{"code":500500}}`), ""},
		{"another code", Limit, on, saysSo(409, "X-Stock", "0", `{"data":{"code":0}}`), ""},
		{"no JSON", Limit, on, saysSo(409, "X-Stock", "0", `gone`), ""},
		{"a page", Limit, on, saysSo(409, "X-Stock", "0", `{"data":{"code":500500},"x":"`+strings.Repeat("x", mostRead)+`"}`), ""},
		{"its own word", Check, nil, saysSo(200, "Sluice-Order", "sold-out", ""), "1001"},
		{"another word", Check, nil, saysSo(200, "Sluice-Order", "released", ""), ""},
		{"its own word of an order", Reserve, on, saysSo(200, "Sluice-Order", "sold-out", ""), "1001 held"},
		{"the answer to an order", Reserve, on, saysSo(409, "X-Stock", "0", `{"data":{"code":500500}}`), ""},
		{"nothing is gated", Pass, on, saysSo(409, "X-Stock", "0", `{"data":{"code":500500}}`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, c := reserving(shopFunc(func(_ *Outgoing, resp *fasthttp.Response) Outcome { tt.answer(resp); return Answered }))
			p := &pupil{}
			o.Lessons, o.SoldOutOn, o.Routes[0].Gate = p, tt.on, tt.gate
			addr, _ := gate(t, o)
			resp, _ := talk(t, addr, buying)
			if got := strings.Join(p.learnt, ","); got != tt.learnt {
				t.Errorf("learnt %q, want %q", got, tt.learnt)
			}
			if tt.gate != Pass && resp.Header.Get("Sluice-Order") != "" {
				t.Error("the shop's word reached the client")
			}
			if f := c.settled(); tt.learnt == "1001 held" && (len(f) != 1 || f[0] != Dropped) {
				t.Errorf("settled %v, want the units back", f)
			}
		})
	}
}

func saysSo(status int, name, value, body string) func(*fasthttp.Response) {
	return func(resp *fasthttp.Response) {
		resp.SetStatusCode(status)
		resp.Header.Set(name, value)
		resp.SetBodyString(body)
	}
}

func TestWhatWasLearntIsAnsweredHere(t *testing.T) {
	for gated, want := range map[Gate]int{Limit: 409, Check: 409, Reserve: 200} { // of an order the ledger decides
		shop := &seen{}
		o, _ := reserving(shop)
		o.Routes[0].Gate, o.Lessons = gated, &pupil{soldOut: map[string]bool{"1001": true}}
		addr, _ := gate(t, o)
		if resp, _ := talk(t, addr, buying); resp.StatusCode != want || (len(shop.all()) == 0) != (want == 409) {
			t.Errorf("gate %v: %d, the shop saw %q", gated, resp.StatusCode, shop.all())
		}
	}
}
