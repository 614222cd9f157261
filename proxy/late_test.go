package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A window is of the instant at which a request goes on, and not of that at which its head came: who lets a body dawdle
// keeps no place in a window that is long over, and a crowd of them cannot come in at once.
func TestAWindowIsBookedWhenTheBodyHasCome(t *testing.T) {
	for _, route := range []Route{
		{Name: "path", Match: "POST /buy/{sku}", Gate: Limit, SKU: "$path_sku"},
		{Name: "json", Match: "POST /buy/{sku}", Gate: Limit, SKU: "$json_sku"},
	} {
		var clock, booked atomic.Int64
		booked.Store(-1)
		o := options(&seen{})
		o.Routes, o.Now = []Route{route}, clock.Load
		o.Windows = windowsFunc(func(now int64, _ []byte) (time.Duration, bool) { booked.Store(now); return 0, true })
		addr, _ := gate(t, o)
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		in := bufio.NewReader(c)
		send(t, c, "POST /buy/1 HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusContinue { // the gate waits for the body
			t.Fatalf("%s: %v, %v", route.Name, resp, err)
		}
		if at := booked.Load(); at >= 0 {
			t.Errorf("%s: a place in a window was booked before the body had come", route.Name)
		}
		const late = 500_000_000
		clock.Store(late)
		send(t, c, `{"sku":"1"}`)
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", route.Name, resp, err)
		}
		if at := booked.Load(); at != late {
			t.Errorf("%s: booked as of %d, want %d: when the body had come", route.Name, at, late)
		}
	}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// While the windows are full nobody is asked for a body that would be refused when it has come.
func TestNoBodyIsWaitedForWhileTheWindowsAreFull(t *testing.T) {
	o := options(&seen{})
	o.Windows = full{}
	addr, p := gate(t, o)
	raw := "POST /search/ HTTP/1.1\r\nHost: s\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n"
	if resp, body := talk(t, addr, raw); resp.StatusCode != 429 || resp.Header.Get("X-Sluice-Reason") != "window" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if n := p.Totals().Refused[Window]; n != 1 {
		t.Errorf("counted %d times, want once", n)
	}
}

// A limit that is only observed counts a request once, however often it was asked.
func TestAnObservedWindowCountsARequestWithABodyOnce(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"this limit": func(o *Options) { o.Spared = []Reason{Window} },
		"all":        func(o *Options) { o.Observe = true },
	} {
		shop := &seen{}
		o := options(shop)
		o.Windows = full{}
		set(&o)
		addr, p := gate(t, o)
		resp, _ := talk(t, addr, "POST /search/ HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
		observed := uint64(0)
		for i := range p.counts.of("search") {
			observed += p.counts.of("search")[i].observed[Window].Load()
		}
		if resp.StatusCode != 200 || observed != 1 || len(shop.all()) != 1 || !strings.HasSuffix(shop.all()[0], "hi") {
			t.Errorf("%s: %d, counted %d times; the shop saw %q", name, resp.StatusCode, observed, shop.all())
		}
	}
}
