package proxy

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// scheduleFunc is a schedule of one function.
type scheduleFunc func(sku string, reserved bool) (reject.Reason, time.Duration)

func (f scheduleFunc) Closed(_ int64, sku []byte, reserved bool) (reject.Reason, time.Duration) {
	return f(string(sku), reserved)
}

func TestSchedule_RejectsBeforeAnyLimitIsAsked(t *testing.T) {
	for _, gate := range []route.Gate{route.Limit, route.Check, route.Reserve} {
		to := &recorder{}
		o, ledger := reserving(to)
		o.Routes[0].Gate = gate
		var windows atomic.Int64
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { windows.Add(1); return 0, true })
		o.Schedule = scheduleFunc(func(sku string, reserved bool) (reject.Reason, time.Duration) {
			if sku != "1001" || reserved != (gate == route.Reserve) {
				t.Errorf("asked for %q, reserved %v", sku, reserved)
			}
			return reject.NotStarted, 5 * time.Second
		})
		resp, body, _ := handleOne(t, o, buying)
		if resp.StatusCode != 403 || resp.Header.Get("X-Sluice-Reason") != "not_started" ||
			resp.Header.Get("Retry-After") != "5" {
			t.Errorf("gate %v: %d %v", gate, resp.StatusCode, resp.Header)
		}
		if windows.Load() != 0 || len(ledger.asked()) != 0 || len(to.all()) != 0 {
			t.Errorf("gate %v: an early request cost %d windows, asked for %q, reached the upstream %q",
				gate, windows.Load(), ledger.asked(), to.all())
		}
		if denies := deniesOrder(body); denies != (gate != route.Reserve) {
			t.Errorf("gate %v: an order of an earlier sale may have this key: denied %v: %s", gate, denies, body)
		}
		if _, body, _ := handleOne(t, o, strings.Replace(buying, "Idempotency-Key: mine\r\n", "", 1)); !deniesOrder(body) {
			t.Errorf("gate %v: an early order without a key is not told that there is none: %s", gate, body)
		}
	}
}

func TestSchedule_ConfirmedOrderIsAnsweredBeforeIt(t *testing.T) {
	o, ledger := reserving(&recorder{})
	ledger.decided, ledger.answer.Reason = true, reject.Confirmed
	o.Schedule = scheduleFunc(func(string, bool) (reject.Reason, time.Duration) { return reject.Paused, 0 })
	if resp, _, _ := handleOne(t, o, buying); resp.StatusCode != 200 || resp.Header.Get("X-Sluice-Reason") != "confirmed" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// A pause is for requests that wait for a slot, too: the schedule is asked again after it.
func TestSchedule_IsAskedAgainAfterWaiting(t *testing.T) {
	for _, gate := range []route.Gate{route.Limit, route.Check, route.Reserve} {
		to := &recorder{}
		o, ledger := reserving(to)
		o.Routes[0].Gate = gate
		var calls atomic.Int64
		o.Schedule = scheduleFunc(func(string, bool) (reject.Reason, time.Duration) {
			if calls.Add(1) == 1 {
				return reject.Admitted, 0
			}
			return reject.Paused, 0
		})
		released := 0
		o.Concurrency = countedSlots{slotFunc(always(reject.Admitted)), &released}
		resp, _, _ := handleOne(t, o, buying)
		if got := reasonOrStatus(resp); got != "paused" || released != 1 || len(to.all())+len(ledger.asked()) > 0 {
			t.Errorf("gate %v: %s, %d slots released, the upstream saw %q, the ledger %q",
				gate, got, released, to.all(), ledger.asked())
		}
	}
}
