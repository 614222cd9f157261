package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"sluice/upstream"
)

func TestRateFields_TellWhatIsLeft(t *testing.T) {
	up := upstreamFunc(func(_ *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
		resp.Header.Set("RateLimit", `"shop";r=9;t=1`)
		return upstream.Answered
	})
	const policy, upstreamLimit = `"per-ip";q=2;w=3600`, `"shop";r=9;t=1`
	type answer struct {
		policies, limits []string
		exposed          string
	}
	const exposed = "Link, Retry-After, ETag, Sluice-Time, X-Request-Id, X-Sluice-Reason"
	requests := []string{"", "Cookie: uid=7\r\n", "Origin: https://shop.example\r\n"} // the last one is rejected
	for on, want := range map[bool][]answer{
		true: {
			{[]string{policy}, []string{upstreamLimit, `"per-ip";r=1;t=1800`}, ""},
			{[]string{policy + `, "per-user";q=60;w=3600`},
				[]string{upstreamLimit, `"per-ip";r=0;t=3600, "per-user";r=59;t=60`}, ""},
			{[]string{policy}, []string{`"per-ip";r=0;t=3600`}, exposed + ", RateLimit, RateLimit-Policy"},
		},
		false: {{nil, []string{upstreamLimit}, ""}, {nil, []string{upstreamLimit}, ""}, {nil, nil, exposed}},
	} {
		o := options(up)
		o.Now = func() int64 { return 0 }
		o.Responses.RateFields = on
		o.Rates = []Rate{keyedRate("per-ip", "$remote_addr", 2), keyedRate("per-user", "$cookie_uid", 60),
			keyedRate("watched", "$remote_addr", 1)}
		o.Rates[2].Observe = true
		addr, _ := gateway(t, o)
		for i, fields := range requests {
			resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"+fields+"\r\n")
			got := answer{resp.Header.Values("RateLimit-Policy"), resp.Header.Values("RateLimit"),
				resp.Header.Get("Access-Control-Expose-Headers")}
			if diff := cmp.Diff(want[i], got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("on %v, request %d (-want +got):\n%s", on, i, diff)
			}
		}
	}
}

func TestRateFields_AreLeftOutWhereNoRateCounts(t *testing.T) {
	for _, c := range []struct{ request, verdict string }{
		{"GET /search/ HTTP/1.1\r\nHost: shop\r\n", "200"},               // without the key
		{"GET /page HTTP/1.1\r\nHost: shop\r\nCookie: uid=1\r\n", "200"}, // of a route that has no rate
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=1\r\nContent-Length: 0\r\n", "sold_out"},
		{"GET /search/?q=1&q=2 HTTP/1.1\r\nHost: shop\r\nCookie: uid=1\r\n", "ambiguous"}, // one key of two
		{"GET /.sluice/client.js HTTP/1.1\r\nHost: shop\r\nCookie: uid=1\r\n", "200"},
	} {
		o := options(&recorder{})
		soldOutSKU(&o) // rejected before
		o.Responses.RateFields = true
		o.Rates = []Rate{keyedRate("a", "$cookie_uid", 1), keyedRate("b", "$arg_q", 1)}
		addr, _ := gateway(t, o)
		resp, _ := talk(t, addr, c.request+"Connection: close\r\n\r\n")
		if got := reasonOrStatus(resp); got != c.verdict {
			t.Errorf("%q: %s, want %s", c.request, got, c.verdict)
		}
		if said := append(resp.Header.Values("RateLimit"), resp.Header.Values("RateLimit-Policy")...); len(said) > 0 {
			t.Errorf("%q: %q", c.request, said)
		}
	}
}
