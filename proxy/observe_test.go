package proxy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/upstream"
)

// In observe mode the first objection is the one that counts: what was acquired before it is released before the
// request is forwarded, and no later check is asked.
func TestAdmit_ObserveModeStopsAtTheFirstObjectionAndReleases(t *testing.T) {
	var calls []string
	o := options(upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome {
		calls = append(calls, "send")
		return upstream.Answered
	}))
	o.Observe = true
	o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { calls = append(calls, "window"); return 0, true })
	o.Concurrency = calledSlots{slotFunc(always(reject.Admitted)), &calls}
	o.Schedule = &closing{&calls, 1, reject.Paused}
	addr, p := gateway(t, o)
	if resp, body := talk(t, addr, order); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if want := []string{"schedule", "window", "acquire", "schedule", "release", "send"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
	if stock := o.Stock.(*stockMap); stock.entered != 0 {
		t.Error("the stock was asked after the first objection")
	}
	shown := testkit.Series(t, p.Counters())
	for reason := reject.Admitted + 1; reason < reject.NumReasons; reason++ {
		n := shown["sluice_observed_rejections_total "+reason.String()+" order"]
		if (n == 1) != (reason == reject.Paused) {
			t.Errorf("%v is observed %v times", reason, n)
		}
	}
}

// calledSlots note when a slot is acquired and released.
type calledSlots struct {
	slotFunc
	calls *[]string
}

func (s calledSlots) Acquire(c limiter.Client, _ bool) reject.Reason {
	*s.calls = append(*s.calls, "acquire")
	return s.slotFunc.Acquire(c, false)
}
func (s calledSlots) Release(time.Duration) { *s.calls = append(*s.calls, "release") }

// closing is a schedule that is open for so many calls.
type closing struct {
	calls  *[]string
	open   int
	reason reject.Reason
}

func (c *closing) Closed(int64, []byte, bool) (reject.Reason, time.Duration) {
	*c.calls = append(*c.calls, "schedule")
	if c.open--; c.open >= 0 {
		return reject.Admitted, 0
	}
	return c.reason, 0
}

// An order that another check objects to is forwarded without a reservation: nothing is taken, and nothing is settled.
func TestAdmit_ObserveModeReservesNothingAfterAnObjection(t *testing.T) {
	to := &recorder{}
	o, ledger := reserving(to)
	o.Observe = true
	o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Second, false })
	addr, _ := gateway(t, o)
	if resp, body := talk(t, addr, buying); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	got := to.all()
	if len(got) != 1 || strings.Contains(got[0], "Sluice-") || len(ledger.asked()) != 0 || len(ledger.settled()) != 0 {
		t.Errorf("the upstream saw %q, the ledger was asked for %q, settled %v", got, ledger.asked(), ledger.settled())
	}
}

// A request that is only observed to be rejected by the ledger itself reaches the upstream without a reservation, too.
func TestAdmit_ObserveModeSettlesNoOrderThatTheLedgerRejects(t *testing.T) {
	to := &recorder{}
	o, ledger := reserving(to)
	o.Observe, ledger.answer.Reason = true, reject.SoldOut
	addr, _ := gateway(t, o)
	talk(t, addr, buying)
	if got := to.all(); len(got) != 1 || len(ledger.settled()) != 0 {
		t.Errorf("the upstream saw %q, settled %v", got, ledger.settled())
	}
	ledger.mu.Lock()
	ledger.answer.Reason = reject.Admitted
	ledger.mu.Unlock()
	talk(t, addr, buying)
	if f := ledger.settled(); len(f) != 1 || f[0] != metrics.OrderConfirmed {
		t.Errorf("settled %v, want the order that was reserved", f)
	}
}

func TestObserveMode_AnswersQuestionsForAnOrdersState(t *testing.T) {
	o, _ := reserving(&recorder{})
	o.Observe, o.ConnRate = true, func() ConnRateLimiter { return exhaustedRate{} }
	addr, _ := gateway(t, o)
	resp, body := talk(t, addr, "GET /.sluice/orders/s-1?sku=1001 HTTP/1.1\r\nHost: shop\r\n\r\n")
	if resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
