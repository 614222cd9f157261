package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

const order = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 2\r\n\r\nhi"

// ownName is what an instance calls itself in Via.
var ownName = regexp.MustCompile(`sluice-[0-9a-f]{12}`)

// A request that comes back to the instance that has forwarded it is rejected, also in observe mode; one of another
// instance is not.
func TestHandle_LoopIsRejected(t *testing.T) {
	for _, observe := range []bool{false, true} {
		to := &recorder{}
		o := options(to)
		o.Observe = observe
		addr, _ := gateway(t, o)
		via := "Via: 1.1 cdn, 1.1 sluice-0123456789ab\r\n"
		resp, _ := talk(t, addr, "GET /page HTTP/1.1\r\nHost: x\r\n"+via+"\r\n")
		if got := to.all(); resp.StatusCode != 200 || len(got) != 1 {
			t.Fatalf("behind another instance: %d, forwarded %q", resp.StatusCode, got)
		}
		own := ownName.FindString(strings.ReplaceAll(to.all()[0], "sluice-0123456789ab", ""))
		for _, via := range []string{own, "1.1 nginx, 1.1 " + own + " (comment)"} {
			resp, body := talk(t, addr, "GET /page HTTP/1.1\r\nHost: x\r\nVia: "+via+"\r\n\r\n")
			if resp.StatusCode != 508 || resp.Header.Get("X-Sluice-Reason") != "loop" || len(to.all()) != 1 {
				t.Errorf("observe %v, Via %q: %d %s, forwarded %d times", observe, via, resp.StatusCode, body, len(to.all()))
			}
		}
	}
}

func TestHandle_AdmittedRequestReachesTheUpstreamAsItWasChecked(t *testing.T) {
	to := &recorder{}
	addr, _ := gateway(t, options(to))
	resp, body := talk(t, addr, "POST /api/seckill/1001/order?x=1&&y HTTP/1.1\r\nHost: Shop.example:80\r\n"+
		"Cookie: uid=7\r\ncookie: b=2\r\nX-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n"+
		"Connection: X-Hop, keep-alive\r\nX-Hop: dropped\r\nSluice-Sku: forged\r\nX-Request-Id: abc\r\n"+
		"Content-Length: 2\r\n\r\nhi")
	if resp.StatusCode != 200 || body != "from the upstream" || resp.Header.Get("X-Request-Id") != "abc" {
		t.Fatalf("response: %v %q", resp, body)
	}
	want := "POST /api/seckill/1001/order?x=1&&y HTTP/1.1\r\nHost: Shop.example:80\r\nCookie: uid=7\r\ncookie: b=2\r\n" +
		"Content-Length: 2\r\nX-Request-Id: abc\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n" +
		"X-Forwarded-Host: Shop.example:80\r\nVia: 1.1 sluice\r\n\r\nhi"
	if got := to.all(); len(got) != 1 || ownName.ReplaceAllString(got[0], "sluice") != want ||
		!ownName.MatchString(got[0]) {
		t.Errorf("the upstream saw %q\nwant %q", got, want)
	}
}

