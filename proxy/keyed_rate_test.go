package proxy

import (
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/testkit"
	"sluice/limiter"
)

// keyedRate is a rate of burst in an hour.
func keyedRate(name, key string, burst int, routes ...string) Rate {
	spec := limiter.RateSpec{PerSecond: float64(burst) / 3600, Burst: burst, MaxKeys: 1 << 16}
	return Rate{
		Name: name, Key: key, Routes: routes, IPv4Prefix: 32, IPv6Prefix: 64,
		Burst: burst, PerSecond: spec.PerSecond, Limiter: limiter.NewRateLimiter(spec),
	}
}

// asker sends one request for a client, "METHOD target\r\nfields", and returns its verdict.
type asker func(from, request string) string

// trustedGateway is a gateway that believes what this machine says of others. The clock stands still.
func trustedGateway(t *testing.T, change func(*Options)) (ask asker, p *Proxy, up *recorder) {
	t.Helper()
	up = &recorder{}
	o := options(up)
	o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.Now = func() int64 { return int64(time.Hour) }
	change(&o)
	addr, p := gateway(t, o)
	return func(from, request string) string {
		t.Helper()
		head, rest, _ := strings.Cut(request, "\r\n")
		resp, _ := talk(t, addr, head+" HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: "+from+
			"\r\nConnection: close\r\n"+rest+"\r\n")
		return reasonOrStatus(resp)
	}, p, up
}

// clientIP is the address of a client behind the trusted proxy.
const clientIP = "203.0.113.9"

const (
	postForm = " POST /search/\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\n"
	postJSON = " POST /search/\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n"
)

