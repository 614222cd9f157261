package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// distant is a shop that answers after some looks in vain, or fails in a way that nobody has foreseen.
type distant struct {
	shopFunc
	begun, sent, ended atomic.Int64
	panics             func(n int64) bool
}

type voyage struct {
	*distant
	n    int64
	resp *fasthttp.Response
	left int
}

func (d *distant) Begin(_ *Outgoing, resp *fasthttp.Response, client *Looped) (Flight, Outcome) {
	n := d.begun.Add(1)
	if n%5 == 0 { // no connection is at hand
		client.StepAside()
		d.sent.Add(1)
		resp.SetBodyString(fmt.Sprint(n))
		return nil, Answered
	}
	return &voyage{d, n, resp, 2}, NotSent
}

func (v *voyage) Rest(any) bool { return false }
func (v *voyage) Hurry()        {}

func (v *voyage) End() (Outcome, bool) {
	if v.left--; v.left > 0 {
		return 0, false
	}
	if v.panics(v.n) {
		panic("as planned")
	}
	v.ended.Add(1)
	v.resp.SetBodyString(fmt.Sprint(v.n))
	return Answered, true
}

// A panic in a flight costs one request: its place is left, and nobody else notices.
func TestPanicInAFlightCostsOneRequest(t *testing.T) {
	shop := &distant{shopFunc: answering, panics: func(n int64) bool { return n%3 == 0 }}
	o := options(shop)
	var inside atomic.Int64
	o.Places = lodging{&inside}
	p := newProxy(t, o)
	addr := serve(t, p, ServerOptions{})
	var c net.Conn
	var r *bufio.Reader
	for n := 1; n <= 30; n++ {
		if c == nil {
			var err error
			if c, err = net.Dial("tcp", addr); err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			r = bufio.NewReader(c)
		}
		fmt.Fprint(c, "GET /search/ HTTP/1.1\r\nHost: shop\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(n, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(n, err)
		}
		want, text := 200, fmt.Sprint(n)
		if n%3 == 0 && n%5 != 0 {
			want = 500
		}
		if resp.StatusCode != want || want == 200 && string(body) != text {
			t.Fatalf("%d is answered %d %q", n, resp.StatusCode, body)
		}
		if resp.Close {
			c = nil
		}
	}
	if n := inside.Load(); n != 0 {
		t.Errorf("%d are still inside", n)
	}
	if shop.begun.Load() == 0 {
		t.Skip("no loops on this system")
	}
}

type lodging struct{ inside *atomic.Int64 }

func (c lodging) Enter(Client) Reason { c.inside.Add(1); return Admitted }
func (c lodging) Leave(time.Duration) { c.inside.Add(-1) }