// rejectedCases are requests that are rejected: by what is around them, or by what they are.
var rejectedCases = []struct {
	name   string
	set    func(*Options)
	raw    string
	status int
	reason string
}{
	{"sold out", closedFor(reject.SoldOut), order, 409, "sold_out"},
	{"unknown SKU", closedFor(reject.UnknownSKU), order, 404, "unknown_sku"},
	{"stock error", closedFor(reject.StockError), order, 503, "stock_error"},
	{"window", func(o *Options) {
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
	}, order, 429, "window"},
	{"concurrency", func(o *Options) { o.Concurrency = slotFunc(always(reject.Concurrency)) }, order, 429, "concurrency"},
	{"queue", func(o *Options) { o.Concurrency = slotFunc(always(reject.QueueTimeout)) }, order, 429, "queue_timeout"},
	{"no user", nil, orderWith("uid=7", "other=7"), 401, "unidentified"},
	{"empty user", nil, orderWith("uid=7", "uid="), 401, "unidentified"},
	{"two users", nil, orderWith("uid=7", "uid=7; uid=8"), 400, "ambiguous"},
	{"two cookie lines", nil, orderWith("Cookie: uid=7", "Cookie: uid=7\r\nCookie: UID=8"), 400, "ambiguous"},
	{"space in SKU", nil, orderWith("1001", "10%2001"), 400, "bad_request"},
	{"brace in SKU", nil, orderWith("1001", "%7b1001%7d"), 400, "bad_request"},
	{"long SKU", nil, orderWith("1001", strings.Repeat("1", 129)), 400, "bad_request"},
	{"letter case", nil, orderWith("/api", "/API"), 400, "ambiguous"},
	{"slash at the end", nil, orderWith("/order", "/order/"), 400, "ambiguous"},
	{"dot", nil, orderWith("/api", "/./api"), 400, "ambiguous"},
	{"dots", nil, orderWith("/api", "/a/../api"), 400, "ambiguous"},
	{"escaped", nil, orderWith("/order", "/%6frder"), 400, "ambiguous"},
	{"escaped slash", nil, orderWith("/order", "%2Forder"), 400, "ambiguous"},
	{"parameter", nil, orderWith("/order", "/order;x"), 400, "ambiguous"},
	{"escaped question mark", nil, orderWith("/order", "/order%3f"), 400, "ambiguous"},
	{"escaped twice", nil, orderWith("/api", "/%252e/api"), 400, "ambiguous"},
	{"large body announced", nil, orderWith("Content-Length: 2", "Content-Length: 99999"), 413, "too_large"},
	{"large body in chunks", nil, orderWith("Content-Length: 2\r\n\r\nhi",
		"Transfer-Encoding: chunked\r\n\r\n800\r\n"+strings.Repeat("x", 2048)+"\r\n0\r\n\r\n"), 413, "too_large"},
	{"broken chunks", nil, orderWith("Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
		400, "malformed"},
	{"no route", func(o *Options) { o.Routes = o.Routes[:1] }, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", 404, "no_route"},
	{"panic", func(o *Options) {
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { panic("on purpose") })
	}, order, 500, "internal"},
}

// orderWith is the order with one part of it replaced.
func orderWith(part, by string) string { return strings.Replace(order, part, by, 1) }

// closedFor closes SKU 1001 for a reason.
func closedFor(reason reject.Reason) func(*Options) {
	return func(o *Options) { o.Stock.(*stockMap).closed["1001"] = reason }
}

func always(reason reject.Reason) func() reject.Reason { return func() reject.Reason { return reason } }

func TestHandle_RejectedRequestNeverReachesTheUpstream(t *testing.T) {
	for _, tt := range rejectedCases {
		t.Run(tt.name, func(t *testing.T) {
			to := &recorder{}
			o := options(to)
			if tt.set != nil {
				tt.set(&o)
			}
			resp, body, p := handleOne(t, o, tt.raw)
			if resp.StatusCode != tt.status || resp.Header.Get("X-Sluice-Reason") != tt.reason {
				t.Errorf("response %d %s %q, want %d %s",
					resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), body, tt.status, tt.reason)
			}
			if got := to.all(); len(got) > 0 {
				t.Errorf("the upstream saw %q", got)
			}
			if !strings.Contains(body, tt.reason) || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("response %v %q lacks reason or no-store", resp.Header, body)
			}
			if n := rejections(p); n[tt.reason] != 1 || len(n) != 1 {
				t.Errorf("counted %v, want 1 %s", n, tt.reason)
			}
		})
	}
}

// handleOne has a Proxy of these options handle one request, without a socket.
func handleOne(t *testing.T, o Options, raw string) (resp *http.Response, body string, p *Proxy) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	resp, body = handleOneWith(t, p, raw)
	return resp, body, p
}

// handleOneWith has p handle one request without a socket, and returns the response as a client reads it.
func handleOneWith(t *testing.T, p *Proxy, raw string) (resp *http.Response, body string) {
	t.Helper()
	x := requested(t, p, raw)
	if p.ConnRate != nil {
		x.State.(*connState).rate = p.ConnRate()
	}
	p.serve(x.Ctx(), x)
	x.Prepared().AddTo(&x.Ctx().Response.Header)
	var text bytes.Buffer
	if _, err := x.Ctx().Response.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(&text), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(all)
}

// rejections are the counted rejections of all routes, by reason.
func rejections(p *Proxy) map[string]uint64 {
	n := map[string]uint64{}
	for reason, count := range p.Counters().Totals().Rejected {
		if count > 0 {
			n[reject.Reason(reason).String()] = count
		}
	}
	return n
}

