package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/accesslog"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// recordKeeper is an access logger that keeps all records, and samples all rejections or none.
type recordKeeper struct {
	mu      sync.Mutex
	samples bool
	records []metrics.AccessRecord
}

func (k *recordKeeper) Sampled(int64, reject.Reason, uint64) bool { return k.samples }

func (k *recordKeeper) Log(e metrics.AccessRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, text := range []*[]byte{&e.ID, &e.Method, &e.Path, &e.SKU, &e.User} {
		*text = append([]byte(nil), *text...)
	}
	k.records = append(k.records, e)
}

// only waits for the one record that there is.
func (k *recordKeeper) only(t *testing.T) metrics.AccessRecord {
	t.Helper()
	testkit.Eventually(t, "a record is logged", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.records) > 0
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.records) != 1 {
		t.Fatalf("%d records, want 1: %+v", len(k.records), k.records)
	}
	return k.records[0]
}

// recordOf sends one request to a proxy and returns its access record.
func recordOf(t *testing.T, raw string, to Upstream, change func(*Options)) metrics.AccessRecord {
	t.Helper()
	o, k := options(to), &recordKeeper{samples: true}
	o.AccessLog, o.Version = k, "v1"
	if change != nil {
		change(&o)
	}
	addr, _ := gateway(t, o)
	talk(t, addr, raw)
	return k.only(t)
}

// recordedOrder is an order as a browser sends it.
const recordedOrder = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\n" +
	"Accept: application/json, text/plain, */*\r\nOrigin: https://shop.example\r\nContent-Type: application/json\r\n" +
	"Content-Length: 2\r\nCookie: theme=dark; uid=7\r\nConnection: close\r\n\r\n{}"

const secretOrder = "POST /api/seckill/1001/order;jsessionid=S3CRET?token=S3CRET HTTP/1.1\r\nHost: shop\r\n" +
	"Cookie: uid=7; sid=S3CRET\r\nAuthorization: Bearer S3CRET\r\n" +
	"X-Request-Id: r-1\r\nContent-Length: 6\r\nConnection: close\r\n\r\nS3CRET"

func TestAccessRecord_HoldsNoSecret(t *testing.T) {
	e := recordOf(t, secretOrder, &recorder{}, func(o *Options) {
		o.Routes = []Route{{Name: "all", Match: "/", Gate: route.Limit, User: "$cookie_uid"}}
	})
	text := fmt.Sprintf("%+v %q", e, [][]byte{e.ID, e.Method, e.Path, e.SKU, e.User})
	if strings.Contains(text, "S3CRET") {
		t.Errorf("the record holds a secret: %s", text)
	}
	if string(e.Path) != "/api/seckill/1001/order" || string(e.ID) != "r-1" || string(e.User) != "7" || e.BytesIn != 6 {
		t.Errorf("recorded %s %s %s, %d bytes", e.ID, e.Path, e.User, e.BytesIn)
	}
}

func TestAccessRecord_PathThatNamesTheUserIsItsPattern(t *testing.T) {
	const raw = "POST /buy/alice/1001 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
	e := recordOf(t, raw, &recorder{}, func(o *Options) {
		o.Routes = []Route{
			{Name: "buy", Match: "POST /buy/{name}/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$path_name"},
		}
	})
	if string(e.Path) != "/buy/{name}/{sku}" || string(e.User) != "alice" {
		t.Errorf("recorded %s by %s", e.Path, e.User)
	}
}

