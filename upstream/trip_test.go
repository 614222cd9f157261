package upstream

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// A request that the socket takes only in pieces is written to its end all the same, on new connections and on used ones.
func TestRequestThatTheSocketTakesInPiecesArrivesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop") // what such a socket takes at once is known better than what TCP does
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	shop := serveRaw(t, l, answerEach)
	p := newPool(t, options("unix:"+path))
	target := p.targets.Load().all[0]
	for range 3 {
		c, err := target.take(true, false, target.clock.now())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.socket.Conn.(*net.UnixConn).SetWriteBuffer(1); err != nil { // the kernel makes it as small as it can
			t.Fatal(err)
		}
		out := orderFor("POST", "/whole")
		out.Body = []byte(strings.Repeat("b", smallRequest-1<<10))
		out.Fields = fmt.Appendf(nil, "Content-Length: %d\r\n", len(out.Body))
		resp := new(fasthttp.Response)
		e := exchange{patience: target.patience, conn: c, start: time.Now()}
		o, f := e.run(out, resp, target)
		if o != proxy.Answered || f != keep || string(resp.Body()) != "/whole" {
			t.Fatalf("outcome %d, fate %d, body %q", o, f, resp.Body())
		}
		target.release(c, f, target.clock.now())
	}
	if n := shop.count("/whole"); n != 3 {
		t.Errorf("the shop has seen %d requests", n)
	}
}

// However many idle connections the shop has closed, a request finds one that is good, or opens it, and is not told
// to try elsewhere.
func TestClosedIdleConnectionsCostNoRequestWithoutRetry(t *testing.T) {
	closed := make(chan struct{})
	shop := newRawShop(t, func(v *visit) {
		if v.n < staleTries+2 {
			v.request()
			v.say(ok("early"))
			<-closed
			return
		}
		answerEach(v)
	})
	o := options(shop.url())
	o.Retry = "off"
	p := newPool(t, o)
	target := p.targets.Load().all[0]
	var used []*conn
	for range staleTries + 2 {
		c, err := target.take(false, true, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := exchange{patience: target.patience, conn: c, start: time.Now()}
		if o, _ := e.run(orderFor("GET", "/early"), new(fasthttp.Response), target); o != proxy.Answered {
			t.Fatal(o)
		}
		used = append(used, c)
	}
	for _, c := range used {
		target.release(c, keep, target.clock.now())
	}
	close(closed)
	for _, c := range used {
		for c.socket.probe.silent() {
			time.Sleep(time.Millisecond)
		}
	}
	mustAnswer(t, p, "/late")
	if st := p.Targets()[0]; st.Open != 1 || st.Idle != 1 {
		t.Errorf("%+v", st)
	}
}
