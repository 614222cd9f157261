package proxy

import (
	"strings"
	"testing"
	"time"

	"sluice/proxy/reject"
)

const browserHeaders = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\n" +
	"Accept: application/json, text/plain, */*\r\nAccept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\n" +
	"Accept-Encoding: gzip, deflate\r\nOrigin: https://shop.example\r\nReferer: https://shop.example/1001\r\n"

// A rejection is what a flood costs: it allocates nothing, whatever the reason and the form of its response.
func TestHandle_RejectionAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, tt := range map[string]struct {
		set func(*Options)
		raw string
	}{
		"sold out":         {closedFor(reject.SoldOut), order},
		"sold out page":    {closedFor(reject.SoldOut), orderWith("Cookie", "Accept: text/html\r\nCookie")},
		"sold out, ledger": {func(o *Options) { ordersDecide(o, reject.SoldOut, true) }, buying},
		"sold out, by the upstream": {func(o *Options) {
			o.Feedback = &fakeFeedback{soldOut: map[string]bool{"1001": true}}
		}, order},
		"window full": {func(o *Options) { o.Windows = fullWindow{} }, order},
		"queue full":  {func(o *Options) { o.Concurrency = fullQueue{} }, order},
		"connection rate": {func(o *Options) {
			o.ConnRate = func() ConnRateLimiter { return exhaustedRate{} }
		}, order},
		"deny list":     {func(o *Options) { o.Deny = append(networkList(5000), prefixes(clientAddress+"/32")...) }, order},
		"not started":   {func(o *Options) { o.Schedule = &closedSchedule{} }, order},
		"user missing":  {nil, orderWith("uid=7", "other=7")},
		"ambiguous":     {nil, orderWith("/order", "/order/")},
		"no route":      {func(o *Options) { o.Routes = o.Routes[:1] }, search},
		"order token":   {withOrderToken, order},
		"waiting room":  {withRoom, order},
		"denied":        {requiring("$cookie_uid>=8"), order},
		"no number":     {requiring("$host>=8"), order},
		"no such value": {requiring("$http_level>=2"), order},
		"in flight": {func(o *Options) {
			limit, counter := together("two", 2)
			full(counter, 2)
			o.InFlight = []InFlight{limit}
		}, order},
		"rate exceeded": {func(o *Options) { o.Rates, o.Now = []Rate{exhaustedHostRate()}, oneHour }, order},
	} {
		o := options(&recorder{})
		if tt.set != nil {
			tt.set(&o)
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: unlimited{}})
		x := requested(t, p, withHeaders(tt.raw))
		if p.ConnRate != nil {
			x.State.(*connState).rate = p.ConnRate()
		}
		handle := func() {
			s.Handle(x.Ctx())
			x.Ctx().Response.Reset()
		}
		for range 10 {
			handle()
		}
		if n := testing.AllocsPerRun(200, handle); n != 0 {
			t.Errorf("%s: %v allocations a request", name, n)
		}
		if len(rejections(p)) != 1 {
			t.Errorf("%s: rejected %v", name, rejections(p))
		}
	}
}

// withHeaders is raw with what a browser sends beside.
func withHeaders(raw string) string {
	return strings.Replace(raw, "Host: shop\r\n", "Host: shop\r\n"+browserHeaders, 1)
}

// closedSchedule has not begun.
type closedSchedule struct{}

func (*closedSchedule) Closed(int64, []byte, bool) (reject.Reason, time.Duration) {
	return reject.NotStarted, time.Minute
}

func oneHour() int64 { return int64(time.Hour) }
