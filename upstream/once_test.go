package upstream

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/proxy"
)

var methods = []string{"POST", "PUT", "PATCH", "DELETE", "GET"}

// faults are what a shop can do to an order after it was read. None may make it come twice.
var faults = map[string]func(v *visit){
	"resets after reading":  func(v *visit) { v.request(); v.reset() },
	"closes after reading":  func(v *visit) { v.request() },
	"hangs":                 func(v *visit) { v.request(); v.gone() },
	"half a status line":    func(v *visit) { v.request(); v.say("HTTP/1.1 2") },
	"half a head":           func(v *visit) { v.request(); v.say("HTTP/1.1 200 OK\r\nContent-Le") },
	"half a head and hangs": func(v *visit) { v.request(); v.say("HTTP/1.1 200 OK\r\nContent-Le"); v.gone() },
	"half a body":           func(v *visit) { v.request(); v.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345") },
	"half a chunk":          func(v *visit) { v.request(); v.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123") },
	"garbage":               func(v *visit) { v.request(); v.say("SSH-2.0-OpenSSH\r\n\r\n") },
	"only interim answers":  func(v *visit) { v.request(); v.say("HTTP/1.1 100 Continue\r\n\r\n") },
	"101": func(v *visit) {
		v.request()
		v.say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
	},
	"resets before reading": func(v *visit) { v.reset() },
}

// A fault after a byte was written ends as unknown, and the order came at most once; on a new
// connection and on a used one.
func TestOrderIsNeverWrittenTwice(t *testing.T) {
	for name, fault := range faults {
		for _, method := range methods {
			for _, used := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/used=%v", name, method, used), func(t *testing.T) {
					t.Parallel()
					neverTwice(t, method, fault, used)
				})
			}
		}
	}
}

func neverTwice(t *testing.T, method string, fault func(*visit), used bool) {
	shop := newRawShop(t, func(v *visit) {
		if used && v.n == 0 {
			v.request()
			v.say(ok("warm"))
		}
		fault(v)
	})
	o := options(shop.url(), "http://localhost:"+port(shop.Addr()))
	o.Policy, o.ResponseTimeout = "first", 150*time.Millisecond
	p := newPool(t, o)
	if used {
		if outcome, _ := sendFor(p, "POST", "/warm"); outcome != proxy.Answered {
			t.Fatalf("warm: %d", outcome)
		}
	}
	outcome, resp := sendFor(p, method, "/order")
	if outcome == proxy.Answered {
		t.Errorf("answered: %q", resp.Body())
	}
	shop.stop()
	if n := shop.count("/order"); n > 1 {
		t.Errorf("the shop saw it %d times", n)
	} else if n == 1 && outcome == proxy.NotSent {
		t.Error("the shop saw it, but it is reported as not sent")
	}
}

func port(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// An answer is an answer, whatever it says; a 5xx is not a reason to repeat an order.
func TestServerErrorIsAnAnswer(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		for {
			if _, _, err := v.request(); err != nil {
				return
			}
			v.say("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops")
		}
	})
	p := newPool(t, options(shop.url()))
	for _, m := range methods {
		outcome, resp := sendFor(p, m, "/"+m)
		if outcome != proxy.Answered || resp.StatusCode() != 500 || string(resp.Body()) != "oops" {
			t.Errorf("%s: outcome %d, status %d, body %q", m, outcome, resp.StatusCode(), resp.Body())
		}
		if n := shop.count("/" + m); n != 1 {
			t.Errorf("%s came %d times", m, n)
		}
	}
}

// Orders that meet connections which the shop has closed meanwhile all get their own answer: the
// probe finds out before a byte is written.
func TestClosedIdleConnectionCostsNoOrder(t *testing.T) {
	const orders = 1000
	closing := make(chan struct{})
	shop := newRawShop(t, func(v *visit) {
		head, _, err := v.request()
		if err != nil {
			return
		}
		v.say(ok(targetOf(head)))
		v.Conn.(*net.TCPConn).CloseWrite() // as at the end of a keep-alive
		closing <- struct{}{}
		v.gone()
	})
	p := newPool(t, options(shop.url()))
	for i := range orders {
		mustAnswer(t, p, fmt.Sprintf("/order/%d", i))
		<-closing // loopback has delivered the FIN when CloseWrite returns
	}
	if n, most := shop.total(); n != orders || most != 1 {
		t.Errorf("%d orders came, one of them %d times", n, most)
	}
}

// A shop that closes just as orders arrive cannot be told from one that has taken them. Some outcomes
// are unknown then, but no order comes twice, and each unknown or answered one is accounted for.
func TestShopThatClosesAtRandomNeverSeesAnOrderTwice(t *testing.T) {
	var turn atomic.Uint64
	shop := newRawShop(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			switch turn.Add(1) % 7 {
			case 3:
				return
			case 5:
				v.say(ok(targetOf(head)))
				v.reset()
				return
			}
			v.say(ok(targetOf(head)))
		}
	})
	p := newPool(t, options(shop.url()))
	var all sync.WaitGroup
	var outcomes [4]atomic.Int64
	for w := range 8 {
		all.Go(func() {
			for i := range 200 {
				target := fmt.Sprintf("/%s/%d/%d", methods[i%len(methods)], w, i)
				outcome, resp := sendFor(p, methods[i%len(methods)], target)
				outcomes[outcome].Add(1)
				if outcome == proxy.Answered && string(resp.Body()) != target {
					t.Errorf("%s got %q", target, resp.Body())
				}
				if outcome == proxy.NotSent && shop.count(target) != 0 {
					t.Errorf("%s came, and is reported as not sent", target)
				}
			}
		})
	}
	all.Wait()
	if _, most := shop.total(); most != 1 {
		t.Errorf("one order came %d times", most)
	}
	if outcomes[proxy.Answered].Load() == 0 || outcomes[proxy.Broken].Load() == 0 {
		t.Errorf("the shop was too kind or too rude for this test: %v", &outcomes)
	}
}

// What was certainly not sent may go to another target, if that is allowed.
func TestUnreachableTargetIsPassedOver(t *testing.T) {
	shop := newRawShop(t, answerEach)
	dead := closedPort(t)
	o := options(dead, shop.url())
	o.Policy = "first"
	p := newPool(t, o)
	mustAnswer(t, p, "/order")

	o.Retry = "off"
	p = newPool(t, o)
	if outcome, _ := sendFor(p, "POST", "/order2"); outcome != proxy.NotSent {
		t.Errorf("retry off: outcome %d", outcome)
	}
	if n := shop.count("/order2"); n != 0 {
		t.Errorf("retry off: order came %d times", n)
	}
}

// closedPort is a target on which nobody listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestRequestBeyondMaxConnsIsNotSent(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	shop := newRawShop(t, func(v *visit) {
		v.request()
		arrived <- struct{}{}
		<-leave
		v.say(ok("x"))
	})
	o := options(shop.url())
	o.MaxConns = 1
	p := newPool(t, o)
	first := make(chan proxy.Outcome)
	go func() { o, _ := sendFor(p, "POST", "/1"); first <- o }()
	<-arrived
	if outcome, _ := sendFor(p, "POST", "/2"); outcome != proxy.NotSent {
		t.Errorf("outcome %d", outcome)
	}
	close(leave)
	if outcome := <-first; outcome != proxy.Answered {
		t.Errorf("first: outcome %d", outcome)
	}
	if n, _ := shop.total(); n != 1 {
		t.Errorf("%d orders came", n)
	}
}