func TestAccessRecord_HoldsTheDecision(t *testing.T) {
	late := upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome { return upstream.TimedOut })
	soldOut := func(o *Options) { o.Stock.(*stockMap).closed["1001"] = reject.SoldOut }
	for name, c := range map[string]struct {
		to     Upstream
		raw    string
		change func(*Options)
		want   metrics.AccessRecord
	}{
		"admitted": {&recorder{}, recordedOrder, nil, metrics.AccessRecord{Sent: true, Status: 200}},
		"sold out": {&recorder{}, recordedOrder, soldOut, metrics.AccessRecord{Reason: reject.SoldOut, Status: 409}},
		"window": {&recorder{}, recordedOrder, func(o *Options) {
			o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
			o.Bounds = map[reject.Reason]string{reject.Window: "20 in 10ms"}
		}, metrics.AccessRecord{Reason: reject.Window, Status: 429, Limit: "20 in 10ms", Wait: time.Millisecond}},
		"rate": {&recorder{}, recordedOrder, func(o *Options) {
			o.Rates = []Rate{{Name: "per-ip", Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, PerSecond: 20,
				Burst: 40, Limiter: usedUp{}}}
		}, metrics.AccessRecord{Reason: reject.Rate, Status: 429, Wait: time.Second,
			Limit: "limits.rate per-ip: 20/s, burst 40"}},
		"user missing": {&recorder{}, strings.Replace(recordedOrder, "uid=7", "a=b", 1), nil, metrics.AccessRecord{
			Reason: reject.Unidentified, Status: 401,
			Detail: reject.Detail{Cause: reject.UserMissing, Operand: "$cookie_uid"}}},
		"observed": {&recorder{}, recordedOrder, func(o *Options) { soldOut(o); o.Observe = true },
			metrics.AccessRecord{Reason: reject.Admitted, Observed: reject.SoldOut, Sent: true, Status: 200}},
		"unknown": {late, recordedOrder, nil, metrics.AccessRecord{Reason: reject.UpstreamTimeout, Sent: true,
			Outcome: upstream.TimedOut, Status: 504}},
		"no HTTP": {&recorder{}, "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", nil, metrics.AccessRecord{
			Reason: reject.Malformed, Status: 400,
			Detail: reject.Detail{Cause: reject.ProtocolRule, Operand: "Host twice"}}},
	} {
		e := recordOf(t, c.raw, c.to, c.change)
		got := metrics.AccessRecord{Reason: e.Reason, Detail: e.Detail, Observed: e.Observed, Sent: e.Sent,
			Outcome: e.Outcome, Status: e.Status, Limit: e.Limit, Wait: e.Wait}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s: recorded %+v, want %+v", name, got, c.want)
		}
		if e.Version != "v1" || e.Arrived > e.Decided || e.Decided > e.Answered || e.Answered > e.Done {
			t.Errorf("%s: of %s, arrived %d, decided %d, answered %d, done %d", name, e.Version, e.Arrived, e.Decided,
				e.Answered, e.Done)
		}
	}
}

// usedUp is a rate of which no token is left.
type usedUp struct{}

func (usedUp) Acquire(int64, []byte) (time.Duration, bool) { return time.Second, false }
func (usedUp) Peek(int64, []byte) (int, time.Duration, time.Duration) {
	return 0, time.Second, time.Second
}

func TestAccessRecord_HoldsTheOrdersOutcome(t *testing.T) {
	o, k := options(&recorder{}), &recordKeeper{}
	o.AccessLog, o.Orders = k, oneSerial{}
	o.Routes = []Route{{Name: "order", Match: "/", Gate: route.Reserve, SKU: "$http_sku", User: "$cookie_uid"}}
	o.Outcomes = OutcomeRules{ConfirmOn: []string{"2xx"}}
	addr, p := gateway(t, o)
	talk(t, addr, strings.Replace(recordedOrder, "Host:", "Sku: 1001\r\nHost:", 1))
	e := k.only(t)
	if !e.Reserved || e.Order != metrics.OrderConfirmed || e.Serial != "s-1" || e.Deadline != 4_102_444_800_123 {
		t.Errorf("recorded %+v", e)
	}
	if n := p.Counters().Totals(); n.Forwarded != 1 || n.Rejected != (metrics.Totals{}).Rejected {
		t.Errorf("the totals are %+v", n)
	}
}

// oneSerial reserves for every order under the same serial.
type oneSerial struct{ Orders }

func (oneSerial) Decided(int64, ledger.Order) (Reservation, bool) { return Reservation{}, false }
func (oneSerial) Reserve(int64, ledger.Order) Reservation {
	return Reservation{Serial: "s-1", Deadline: 4_102_444_800_123}
}
func (oneSerial) Settle(ledger.Order, string, metrics.OrderOutcome) {}

