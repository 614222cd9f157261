package proxy

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/limiter"
)

// overridden is keyed with an override for gold-*, of burst in an hour, and with free-* off.
func overridden(name string, burst, gold int) Rate {
	r := keyedRate(name, "$cookie_uid", burst)
	spec := limiter.RateSpec{PerSecond: float64(gold) / 3600, Burst: gold, MaxKeys: 1 << 16}
	r.Overrides = []RateOverride{{Pattern: "free-*", Off: true},
		{Pattern: "gold-*", Burst: gold, PerSecond: spec.PerSecond, Limiter: limiter.NewRateLimiter(spec)}}
	return r
}

func TestKeyedRate_OverrideCountsItsKeysByItsOwnRate(t *testing.T) {
	ask, _, _ := trustedGateway(t, func(o *Options) {
		o.Rates, o.Responses.RateFields = []Rate{overridden("users", 2, 4)}, true
	})
	for _, c := range []struct {
		uid  string
		want int // requests that pass; -1 = all
	}{{"7", 2}, {"gold-7", 4}, {"gold-8", 4}, {"free-7", -1}, {"golden", 2}} {
		passed := 0
		for range 6 {
			if ask(clientIP, "GET /search/\r\nCookie: uid="+c.uid+"\r\n") == "200" {
				passed++
			}
		}
		if c.want < 0 {
			c.want = 6
		}
		if passed != c.want {
			t.Errorf("%d of 6 requests of %s passed, want %d", passed, c.uid, c.want)
		}
	}
	if errs := rateFaults(overridden("users", 2, 4), orderRoutes); len(errs) > 0 {
		t.Error(errs)
	}

}

// A value that is too long to be compared may be one that a stricter override is for.
func TestKeyedRate_LongValueHasTheStrictestRate(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ burst, override, want int }{{4, 2, 2}, {2, 4, 2}} {
		ask, _, _ := trustedGateway(t, func(o *Options) { o.Rates = []Rate{overridden("users", c.burst, c.override)} })
		passed := 0
		for range 6 {
			if ask(clientIP, "GET /search/\r\nCookie: uid=gold-"+long+"\r\n") == "200" {
				passed++
			}
		}
		if passed != c.want {
			t.Errorf("burst %d, override %d: %d of 6 requests passed, want %d", c.burst, c.override, passed, c.want)
		}
	}
}

func TestKeyedRate_OverrideIsTold(t *testing.T) {
	o := options(&recorder{})
	o.Rates, o.Responses.RateFields = []Rate{overridden("users", 2, 4)}, true
	address, p := gateway(t, o)
	for cookie, want := range map[string]string{"7": `"users";q=2;w=3600`, "gold-7": `"users";q=4;w=3600`, "free-7": ""} {
		resp, _ := talk(t, address, "GET /search/ HTTP/1.1\r\nHost: shop\r\nCookie: uid="+cookie+"\r\n\r\n")
		if got := resp.Header.Get("RateLimit-Policy"); got != want {
			t.Errorf("%s: RateLimit-Policy %q, want %q", cookie, got, want)
		}
		found := p.Explain("GET /search/ HTTP/1.1\r\nHost: shop\r\nCookie: uid="+cookie+"\r\n\r\n",
			netip.MustParseAddr(clientIP), 1<<14, false)
		want := map[string]string{"7": "limits.rate users: 0.000556/s, burst 2",
			"gold-7": `limits.rate users: override "gold-*": 0.00111/s, burst 4`,
			"free-7": `limits.rate users: override "free-*": off`}[cookie]
		if len(found.Rates) != 1 || found.Rates[0].Bound != want || found.Rates[0].Key != cookie {
			t.Errorf("%s is explained as %+v, want %s", cookie, found.Rates, want)
		}
	}
}

func TestFaults_NameTheOverrideThatNeverMatches(t *testing.T) {
	r := keyedRate("r", "$remote_addr", 1)
	r.Overrides = []RateOverride{{Pattern: "vip-*", Off: true}}
	errs := rateFaults(r, orderRoutes)
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), `rate "r": overrides: "vip-*" is no network`) {
		t.Errorf("%v", errs)
	}
}