// A path that no stock route could be meant by is the upstream's alone to read: it arrives as it was sent. One that
// some server could take for a stock route's is rejected, since Sluice cannot tell what the upstream makes of it.
func TestHandle_OnlyAPathThatCouldBeAStockRoutesIsAmbiguous(t *testing.T) {
	to := &recorder{}
	addr, p := gateway(t, options(to))
	for _, path := range []string{
		"//products", "/a/../b", "/a%2Fb", "/%C3%A9?y=100%", `/a\b`, "/a;jsessionid=1?x", "/search//x", "/search/%zz",
	} {
		resp, body := talk(t, addr, "GET "+path+" HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
		got := to.all()
		if resp.StatusCode != 200 || !strings.HasPrefix(got[len(got)-1], "GET "+path+" HTTP/1.1\r\n") {
			t.Errorf("%s: %d %q, the upstream saw %q", path, resp.StatusCode, body, got)
		}
	}
	sent := len(to.all())
	for _, path := range []string{
		"//api/seckill/1001/order", "/api/x/../seckill/1001/order", "/api/seckill/1001%2Forder", "/API/seckill/1001/order",
		`/api/seckill\1001/order`,
	} {
		resp, body := talk(t, addr, orderWith("/api/seckill/1001/order", path))
		if reason := resp.Header.Get("X-Sluice-Reason"); reason != "ambiguous" ||
			!strings.Contains(body, `"cause":"path is not canonical: write it as POST /api/seckill/{sku}/order does"`) {
			t.Errorf("%s: %d %s %q, want ambiguous for its path", path, resp.StatusCode, reason, body)
		}
	}
	if n := len(to.all()); n != sent {
		t.Errorf("%d ambiguous requests reached the upstream", n-sent)
	}
	if n := testkit.Series(t, p.Counters())["sluice_rejection_details_total path_not_canonical"]; n != 5 {
		t.Errorf("%v rejections are counted with their cause, want 5", n)
	}
}

func TestHandle_OutcomeOfTheUpstreamDecidesWhatAClientIsTold(t *testing.T) {
	for outcome, want := range map[upstream.Outcome]int{
		upstream.NotSent: 503, upstream.Busy: 503, upstream.TimedOut: 504, upstream.Broken: 502,
	} {
		resp, body, _ := handleOne(t, options(ending(outcome)), order)
		if resp.StatusCode != want {
			t.Errorf("%v: %d %q, want %d", outcome, resp.StatusCode, body, want)
		}
		sent := outcome != upstream.NotSent && outcome != upstream.Busy
		if unknown := strings.Contains(body, "do not know"); unknown != sent {
			t.Errorf("%v: %q", outcome, body)
		}
	}
}

// ending is an upstream whose every request ends with one outcome.
func ending(outcome upstream.Outcome) upstreamFunc {
	return func(*upstream.Request, *fasthttp.Response) upstream.Outcome { return outcome }
}

func TestHandle_PanicReleasesWhatWasAcquired(t *testing.T) {
	stock := &stockMap{}
	o := options(upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome { panic("on purpose") }))
	o.Stock = stock
	released := 0
	o.Concurrency = countedSlots{slotFunc(always(reject.Admitted)), &released}
	addr, _ := gateway(t, o)
	talk(t, addr, order)
	if stock.entered != 1 || stock.left != 1 || released != 1 {
		t.Errorf("entered %d, left %d, %d slots released", stock.entered, stock.left, released)
	}
}

func TestHandle_PreflightIsForwardedWithoutAnyLimit(t *testing.T) {
	o := options(&recorder{})
	o.Routes = []Route{{Name: "all", Match: "/", Gate: route.Check, SKU: "$arg_sku"}}
	o.Concurrency = slotFunc(always(reject.Concurrency))
	addr, _ := gateway(t, o)
	resp, body := talk(t, addr,
		"OPTIONS /x HTTP/1.1\r\nHost: s\r\nOrigin: https://a\r\nAccess-Control-Request-Method: POST\r\n\r\n")
	if resp.StatusCode != 200 {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

func TestHandle_RequestThatNoBrowserSendsIsNoPreflight(t *testing.T) {
	to := &recorder{}
	o := options(to)
	o.Routes = []Route{{Name: "buy", Match: "/buy.php", Gate: route.Check, SKU: "$arg_sku"}}
	closedFor(reject.SoldOut)(&o)
	addr, _ := gateway(t, o)
	for _, more := range []string{"Cookie: uid=7\r\n\r\n", "Authorization: Bearer x\r\n\r\n", "Content-Length: 1\r\n\r\nx",
		"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"} {
		resp, body := talk(t, addr, "OPTIONS /buy.php?sku=1001 HTTP/1.1\r\nHost: s\r\nOrigin: https://a\r\nConnection: close\r\n"+
			"Access-Control-Request-Method: POST\r\n"+more)
		if resp.Header.Get("X-Sluice-Reason") != "sold_out" {
			t.Errorf("%q: %d %q", more, resp.StatusCode, body)
		}
	}
	if n := len(to.all()); n != 0 {
		t.Errorf("%d of them reached the upstream", n)
	}
}
