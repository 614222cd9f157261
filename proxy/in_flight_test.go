package proxy

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/reject"
	"sluice/upstream"
)

// together is a limit in flight of most requests of each uid.
func together(name string, most int, routes ...string) (InFlight, *limiter.InFlightLimiter) {
	l := limiter.NewInFlightLimiter(limiter.InFlightSpec{Max: most})
	return InFlight{Name: name, Key: "$cookie_uid", Routes: routes, Max: most, Limiter: l}, l
}

// requestsOf is how many requests l has in flight.
func requestsOf(l *limiter.InFlightLimiter) int {
	_, n := l.InFlight()
	return n
}

const uidSearch = "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nCookie: uid="

func TestKeyedInFlight_KeyHasSoManyRequestsInTheUpstream(t *testing.T) {
	limit, counter := together("two", 2)
	entered, answer := make(chan struct{}, 10), make(chan struct{})
	o := options(upstreamFunc(func(_ *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
		entered <- struct{}{}
		<-answer
		resp.SetBodyString("done")
		return upstream.Answered
	}))
	o.InFlight = []InFlight{limit}
	addr, p := gateway(t, o)
	verdicts := make(chan string, 10)
	for _, uid := range []string{"7", "7", "8"} {
		go func() {
			resp, _ := talk(t, addr, uidSearch+uid+"\r\n\r\n")
			verdicts <- reasonOrStatus(resp)
		}()
		<-entered
	}
	for range 2 { // the second one of a place that was not taken
		if resp, _ := talk(t, addr, uidSearch+"7\r\n\r\n"); reasonOrStatus(resp) != "in_flight" || resp.StatusCode != 429 {
			t.Errorf("the third request of a key: %s, want in_flight", reasonOrStatus(resp))
		}
	}
	close(answer)
	for range 3 {
		if got := <-verdicts; got != "200" {
			t.Errorf("%s, want 200", got)
		}
	}
	if resp, _ := talk(t, addr, uidSearch+"7\r\n\r\n"); reasonOrStatus(resp) != "200" {
		t.Errorf("after the answers: %s, want 200", reasonOrStatus(resp))
	}
	testkit.Eventually(t, "nothing is in flight", func() bool { return requestsOf(counter) == 0 })
	shown := testkit.Series(t, p.Counters())
	for _, series := range []string{"sluice_rejected_requests_total in_flight search",
		"sluice_rate_rejected_requests_total two"} {
		if shown[series] != 2 {
			t.Errorf("%s: %v, want 2", series, shown[series])
		}
	}
}

// full takes all places of uid 7.
func full(l *limiter.InFlightLimiter, most int) {
	for range most {
		l.Acquire([]byte("7\x01\x00\x00\x00"))
	}
}

func TestKeyedInFlight_ObservedRejectsNothing(t *testing.T) {
	watched, counter := together("watched", 1)
	watched.Observe = true
	full(counter, 1)
	o := options(&recorder{})
	o.InFlight = []InFlight{watched}
	addr, p := gateway(t, o)
	if resp, _ := talk(t, addr, uidSearch+"7\r\n\r\n"); reasonOrStatus(resp) != "200" {
		t.Errorf("%s, want 200", reasonOrStatus(resp))
	}
	shown := testkit.Series(t, p.Counters())
	if shown["sluice_observed_rejections_total in_flight search"] != 1 ||
		shown["sluice_rate_observed_rejections_total watched"] != 1 || requestsOf(counter) != 1 {
		t.Errorf("%v, and %d in flight", shown, requestsOf(counter))
	}
}

// Whatever rejects a request behind the limit, and however the upstream fails, its place is given back.
func TestKeyedInFlight_PlaceIsGivenBackOnEveryPath(t *testing.T) {
	always := func(outcome upstream.Outcome) func(*Options) {
		return func(o *Options) {
			o.Upstream = upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome { return outcome })
		}
	}
	slot := func(reason reject.Reason) func(*Options) {
		return func(o *Options) { o.Concurrency = slotFunc(func() reject.Reason { return reason }) }
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"answered": {func(*Options) {}, "200"},
		"window": {func(o *Options) {
			o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
		}, "window"},
		"queue full":         {slot(reject.Concurrency), "concurrency"},
		"queue timeout":      {slot(reject.QueueTimeout), "queue_timeout"},
		"upstream timed out": {always(upstream.TimedOut), "upstream_timeout"},
		"upstream busy":      {always(upstream.Busy), "upstream_busy"},
		"not sent":           {always(upstream.NotSent), "no_upstream"},
		"panic": {func(o *Options) {
			o.Upstream = upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome { panic("test") })
		}, "internal"},
		"second limit": {func(o *Options) {
			second, counter := together("second", 1)
			second.Limiter = lateFull{counter}
			full(counter, 1)
			o.InFlight = append(o.InFlight, second)
		}, "in_flight"},
		"observe mode": {func(o *Options) { o.Observe = true; slot(reject.Concurrency)(o) }, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			limit, counter := together("two", 2)
			o := options(&recorder{})
			o.InFlight = []InFlight{limit}
			c.change(&o)
			addr, _ := gateway(t, o)
			if resp, _ := talk(t, addr, uidSearch+"7\r\n\r\n"); reasonOrStatus(resp) != c.want {
				t.Errorf("%s, want %s", reasonOrStatus(resp), c.want)
			}
			testkit.Eventually(t, "nothing is in flight", func() bool { return requestsOf(counter) == 0 })
		})
	}
}

// lateFull does not tell before Acquire that it is full.
type lateFull struct{ *limiter.InFlightLimiter }

func (lateFull) Full([]byte) bool { return false }

func TestKeyedInFlight_PlaceOfATunnelIsGivenBack(t *testing.T) {
	limit, counter := together("chats", 1, "rest")
	to := &switching{far: make(chan net.Conn, 1)}
	o := options(to)
	o.InFlight = []InFlight{limit}
	addr, _ := gateway(t, o)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(upgradeWith("Host: shop\r\n", "Host: shop\r\nCookie: uid=7\r\n"))); err != nil {
		t.Fatal(err)
	}
	far := <-to.far
	defer far.Close()
	testkit.Eventually(t, "nothing is in flight", func() bool { return requestsOf(counter) == 0 })
}

func TestFaults_AreLimitsInFlightThatCannotCount(t *testing.T) {
	one, _ := together("one", 1)
	noName, _ := together("r", 1, "nowhere")
	body, _ := together("r", 1, "rest")
	body.Key = "$form_x"
	for _, c := range []struct {
		limits []InFlight
		want   string
	}{
		{[]InFlight{one, one, one, one}, ""},
		{[]InFlight{one, one, one, one, one},
			`in_flight "one": key: on route "search": 4 limits in flight count there already: name the routes of each`},
		{[]InFlight{noName}, `in_flight "r": routes: there is no such route`},
		{[]InFlight{body}, `in_flight "r": key: on route "rest": the bodies of a pass route are not read`},
	} {
		got := ""
		if errs := Faults(Options{Routes: orderRoutes, Limiters: Limiters{InFlight: c.limits}}); len(errs) > 0 {
			got = errors.Join(errs...).Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}
