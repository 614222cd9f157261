package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/proxy"
)

// everybody is what a gate asks that refuses nobody, and how many are inside.
type everybody struct{ inside atomic.Int64 }

func (*everybody) Open(netip.Addr, bool) proxy.Reason       { return proxy.Admitted }
func (*everybody) Close(netip.Addr, bool)                   {}
func (*everybody) Take(int64, []byte) (time.Duration, bool) { return 0, true }
func (*everybody) Full(int64, []byte) (time.Duration, bool) { return 0, false }
func (e *everybody) Enter(proxy.Client) proxy.Reason        { e.inside.Add(1); return proxy.Admitted }
func (e *everybody) Leave(time.Duration)                    { e.inside.Add(-1) }
func (e *everybody) empty(t *testing.T) {
	eventually(t, "the shop is left", func() bool { return e.inside.Load() == 0 })
}

// gateTo is a gate in front of p, with a route for orders.
func gateTo(t *testing.T, p *Pool) (s *proxy.Server, addr string, e *everybody) {
	t.Helper()
	e = &everybody{}
	g, err := proxy.New(proxy.Options{
		Routes: []proxy.Route{{Name: "order", Match: "POST /", Gate: proxy.Limit}, {Name: "rest", Match: "/", Gate: proxy.Pass}},
		Shop:   p, Windows: e, Places: e, MaxBody: 1 << 20, Responses: proxy.Responses{Languages: []string{"en"}},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s = proxy.NewServer(g, proxy.ServerOptions{MaxHeader: 16 << 10, Connections: e, Log: slog.New(slog.DiscardHandler)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() { s.Drain(t.Context()) })
	return s, ln.Addr().String(), e
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not in ten seconds: " + what)
}

// shopper is one client connection.
type shopper struct {
	net.Conn
	r *bufio.Reader
}

func shopperAt(t *testing.T, addr string) *shopper {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return &shopper{c, bufio.NewReader(c)}
}

func (s *shopper) ask(method, target string) {
	length := ""
	if method == "POST" {
		length = "Content-Length: 0\r\n"
	}
	fmt.Fprintf(s, "%s %s HTTP/1.1\r\nHost: shop\r\n%s\r\n", method, target, length)
}

func (s *shopper) hear(method string) (status int, body string, last bool, err error) {
	resp, err := http.ReadResponse(s.r, &http.Request{Method: method})
	if err != nil {
		return 0, "", true, err
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Close, err
}

func (s *shopper) must(t *testing.T, target string) {
	t.Helper()
	s.ask("GET", target)
	if status, body, _, err := s.hear("GET"); err != nil || status != 200 || body != target {
		t.Fatalf("%s is answered %d %.100q, %v", target, status, body, err)
	}
}

// However the shop behaves, and whoever leads which loop: everybody gets his own answer or a refusal that tells the truth, no
// order comes twice, and all that was taken for it is given back.
func TestClientsOfAMoodyShopGetTheirOwnAnswersInALoop(t *testing.T) {
	shop := newRawShop(t, func(v *visit) { moods(v, time.Duration(100+rand.IntN(900))*time.Millisecond) })
	o := options(shop.url())
	o.ResponseTimeout, o.Timeout = 700*time.Millisecond, 1500*time.Millisecond
	p := newPool(t, o)
	s, addr, inside := gateTo(t, p)
	var all sync.WaitGroup
	var answered, refused, cut atomic.Int64
	for w := range 24 {
		all.Go(func() {
			var c *shopper
			for i := 0; i < 60; {
				if c == nil {
					c = shopperAt(t, addr)
				}
				var asked []string
				var methods []string
				for range 1 + rand.IntN(2)*rand.IntN(3) { // some in one go
					method := []string{"GET", "POST", "POST"}[rand.IntN(3)]
					target := fmt.Sprintf("/%d/%d", w, i)
					i++
					c.ask(method, target)
					asked, methods = append(asked, target), append(methods, method)
				}
				if rand.IntN(40) == 0 { // and goes
					c.Close()
					c = nil
					continue
				}
				for k, target := range asked {
					status, body, last, err := c.hear(methods[k])
					switch {
					case err != nil: // a stream that broke off, or the end that was told before
						cut.Add(1)
						last = true
					case status == 200:
						answered.Add(1)
						if body != target {
							t.Errorf("%s got %q", target, body)
						}
					default:
						refused.Add(1)
						if status == 503 && shop.count(target) != 0 {
							t.Errorf("%s came, and is reported as not sent", target)
						}
					}
					if last {
						c.Close()
						c = nil
						break
					}
				}
			}
		})
	}
	all.Wait()
	s.Drain(t.Context())
	if _, most := shop.total(); most > 1 {
		t.Errorf("one came %d times", most)
	}
	if answered.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d answered, %d refused: this has tried nothing", answered.Load(), refused.Load())
	}
	inside.empty(t)
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle {
		t.Errorf("%+v", st)
	}
}

// held is a shop that answers each but for what is to be held, until it is told to.
func held(t *testing.T) (shop *rawShop, answer chan struct{}) {
	answer = make(chan struct{})
	return newRawShop(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			if strings.HasPrefix(targetOf(head), "/held") {
				<-answer
			}
			v.say(ok(targetOf(head)))
		}
	}), answer
}

// Many who wait for the shop need no goroutine each: a connection that was used before is at hand for all of them.
func TestNoGoroutineWaitsForAnAnswer(t *testing.T) {
	const many = 60
	shop, answer := held(t)
	o := options(shop.url())
	o.MaxConns = 2 * many
	_, addr, inside := gateTo(t, newPool(t, o))
	var all []*shopper
	for range many {
		all = append(all, shopperAt(t, addr))
	}
	for _, c := range all { // so many connections to the shop are opened
		c.ask("POST", "/held/first")
	}
	eventually(t, "all are inside", func() bool { return inside.inside.Load() == many })
	for range many {
		answer <- struct{}{}
	}
	for _, c := range all {
		if status, _, _, err := c.hear("POST"); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	before := runtime.NumGoroutine()
	for _, c := range all {
		c.ask("POST", "/held/second")
	}
	eventually(t, "all have come", func() bool { return shop.count("/held/second") == many })
	if runtime.GOOS == "linux" {
		if n := runtime.NumGoroutine(); n > before+many/3 {
			t.Errorf("%d goroutines, %d before", n, before)
		}
	}
	close(answer)
	for _, c := range all {
		if status, body, _, err := c.hear("POST"); err != nil || status != 200 || body != "/held/second" {
			t.Fatal(status, body, err)
		}
	}
	inside.empty(t)
}

// An answer that takes longer than a loop waits comes all the same, and one that takes too long is told to be late, not before
// its time.
func TestLateAnswerToAClientInALoop(t *testing.T) {
	shop, answer := held(t)
	o := options(shop.url())
	o.ResponseTimeout = time.Second
	p := newPool(t, o)
	_, addr, inside := gateTo(t, p)
	c := shopperAt(t, addr)
	c.must(t, "/warm")
	c.ask("POST", "/held/answered")
	time.Sleep(700 * time.Millisecond)
	answer <- struct{}{}
	if status, body, _, err := c.hear("POST"); err != nil || status != 200 || body != "/held/answered" {
		t.Fatal(status, body, err)
	}
	c.must(t, "/again")
	begun := time.Now()
	c.ask("POST", "/held/late")
	if status, _, _, err := c.hear("POST"); err != nil || status != 504 {
		t.Fatal(status, err)
	}
	if took := time.Since(begun); took < o.ResponseTimeout {
		t.Errorf("too late after %v", took)
	}
	close(answer)
	inside.empty(t)
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle {
		t.Errorf("%+v", st)
	}
}

// Whoever is cut off at the end of a drain had a place in the shop, and the shop's answer gives it back: the loops are closed by then.
func TestAnswerAfterADrainHasCutItsClientGivesBackThePlace(t *testing.T) {
	shop, answer := held(t)
	p := newPool(t, options(shop.url()))
	s, addr, inside := gateTo(t, p)
	c := shopperAt(t, addr)
	c.must(t, "/warm")
	c.ask("POST", "/held")
	eventually(t, "it has come", func() bool { return shop.count("/held") == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if cut := s.Drain(ctx); cut != 1 {
		t.Errorf("%d cut", cut)
	}
	if n := inside.inside.Load(); n != 1 {
		t.Errorf("%d inside before there is an answer", n)
	}
	close(answer)
	inside.empty(t)
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle {
		t.Errorf("%+v", st)
	}
}

// What the shop closes while nobody uses it costs nobody his request, nor what it says unasked.
func TestIdleConnectionThatEndsOrSpeaksCostsNoClientInALoopAnything(t *testing.T) {
	spoken := make(chan struct{}, 2)
	shop := newRawShop(t, func(v *visit) {
		v.request()
		if v.n == 0 {
			v.say(ok("/0"))
			time.Sleep(20 * time.Millisecond)
			v.say(ok("/nobody asked"))
			spoken <- struct{}{}
			v.gone()
			return
		}
		v.say(ok(fmt.Sprint("/", v.n)))
		if v.n == 1 {
			v.Close()
			spoken <- struct{}{}
			return
		}
		answerEach(v)
	})
	o := options(shop.url())
	o.Retry = "off"
	p := newPool(t, o)
	_, addr, _ := gateTo(t, p)
	c := shopperAt(t, addr)
	c.must(t, "/0")
	<-spoken
	c.must(t, "/1")
	<-spoken
	time.Sleep(20 * time.Millisecond) // the end comes
	c.must(t, "/2")
	c.must(t, "/3")
	if st := p.Targets()[0]; st.Open != 1 {
		t.Errorf("%+v", st)
	}
}