func TestAccessRecord_RejectionThatIsNotSampledIsNotLogged(t *testing.T) {
	o, k := options(&recorder{}), &recordKeeper{}
	o.AccessLog = k
	o.Stock.(*stockMap).closed["1001"] = reject.SoldOut
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	x := requested(t, p, recordedOrder)
	p.serve(x.Ctx(), x)
	if len(k.records) != 0 {
		t.Errorf("logged %+v", k.records)
	}
	if n := p.Counters().Totals().Rejected[reject.SoldOut]; n != 1 {
		t.Errorf("%d rejections are counted, want 1", n)
	}
}

// A rejection after which the upstream may have the order is not sampled: an operator must find each of them.
func TestAccessRecord_UnknownOutcomeIsAlwaysLogged(t *testing.T) {
	broken := upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome { return upstream.Broken })
	o, k := options(broken), &recordKeeper{}
	o.AccessLog = k
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	x := requested(t, p, recordedOrder)
	p.serve(x.Ctx(), x)
	if e := k.only(t); e.Reason != reject.UpstreamError || e.Outcome != upstream.Broken || !e.Sent {
		t.Errorf("recorded %+v", e)
	}
}

// recordedDecisions are requests that one proxy admits and another rejects.
var recordedDecisions = []struct {
	name   string
	closed reject.Reason
}{{"admitted", reject.Admitted}, {"sold_out", reject.SoldOut}}

var accessLogs = []struct {
	name  string
	every int // one rejection in so many is logged; 0 = there is no access log
}{{"off", 0}, {"sampled", 1000}, {"whole", 1}}

// loggedRequest returns a function that handles one request, with a real access log that goes nowhere.
func loggedRequest(t testing.TB, closed reject.Reason, every int) (handle func() func()) {
	t.Helper()
	o := options(emptyUpstream)
	o.Stock.(*stockMap).closed["1001"] = closed
	var l *accesslog.Log
	if every > 0 {
		start := time.Now()
		o.Now = func() int64 { return int64(time.Since(start)) }
		var err error
		l, err = accesslog.New(accesslog.Options{
			Settings: accesslog.Settings{Output: "stdout", RejectedFirst: 20, RejectedEvery: every, Remember: 1 << 20},
			Stdout:   io.Discard, Now: o.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		o.AccessLog = l
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if l != nil {
		l.Start(func() accesslog.Totals { return accesslog.Totals{Totals: p.Counters().Totals()} })
		t.Cleanup(l.Close)
	}
	return func() func() { return repeated(p, recordedOrder) }
}

// emptyUpstream answers every request with an empty response.
var emptyUpstream = upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome {
	return upstream.Answered
})

// repeated returns a function that handles raw once, on a connection that is not there.
func repeated(p *Proxy, raw string) (handle func()) {
	x, err := server.Read(raw, netip.MustParseAddr("203.0.113.9"), p.limits(16<<10, false))
	if err != nil {
		panic(err)
	}
	x.State = &connState{shard: p.counters.Shard()}
	return func() {
		p.serve(x.Ctx(), x)
		x.Ctx().Response.Reset()
	}
}

func TestAccessRecord_LoggingDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, decision := range recordedDecisions {
		for _, log := range accessLogs {
			handle := loggedRequest(t, decision.closed, log.every)()
			for range 100 {
				handle()
			}
			// The writer allocates a few times a second for its summary; a request never does.
			if n := testing.AllocsPerRun(2000, handle); n != 0 {
				t.Errorf("%s, %s: %v allocations a request", decision.name, log.name, n)
			}
		}
	}
}

func BenchmarkAccessLog(b *testing.B) {
	for _, decision := range recordedDecisions {
		for _, log := range accessLogs {
			b.Run(decision.name+"/"+log.name, func(b *testing.B) {
				connect := loggedRequest(b, decision.closed, log.every)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					handle := connect()
					for pb.Next() {
						handle()
					}
				})
			})
		}
	}
}
