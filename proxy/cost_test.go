package proxy

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// treadmill is a connection on which the same request arrives for ever.
type treadmill struct {
	script
	raw string
}

func (t treadmill) Read(p []byte) (int, error) { return copy(p, t.raw), nil }

// turning returns one turn of a connection: read the request, handle it, write the answer.
func turning(p *Proxy, raw string) func() {
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}})
	c := &Conn{Conn: treadmill{raw: raw}, server: s, peer: netip.MustParseAddr("203.0.113.9"), shard: p.counts.shard()}
	c.reader = s.guard.Load().NewReader(socket{c})
	x := newExchange()
	x.conn = c
	x.out.Reset(io.Discard)
	return func() {
		if err := c.readHead(&x.asked); err != nil {
			panic(err)
		}
		p.handle(x)
		if err := x.answer(false); err != nil {
			panic(err)
		}
		x.clear()
	}
}

const browserOrder = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\n" +
	"Accept: application/json, text/plain, */*\r\nAccept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\nAccept-Encoding: gzip, deflate\r\nOrigin: https://shop.example\r\n" +
	"Referer: https://shop.example/1001\r\nContent-Type: application/json\r\nContent-Length: 2\r\nCookie: theme=dark; uid=7; _ga=GA1.1.123456789\r\nConnection: keep-alive\r\n\r\n{}"

func soldOut(o *Options) { o.Stock.(*shelf).closed["1001"] = SoldOut }

var roads = []struct {
	name string
	set  func(*Options)
}{
	{"admitted", func(*Options) {}},
	{"sold_out", soldOut},
	{"sold_out_page", func(o *Options) { soldOut(o); o.Responses.Format = HTML }},
	{"sold_out_envelope", func(o *Options) { soldOut(o); o.Responses.Format = Envelope }},
	{"reserve_sold_out", func(o *Options) {
		o.Routes = []Route{{Name: "x", Match: "/api/seckill/{sku}/order", Gate: Reserve, SKU: "$path_sku", User: "$cookie_uid"}}
		o.Orders = &clerk{closed: true, says: Taken{Reason: SoldOut}}
	}},
	{"reserve_in_progress", func(o *Options) {
		o.Routes = []Route{{Name: "x", Match: "/api/seckill/{sku}/order", Gate: Reserve, SKU: "$path_sku", User: "$cookie_uid"}}
		o.Orders = &clerk{closed: true, says: Taken{Reason: InProgress}}
	}},
	{"window", func(o *Options) {
		o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
	}},
	{"concurrency", func(o *Options) { o.Places = placesFunc(func() Reason { return Concurrency }) }},
	{"bad_request", func(o *Options) { o.Routes = []Route{{Name: "x", Match: "/", Gate: Check, SKU: "$arg_sku"}} }},
	{"rate_admitted", func(o *Options) {
		o.Rates = []KeyedRate{keyed("a", "$remote_addr$path_sku", 1<<20), keyed("b", "$cookie_uid", 1<<20)}
	}},
	{"rate_refused", func(o *Options) { o.Rates = []KeyedRate{keyed("a", "$remote_addr", 1)} }},
	{"rate_fields", func(o *Options) {
		o.Rates = []KeyedRate{keyed("a", "$remote_addr", 1<<20), keyed("b", "$cookie_uid", 1<<20)}
		o.Responses.RateFields = true
	}},
	{"hundred_routes", func(o *Options) {
		soldOut(o)
		for i := range 100 {
			o.Routes = append([]Route{{Name: fmt.Sprint("x", i), Match: fmt.Sprintf("/api/seckill-%d/{sku}/order", i), Gate: Check, SKU: "$path_sku"}}, o.Routes...)
		}
	}},
	{"not_listed", func(o *Options) { o.Deny, o.Bypass = networks(5000), networks(5000) }},
	{"denied", func(o *Options) { o.Deny = append(networks(5000), netip.MustParsePrefix("203.0.113.0/24")) }},
	{"proven_sold_out", func(o *Options) {
		soldOut(o)
		o.Routes = []Route{{Name: "x", Match: "/api/seckill/{sku}/order", Gate: Check, SKU: "$path_sku", User: "$jwt_sub"}}
		o.Proof = byJWT("$cookie_token")
	}},
	{"unidentified", func(o *Options) {
		o.Routes = []Route{{Name: "x", Match: "/api/seckill/{sku}/order", Gate: Check, SKU: "$path_sku", User: "$signed_uid"}}
		o.Proof = Proof{CookieKey: proofSecret}
	}},
	{"token", func(o *Options) {
		o.Routes = []Route{{Name: "x", Match: "/api/seckill/{sku}/order", Gate: Check, SKU: "$path_sku", User: "$cookie_uid", OrderToken: true}}
		o.Proof = Proof{TicketKey: proofSecret, Slot: time.Minute}
	}},
	{"json", func(o *Options) {
		o.Routes = []Route{{Name: "x", Match: "/", Gate: Check, SKU: "$json_sku"}}
	}},
}

func answering(_ *Outgoing, resp *fasthttp.Response) Outcome {
	resp.SetStatusCode(200)
	return Answered
}

func TestDecisionsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, road := range roads {
		o := options(shopFunc(answering))
		road.set(&o)
		p, err := New(o)
		if err != nil {
			t.Fatal(road.name, ": ", err)
		}
		turn := turning(p, strings.Replace(browserOrder, "uid=7", "uid=7; token="+tokenOf("7"), 1))
		for range 10 {
			turn()
		}
		if n := testing.AllocsPerRun(200, turn); n != 0 {
			t.Errorf("%s: %v allocations a request", road.name, n)
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	for _, road := range roads {
		b.Run(road.name, func(b *testing.B) {
			o := options(shopFunc(answering))
			road.set(&o)
			p, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				turn := turning(p, browserOrder)
				for pb.Next() {
					turn()
				}
			})
		})
	}
}
