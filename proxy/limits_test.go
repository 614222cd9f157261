package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// perClientOnly notes whether connections are counted for their client.
type perClientOnly struct{ asked atomic.Bool }

func (c *perClientOnly) Open(_ netip.Addr, perClient bool) Reason {
	c.asked.Store(perClient)
	return Admitted
}
func (c *perClientOnly) Close(netip.Addr, bool) {}

// Each limit that is only observed counts its refusal and lets the request on to the next one.
func TestALimitThatIsOnlyObservedLeavesTheOthersInForce(t *testing.T) {
	ladder := []Reason{ConnRate, Rate, Window, Concurrency}
	for i := range len(ladder) + 1 {
		o := options(&seen{})
		stingy(&o)
		o.Now = func() int64 { return 0 }
		o.Spared = ladder[:i]
		o.Rates[0].Observe = i >= 2
		addr, p := gate(t, o)
		resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
		want := "200"
		if i < len(ladder) {
			want = ladder[i].String()
		}
		if got := verdict(resp); got != want {
			t.Errorf("observed %v: %s, want %s", ladder[:i], got, want)
		}
		shown := counted(t, p)
		for j, reason := range ladder {
			refused, observed := shown["sluice_rejected_requests_total "+reason.String()+" search"], shown["sluice_observed_rejections_total "+reason.String()+" search"]
			if (refused == 1) != (j == i) || (observed == 1) != (j < i) {
				t.Errorf("observed %v: %v: %v refused, %v observed", ladder[:i], reason, refused, observed)
			}
		}
	}
}

// Who was let in without a place has none to give back.
func TestPlacesThatWereNotTakenAreNotGivenBack(t *testing.T) {
	left := 0
	o := options(&seen{})
	o.Places = leaving{placesFunc(func() Reason { return QueueTimeout }), &left}
	o.Spared = []Reason{QueueTimeout}
	addr, _ := gate(t, o)
	if resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 || left != 0 {
		t.Errorf("%d, %d places given back; want 200, none", resp.StatusCode, left)
	}
}

type leaving struct {
	placesFunc
	left *int
}

func (l leaving) Leave(time.Duration) { *l.left++ }

func TestConnectionLimitsThatAreOnlyObservedLetConnectionsIn(t *testing.T) {
	o := options(&seen{})
	o.Spared = []Reason{IPConns}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, p, ServerOptions{Connections: tooMany{}})
	if resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("%d, want 200", resp.StatusCode)
	}
	if n := counted(t, s)["sluice_observed_connection_rejections_total ip_conns"]; n != 1 {
		t.Errorf("%v observed, want 1", n)
	}
}

type tooMany struct{ anyNumber }

func (tooMany) Open(netip.Addr, bool) Reason { return IPConns }

func TestAConnectionEndsWithItsLastRequest(t *testing.T) {
	o := options(&seen{})
	o.MaxRequests = 3
	addr, _ := gate(t, o)
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
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "from the shop" || resp.Close != (i == 3) {
			t.Errorf("request %d: %q, %v, the last %v", i, body, err, resp.Close)
		}
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("after the last answer: %v, want the end", err)
	}
}

// timed are places that note who left them, and for how long the shop had the request.
type timed struct {
	placesFunc
	left map[string]time.Duration
	name string
}

func (n timed) Leave(took time.Duration) { n.left[n.name] = took }

func TestARouteUsesItsOwnPlaces(t *testing.T) {
	left := map[string]time.Duration{}
	admits := placesFunc(func() Reason { return Admitted })
	o := options(&seen{})
	o.Places = timed{admits, left, "all"}
	o.Routes = append([]Route{}, orderRoutes...)
	o.Routes[1].Places = timed{admits, left, "search"}
	addr, _ := gate(t, o)
	talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
	if took := left["search"]; len(left) != 1 || took <= 0 {
		t.Errorf("left %v, want the route's own places, with the time that the shop took", left)
	}
	o.Shop = shopFunc(func(*Outgoing, *fasthttp.Response) Outcome { return NotSent })
	addr, _ = gate(t, o)
	talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
	if took := left["search"]; took != 0 {
		t.Errorf("the shop is said to have taken %v for what it never got", took)
	}
}
