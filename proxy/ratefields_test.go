package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
)

func TestRateFieldsTellWhatIsLeftInRefusalsAndInAnswers(t *testing.T) {
	shop := shopFunc(func(_ *Outgoing, resp *fasthttp.Response) Outcome {
		resp.Header.Set("RateLimit", `"shop";r=9;t=1`)
		return Answered
	})
	for _, on := range []bool{true, false} {
		o := options(shop)
		o.Now = func() int64 { return 0 }
		o.Responses.RateFields = on
		o.Rates = []KeyedRate{keyed("per-ip", "$remote_addr", 2), keyed("per-user", "$cookie_uid", 60), keyed("watched", "$remote_addr", 1)}
		o.Rates[2].Observe = true
		addr, _ := gate(t, o)
		const policy = `"per-ip";q=2;w=3600`
		for i, c := range []struct {
			fields           string
			policies, limits []string
		}{
			{"", []string{policy}, []string{`"shop";r=9;t=1`, `"per-ip";r=1;t=1800`}},
			{"Cookie: uid=7\r\n", []string{policy + `, "per-user";q=60;w=3600`}, []string{`"shop";r=9;t=1`, `"per-ip";r=0;t=3600, "per-user";r=59;t=60`}},
			{"Origin: https://a.example\r\n", []string{policy}, []string{`"per-ip";r=0;t=3600`}}, // refused
		} {
			resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"+c.fields+"\r\n")
			if !on {
				c.policies = nil
				c.limits = c.limits[:len(c.limits)-1]
				if len(c.limits) == 0 {
					c.limits = nil
				}
			}
			if diff := cmp.Diff(c.policies, resp.Header.Values("RateLimit-Policy")); diff != "" {
				t.Errorf("on %v, request %d: RateLimit-Policy (-want +got):\n%s", on, i, diff)
			}
			if diff := cmp.Diff(c.limits, resp.Header.Values("RateLimit")); diff != "" {
				t.Errorf("on %v, request %d: RateLimit (-want +got):\n%s", on, i, diff)
			}
			want := "Link, Retry-After, X-Request-Id, X-Sluice-Reason"
			if on {
				want += ", RateLimit, RateLimit-Policy"
			}
			if got := resp.Header.Get("Access-Control-Expose-Headers"); got != "" && got != want {
				t.Errorf("on %v: pages may read %q, want %q", on, got, want)
			}
		}
	}
}

func TestRateFieldsSayNothingOfWhatWasNotAsked(t *testing.T) {
	ask := func(request string) []string {
		o := options(&seen{})
		o.Responses.RateFields = true
		o.Rates = []KeyedRate{keyed("a", "$cookie_uid", 1)}
		addr, _ := gate(t, o)
		resp, _ := talk(t, addr, request+"Connection: close\r\n\r\n")
		return append(resp.Header.Values("RateLimit"), resp.Header.Values("RateLimit-Policy")...)
	}
	for _, request := range []string{
		"GET /search/ HTTP/1.1\r\nHost: shop\r\n",                   // without the key
		"GET /page HTTP/1.1\r\nHost: shop\r\nCookie: uid=1\r\n",     // of a route that has no rate
		"GET /se%72ch/ HTTP/1.1\r\nHost: shop\r\nCookie: uid=1\r\n", // refused before
	} {
		if said := ask(request); len(said) > 0 {
			t.Errorf("%q: %q", request, said)
		}
	}
}

func TestPoliciesAreBurstsAndTheTimeThatEarnsThem(t *testing.T) {
	for _, c := range []struct {
		burst     int
		perSecond float64
		want      string
	}{{40, 20, `"r";q=40;w=2`}, {10, 3, `"r";q=10;w=4`}, {5, 1000, `"r";q=5;w=1`}, {1 << 30, 1e-9, `"r";q=1073741824`}} {
		if got := string(policyOf(&KeyedRate{Name: "r", Burst: c.burst, PerSecond: c.perSecond})); got != c.want {
			t.Errorf("burst %d, %v/s: %s, want %s", c.burst, c.perSecond, got, c.want)
		}
	}
}

func TestARequestThatNoRateCountsIsToldOfNone(t *testing.T) {
	o := options(&seen{})
	o.Responses.RateFields = true
	o.Rates = []KeyedRate{keyed("a", "$remote_addr", 1), keyed("b", "$arg_q", 1)}
	addr, _ := gate(t, o)
	resp, _ := talk(t, addr, "GET /search/?q=1&q=2 HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
	if got := resp.Header.Get("RateLimit") + resp.Header.Get("RateLimit-Policy"); verdict(resp) != "ambiguous" || got != "" {
		t.Errorf("%s is told %q", verdict(resp), got)
	}
}