func TestKeyedRate_OneKeyHasItsBurst(t *testing.T) {
	for _, c := range []struct {
		name, key string
		same      []string // each of them counts as one key
		other     string   // counts as another
	}{
		{"address", "$remote_addr", []string{" GET /search/", " GET /search/x?y"}, "203.0.113.10 GET /search/"},
		{"IPv6 network", "$remote_addr", []string{"2001:db8::1 GET /search/", "2001:db8::ffff:2 GET /search/"},
			"2001:db8:0:1::1 GET /search/"},
		{"mapped address", "$remote_addr", []string{" GET /search/", "::ffff:203.0.113.9 GET /search/"},
			"::cb00:7109 GET /search/"},
		{"argument", "$arg_q", []string{" GET /search/?q=a%2fb", "203.0.113.10 GET /search/?x=1&q=a/b"},
			" GET /search/?q=b"},
		{"argument beside a form", "$arg_q",
			[]string{" GET /search/?q=1", strings.Replace(postForm, "search/", "search/?q=1", 1) + "q=2"},
			" GET /search/?q=2"},
		{"cookie", "$cookie_uid",
			[]string{" GET /search/\r\nCookie: uid=7\r\n", " GET /search/\r\nCookie: a=b; uid=\"7\"\r\n"},
			" GET /search/\r\nCookie: uid=77\r\n"},
		{"escaped cookie", "$cookie_uid", []string{" GET /search/\r\nCookie: uid=s:7+\r\n",
			" GET /search/\r\nCookie: uid=%73%3a%37%2B\r\n", " GET /search/\r\nCookie: uid=s%3A7%20\r\n"},
			" GET /search/\r\nCookie: uid=s:8+\r\n"},
		{"cookie with blanks", "$cookie_uid", []string{" GET /search/\r\nCookie: uid=s\r\n",
			" GET /search/\r\nCookie: uid= s\r\n", " GET /search/\r\nCookie: uid=\t  s\r\n",
			" GET /search/\r\nCookie: uid=s%20; a=b\r\n", " GET /search/\r\nCookie: uid=  \" s%09 \"\r\n"},
			" GET /search/\r\nCookie: uid=t\r\n"},
		{"header", "$http_api_key", []string{" GET /search/\r\nApi-Key: k\r\n"}, " GET /search/\r\nApi-Key: K\r\n"},
		{"together", "$arg_a$arg_b", []string{" GET /search/?a=1&b=23"}, " GET /search/?a=12&b=3"},
		{"form", "x$form_q", []string{postForm + "q=1"}, postForm + "q=2"},
		{"JSON", "$json_q", []string{postJSON + `{"q":1}`, strings.Replace(postJSON, "7", "9", 1) + `{"q":"1"}`},
			postJSON + `{"q":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask, _, _ := trustedGateway(t, func(o *Options) { o.Rates = []Rate{keyedRate("r", c.key, 3)} })
			send := func(line string) string {
				from, request, _ := strings.Cut(line, " ")
				if from == "" {
					from = clientIP
				}
				return ask(from, request)
			}
			for i, want := range []string{"200", "200", "200", "rate", "rate", "rate", "rate"} {
				if got := send(c.same[i%len(c.same)]); got != want {
					t.Errorf("request %d of the same key: %s, want %s", i, got, want)
				}
			}
			if got := send(c.other); got != "200" {
				t.Errorf("another key: %s", got)
			}
		})
	}
}

func TestKeyedRate_RequestWithoutTheKeyIsNotCounted(t *testing.T) {
	ask, p, _ := trustedGateway(t, func(o *Options) {
		o.Rates = []Rate{keyedRate("a", "$remote_addr$arg_q", 1), keyedRate("b", "$cookie_uid", 1),
			keyedRate("c", "$json_id", 1), keyedRate("d", "$form_id", 1)}
	})
	for _, request := range []string{
		"GET /search/", "GET /search/?q=", "GET /search/?Q=1", "GET /search/\r\nCookie: uid=\r\n",
		"POST /search/\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nid",
		"POST /search/\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
	} {
		for range 3 {
			if got := ask(clientIP, request); got != "200" {
				t.Errorf("%q: %s, want 200", request, got)
			}
		}
	}
	for name, n := range testkit.Series(t, p.Counters()) {
		if strings.Contains(name, "rejected") && n > 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
}

// A client that could choose which of two values counts would never be counted.
func TestKeyedRate_DuplicateKeyIsAmbiguous(t *testing.T) {
	ask, _, up := trustedGateway(t, func(o *Options) {
		o.Rates = []Rate{keyedRate("a", "$remote_addr$arg_q", 1, "search", "rest"),
			keyedRate("b", "$cookie_uid", 1, "search", "rest"), keyedRate("c", "$http_api_key", 1, "search", "rest")}
	})
	for _, path := range []string{"/search/", "/page"} { // a limited route, and a pass route that a rate names
		for _, request := range []string{"?q=1&q=2", "?q=1&Q=2", "?q=1&%71=2", "?q=1;x", "\r\nCookie: uid=1; uid=2\r\n",
			"\r\nCookie: uid=1\r\nCookie: UID=2\r\n", "\r\nApi-Key: 1\r\nApi_Key: 2\r\n"} {
			if got := ask(clientIP, "GET "+path+request); got != "ambiguous" {
				t.Errorf("%s%q: %s, want ambiguous", path, request, got)
			}
		}
	}
	if n := len(up.all()); n != 0 {
		t.Errorf("%d of them reached the upstream", n)
	}
}

func TestKeyedRate_RejectionUsesNothingOfOtherRates(t *testing.T) {
	wide, narrow := keyedRate("wide", "$remote_addr", 5), keyedRate("narrow", "$arg_q", 1)
	ask, p, _ := trustedGateway(t, func(o *Options) { o.Rates = []Rate{wide, narrow} })
	for i, want := range []string{"200", "rate", "rate", "rate"} {
		if got := ask(clientIP, "GET /search/?q=1"); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	for i, want := range []string{"200", "200", "200", "200", "rate"} {
		if got := ask(clientIP, "GET /search/"); got != want {
			t.Errorf("request %d of the wide rate alone: %s, want %s", i, got, want)
		}
	}
	got := testkit.Series(t, p.Counters())
	for name, n := range map[string]float64{
		"sluice_rate_rejected_requests_total narrow": 3, "sluice_rate_rejected_requests_total wide": 1,
		"sluice_rejected_requests_total rate search": 4,
	} {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
}

func TestKeyedRate_ObservedRejectsNothing(t *testing.T) {
	watched, kept := keyedRate("watched", "$remote_addr", 1), keyedRate("kept", "$remote_addr", 3)
	watched.Observe = true
	ask, p, _ := trustedGateway(t, func(o *Options) { o.Rates = []Rate{watched, kept} })
	for i, want := range []string{"200", "200", "200", "rate"} {
		if got := ask(clientIP, "GET /search/"); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	got := testkit.Series(t, p.Counters())
	for name, n := range map[string]float64{
		"sluice_rate_observed_rejections_total watched": 2, "sluice_rate_rejected_requests_total watched": 0,
		"sluice_rate_rejected_requests_total kept": 1, "sluice_rate_observed_rejections_total kept": 0,
		"sluice_observed_rejections_total rate search": 2, "sluice_rejected_requests_total rate search": 1,
	} {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
}

func TestKeyedRate_CountsOnNamedRoutesOrAllButPass(t *testing.T) {
	ask, _, _ := trustedGateway(t, func(o *Options) {
		o.Rates = []Rate{keyedRate("limited", "$remote_addr", 2), keyedRate("pages", "$remote_addr", 1, "rest")}
	})
	for _, c := range [][2]string{
		{"GET /search/", "200"}, {"POST /api/seckill/1001/order\r\nCookie: uid=7\r\n", "200"}, {"GET /search/", "rate"},
		{"GET /page", "200"}, {"GET /page", "rate"},
		{"OPTIONS /search/\r\nAccess-Control-Request-Method: POST\r\n", "200"},
	} {
		if got := ask(clientIP, c[0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}

// What is final comes before what is temporary, what is cheap before what waits; and a rejected client has used nothing
// of what comes after.
func TestKeyedRate_ChecksBetweenStockAndWindow(t *testing.T) {
	booked := 0
	ask, _, _ := trustedGateway(t, func(o *Options) {
		soldOutSKU(o)
		o.Rates = []Rate{keyedRate("r", "$remote_addr", 1)}
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { booked++; return 0, true })
	})
	send := func(sku string) string { return ask(clientIP, "POST /api/seckill/"+sku+"/order\r\nCookie: uid=7\r\n") }
	for i, c := range [][2]string{{"1001", "sold_out"}, {"2", "200"}, {"2", "rate"}, {"1001", "sold_out"}} {
		if got := send(c[0]); got != c[1] {
			t.Errorf("order %d, of %s: %s, want %s", i, c[0], got, c[1])
		}
	}
	if booked != 1 {
		t.Errorf("%d windows were booked, want that of the admitted order", booked)
	}
}

func TestKeyedRate_RejectionSaysWhenToRetry(t *testing.T) {
	o := options(&recorder{})
	o.Rates = []Rate{keyedRate("slow", "$remote_addr", 1)}
	addr, _ := gateway(t, o)
	const request = "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
	talk(t, addr, request)
	resp, body := talk(t, addr, request)
	if after := resp.Header.Get("Retry-After"); resp.StatusCode != 429 || len(after) != 4 || after > "3600" ||
		after < "3500" {
		t.Errorf("%d, Retry-After %q; want 429, and almost an hour: %s", resp.StatusCode, after, body)
	}
}

func rateFaults(r Rate, routes []Route) []error {
	return Faults(Options{Routes: routes, Limiters: Limiters{Rates: []Rate{r}}})
}

func TestFaults_AreRatesThatCannotCount(t *testing.T) {
	for _, c := range []struct {
		rate Rate
		want string
	}{
		{keyedRate("r", "$path_sku", 1), ""},
		{keyedRate("r", "$path_sku", 1, "order", "search"),
			`rate "r": key: on route "search": ` +
				`$path_sku: the pattern has no {sku}: write {sku} into match, or another variable`},
		{keyedRate("r", "$path_id", 1),
			`rate "r": key: on route "search": $path_id: the pattern has no {id}: write {id} into match, or another variable`},
		{keyedRate("r", "$remote_add", 1),
			`rate "r": key: on route "search": $remote_add: unknown variable; did you mean $remote_addr?`},
		{keyedRate("r", "every-client", 1), `rate "r": key: on route "search": "every-client" is the same for every client; ` +
			`write a variable of the request like "$remote_addr"`},
		{keyedRate("r", "$form_x", 1, "rest"), `rate "r": key: on route "rest": the bodies of a pass route are not read`},
		{keyedRate("r", "$form_x", 1, "nowhere"), `rate "r": routes: there is no such route`},
	} {
		got := ""
		if errs := rateFaults(c.rate, orderRoutes); len(errs) > 0 {
			got = errors.Join(errs...).Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s on %v (-want +got):\n%s", c.rate.Key, c.rate.Routes, diff)
		}
	}
	if errs := rateFaults(keyedRate("r", "$remote_addr", 1), orderRoutes[2:]); len(errs) != 1 {
		t.Errorf("a rate that counts nothing: %v", errs)
	}
}

// A request beyond the burst of one rate waits for the longest delay and goes on; none waits for a rate that is only
// observed, nor in observe mode.
func TestKeyedRate_DelayedRequestGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		observe, observeAll, waits bool
	}{"enforced": {false, false, true}, "observed": {true, false, false}, "observe mode": {false, true, false}} {
		t.Run(name, func(t *testing.T) {
			var counted, booked, clock atomic.Int64 // ns
			ask, _, up := trustedGateway(t, func(o *Options) {
				short, long := keyedRate("short", "$remote_addr", 1), keyedRate("long", "$host", 1)
				short.Limiter = pacedRate{func(int64) time.Duration { return time.Nanosecond }}
				long.Limiter = pacedRate{func(now int64) time.Duration {
					counted.Store(now)
					return time.Microsecond
				}}
				short.Observe, long.Observe, o.Observe = c.observe, c.observe, c.observeAll
				o.Rates = []Rate{short, long}
				o.Now = func() int64 { return clock.Add(1) }
				o.Windows = windowFunc(func(now int64, _ []byte) (time.Duration, bool) {
					booked.Store(now)
					return 0, true
				})
			})
			if got := ask(clientIP, "GET /search/"); got != "200" || len(up.all()) != 1 {
				t.Errorf("%s; the upstream saw %d requests", got, len(up.all()))
			}
			if waited := booked.Load() > counted.Load(); waited != c.waits {
				t.Errorf("waited: %v, want %v: counted at %d, booked at %d", waited, c.waits, counted.Load(), booked.Load())
			}
		})
	}
}

func TestRate_PolicyIsTheBurstAndTheTimeThatEarnsIt(t *testing.T) {
	for _, c := range []struct {
		burst     int
		perSecond float64
		want      string
	}{{40, 20, `"r";q=40;w=2`}, {10, 3, `"r";q=10;w=4`}, {5, 1000, `"r";q=5;w=1`}, {1 << 30, 1e-9, `"r";q=1073741824`}} {
		if got := string(policyOf("r", c.perSecond, c.burst)); got != c.want {
			t.Errorf("burst %d, %v/s: %s, want %s", c.burst, c.perSecond, got, c.want)
		}
	}
}
