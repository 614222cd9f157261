package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/reject"
	"sluice/upstream"
)

const search = "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"

// fillLimits makes every limit reject.
func fillLimits(o *Options) {
	o.ConnRate = func() ConnRateLimiter { return exhaustedRate{} }
	o.Rates = []Rate{exhaustedHostRate()}
	o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
	o.Concurrency = slotFunc(always(reject.Concurrency))
}

// exhaustedRate is the request rate of a connection that may send no more.
type exhaustedRate struct{}

func (exhaustedRate) Allow(time.Time) (time.Duration, bool) { return time.Second, false }

// exhaustedHostRate is a rate by host of one request an hour, which host "shop" has used up at 1 h.
func exhaustedHostRate() Rate {
	spec := limiter.RateSpec{PerSecond: 1. / 3600, Burst: 1, MaxKeys: 1 << 16}
	r := Rate{Name: "r", Key: "$host", IPv4Prefix: 32, IPv6Prefix: 64, Burst: 1, PerSecond: spec.PerSecond,
		Limiter: limiter.NewRateLimiter(spec)}
	r.Limiter.Acquire(int64(time.Hour), []byte("shop\x04\x00\x00\x00"))
	return r
}

// reasonOrStatus is the reason of a rejection, or the status.
func reasonOrStatus(resp *http.Response) string {
	if reason := resp.Header.Get("X-Sluice-Reason"); reason != "" {
		return reason
	}
	return fmt.Sprint(resp.StatusCode)
}

// Each limit that is only observed counts its rejection, and the next check goes on.
func TestAdmit_ObserveOnlyLimitContinuesWithTheNextCheck(t *testing.T) {
	limits := []reject.Reason{reject.ConnRate, reject.Rate, reject.Window, reject.Concurrency}
	for i := range len(limits) + 1 {
		o := options(&recorder{})
		fillLimits(&o)
		o.Now = func() int64 { return 0 }
		o.ObserveOnly = limits[:i]
		o.Rates[0].Observe = i >= 2
		addr, p := gateway(t, o)
		resp, _ := talk(t, addr, search)
		want := "200"
		if i < len(limits) {
			want = limits[i].String()
		}
		if got := reasonOrStatus(resp); got != want {
			t.Errorf("observed %v: %s, want %s", limits[:i], got, want)
		}
		shown := testkit.Series(t, p.Counters())
		for j, reason := range limits {
			rejected := shown["sluice_rejected_requests_total "+reason.String()+" search"]
			observed := shown["sluice_observed_rejections_total "+reason.String()+" search"]
			if (rejected == 1) != (j == i) || (observed == 1) != (j < i) {
				t.Errorf("observed %v: %v: %v rejected, %v observed", limits[:i], reason, rejected, observed)
			}
		}
	}
}

func TestConcurrencyLimit_SlotThatWasNotAcquiredIsNotReleased(t *testing.T) {
	released := 0
	o := options(&recorder{})
	o.Concurrency = countedSlots{slotFunc(always(reject.QueueTimeout)), &released}
	o.ObserveOnly = []reject.Reason{reject.QueueTimeout}
	addr, _ := gateway(t, o)
	if resp, _ := talk(t, addr, search); resp.StatusCode != 200 || released != 0 {
		t.Errorf("%d, %d slots released; want 200, none", resp.StatusCode, released)
	}
}

// countedSlots count what is released.
type countedSlots struct {
	slotFunc
	released *int
}

func (s countedSlots) Release(time.Duration) { *s.released++ }

func TestMaxRequests_ConnectionEndsWithItsLastRequest(t *testing.T) {
	o := options(&recorder{})
	o.MaxRequests = 3
	addr, _ := gateway(t, o)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(c)
	for i := 1; i <= 3; i++ {
		if _, err := io.WriteString(c, "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "from the upstream" || resp.Close != (i == 3) {
			t.Errorf("request %d: %q, %v, the last %v", i, body, err, resp.Close)
		}
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("after the last response: %v, want the end", err)
	}
}

// timedSlots note by name for how long the upstream had the request whose slot is released.
type timedSlots struct {
	slotFunc
	name string
	took map[string]time.Duration
}

func (s timedSlots) Release(took time.Duration) { s.took[s.name] = took }

func TestConcurrencyLimit_OfTheRouteComesBeforeThatOfAll(t *testing.T) {
	for outcome, sent := range map[upstream.Outcome]bool{upstream.Answered: true, upstream.NotSent: false} {
		released := map[string]time.Duration{}
		o := options(ending(outcome))
		o.Concurrency = timedSlots{slotFunc(always(reject.Admitted)), "all", released}
		o.Routes = append([]Route{}, orderRoutes...)
		o.Routes[1].Concurrency = timedSlots{slotFunc(always(reject.Admitted)), "search", released}
		addr, _ := gateway(t, o)
		talk(t, addr, search)
		if took, ok := released["search"]; !ok || len(released) != 1 || took > 0 != sent {
			t.Errorf("%v: released %v; want the route's own slot, with a time where it was sent", outcome, released)
		}
	}
}

// A body in chunks that is one byte too long is so also where its end has come along.
func TestBody_OneByteOverTheLimitIsTooLarge(t *testing.T) {
	to := &recorder{}
	o := options(to)
	addr, _ := gateway(t, o)
	for size, want := range map[int64]int{o.MaxBody: 200, o.MaxBody + 1: 413} {
		content := strings.Repeat("x", int(size))
		for _, framed := range []string{
			fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, content),
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, content),
		} {
			if resp, _ := talk(t, addr, orderWith(whole, framed)); resp.StatusCode != want {
				t.Errorf("%d bytes, %.20q: %d, want %d", size, framed, resp.StatusCode, want)
			}
		}
	}
}
