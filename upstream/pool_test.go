package upstream

import (
	"fmt"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

func TestPool_TargetIsParsedOrRejected(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:9000": "tcp 127.0.0.1 9000 127.0.0.1:9000",
		"http://shop/":          "tcp shop 80 shop",
		"https://[::1]:8443":    "tcp ::1 8443 [::1]:8443",
		"https://shop.example":  "tcp shop.example 443 shop.example",
		"unix:/run/shop.sock":   "unix /run/shop.sock  localhost",
	} {
		a, err := parseAddress(url)
		if got := fmt.Sprintf("%s %s %s %s", a.network, a.host, a.port, a.authority); err != nil || got != want {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
	for _, url := range []string{"", "server:9000", "ftp://shop", "http://", "http://:80",
		"http://u:p@shop", "http://shop/api", "http://server?x", "unix:", "http://server:99:1"} {
		if a, err := parseAddress(url); err == nil {
			t.Errorf("%q is read as %+v", url, a)
		}
	}
}

func TestPool_InvalidOptionsAreRejected(t *testing.T) {
	for name, spoil := range map[string]func(o *Options){
		"no targets":      func(o *Options) { o.Targets = nil },
		"a target twice":  func(o *Options) { o.Targets = append(o.Targets, o.Targets...) },
		"65 targets":      func(o *Options) { o.Targets = manyTargets(65) },
		"policy":          func(o *Options) { o.Policy = "best" },
		"retry":           func(o *Options) { o.Retry = "always" },
		"connections":     func(o *Options) { o.MaxConns = 0 },
		"time-out":        func(o *Options) { o.Timeout = 0 },
		"health path":     func(o *Options) { o.Health = Health{"/a b", 1, 1, 1, 1} },
		"health interval": func(o *Options) { o.Health = Health{"/", 0, 1, 1, 1} },
	} {
		o := options("http://127.0.0.1:9")
		spoil(&o)
		if p, err := New(o); err == nil {
			p.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

func manyTargets(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("http://127.0.0.1:%d", i+1))
	}
	return all
}

func TestPool_NameIsLookedUp(t *testing.T) {
	server := newRawServer(t, echo)
	mustAnswer(t, newPool(t, options("http://localhost:"+port(server.Addr()))), "/")
}

// Idle connections are closed when they are old: the next request finds a new one.
func TestPool_OldIdleConnectionIsClosed(t *testing.T) {
	server := newRawServer(t, echo)
	p := newPool(t, options(server.url()))
	mustAnswer(t, p, "/1")
	target := p.targets.Load().all[0]
	used := target.idle[0].returnedAt
	target.reap(used + target.settings.Load().maxIdle - 1)
	if st := p.Targets()[0]; st.Idle != 1 {
		t.Errorf("closed too early: %+v", st)
	}
	target.reap(used + target.settings.Load().maxIdle)
	if st := p.Targets()[0]; st.Idle != 0 || st.Open != 0 {
		t.Errorf("not closed: %+v", st)
	}
	mustAnswer(t, p, "/2")
	target.idle[0].returnedAt -= target.settings.Load().maxIdle // as if it had been used long ago
	mustAnswer(t, p, "/3")
	if n, most := server.total(); n != 3 || most != 1 {
		t.Errorf("%d orders came, one %d times", n, most)
	}
}

// A target that goes finishes what it has; one that stays keeps its connections; and no request is
// lost in between.
func TestPool_ReplaceLosesNothing(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	old := newRawServer(t, func(v *visit) {
		head, _, _ := v.request()
		arrived <- struct{}{}
		<-leave
		v.reply(ok(targetOf(head)))
		v.waitClosed()
	})
	stays := newRawServer(t, echo)
	o := options(old.url(), stays.url())
	o.Policy = "first"
	p := newPool(t, o)
	under := make(chan Outcome)
	go func() { o, _ := sendOrder(p, "POST", "/old"); under <- o }()
	<-arrived
	removed := p.targets.Load().all[0]
	if err := replace(p, []string{stays.url()}); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, p, "/new")
	kept := p.targets.Load().all[0]
	if err := replace(p, []string{"nonsense"}); err == nil || p.targets.Load().all[0] != kept {
		t.Errorf("a bad target changed something: %v", err)
	}
	if err := replace(p, []string{old.url(), stays.url()}); err != nil || p.targets.Load().all[1] != kept {
		t.Errorf("a target that stays was made anew: %v", err)
	}
	close(leave)
	if o := <-under; o != Answered {
		t.Errorf("request under way: outcome %d", o)
	}
	if removed.open != 0 {
		t.Error("the removed target has kept a connection")
	}
}

func TestPool_RequestsFlowWhileTargetsAreReplaced(t *testing.T) {
	a, b := newRawServer(t, echo), newRawServer(t, echo)
	o := options(a.url())
	o.Retry = "off"
	p := newPool(t, o)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if o, _ := sendOrder(p, "POST", fmt.Sprintf("/%d/%d", w, i)); o != Answered {
					t.Errorf("outcome %d", o)
					return
				}
			}
		})
	}
	for i := range 100 {
		urls := []string{a.url()}
		if i%2 == 0 {
			urls = []string{b.url()}
		}
		if err := replace(p, urls); err != nil {
			t.Error(err)
		}
		mustAnswer(t, p, fmt.Sprintf("/main/%d", i))
	}
	close(stop)
	all.Wait()
}

func TestPool_ClosedPoolSendsNothing(t *testing.T) {
	server := newRawServer(t, echo)
	p := newPool(t, options(server.url()))
	mustAnswer(t, p, "/1")
	p.Close()
	if o, _ := sendOrder(p, "POST", "/2"); o != NotSent || server.count("/2") != 0 {
		t.Errorf("outcome %d", o)
	}
	if st := p.Targets()[0]; st.Open != 0 {
		t.Errorf("connections left: %+v", st)
	}
	if err := replace(p, []string{server.url()}); err == nil {
		t.Error("targets of a closed pool were replaced")
	}
	p.Close()
}

// What was certainly not sent may go to another target, if that is allowed.
func TestPool_UnreachableTargetIsPassedOver(t *testing.T) {
	server := newRawServer(t, echo)
	dead := closedPort(t)
	o := options(dead, server.url())
	o.Policy = "first"
	p := newPool(t, o)
	mustAnswer(t, p, "/order")

	o.Retry = "off"
	p = newPool(t, o)
	if outcome, _ := sendOrder(p, "POST", "/order2"); outcome != NotSent {
		t.Errorf("retry off: outcome %d", outcome)
	}
	if n := server.count("/order2"); n != 0 {
		t.Errorf("retry off: order came %d times", n)
	}
}

// Pages that are slow take most of the connections, and leave some for orders.
func TestPool_PagesLeaveConnectionsForOrders(t *testing.T) {
	leave := make(chan struct{})
	server := newRawServer(t, func(v *visit) {
		v.each(func(head string) {
			if targetOf(head) == "/page" {
				<-leave
			}
			v.reply(ok(targetOf(head)))
		})
	})
	o := options(server.url())
	o.MaxConns = 8
	p := newPool(t, o)
	ends := make(chan Outcome)
	for range 2 * o.MaxConns {
		pageTo(p, "/page", ends)
	}
	want := o.MaxConns - o.MaxConns/4
	for range 2*o.MaxConns - want {
		if outcome := <-ends; outcome != Busy {
			t.Errorf("a page more than there are connections for: outcome %v", outcome)
		}
	}
	for range 3 { // one that is idle is not for pages either
		mustAnswer(t, p, "/order")
		if outcome := p.Send(newPage("/other"), new(fasthttp.Response)); outcome != Busy {
			t.Errorf("one more page: outcome %v", outcome)
		}
	}
	close(leave)
	for range want {
		if outcome := <-ends; outcome != Answered {
			t.Errorf("a slow page: outcome %v", outcome)
		}
	}
	if outcome := p.Send(newPage("/other"), new(fasthttp.Response)); outcome != Answered {
		t.Errorf("after all pages: outcome %v", outcome)
	}
}

// A sale whose orders are slow takes most of the connections, and leaves some for the pages; pages leave some for
// orders.
func TestPool_OrdersLeaveConnectionsForPages(t *testing.T) {
	release := make(chan struct{})
	server := newRawServer(t, func(v *visit) {
		v.each(func(head string) {
			if targetOf(head) == "/slow" {
				<-release
			}
			v.reply(ok(targetOf(head)))
		})
	})
	o := options(server.url())
	o.MaxConns = 8
	p := newPool(t, o)
	ends := make(chan Outcome)
	for range 2 * o.MaxConns {
		go func() { ends <- p.Send(newOrder("POST", "/slow"), new(fasthttp.Response)) }()
	}
	most := o.MaxConns - o.MaxConns/8
	for range 2*o.MaxConns - most { // the others wait for the server
		if outcome := <-ends; outcome != Busy {
			t.Errorf("an order more than there are connections for: outcome %d", outcome)
		}
	}
	for range 3 {
		page := newOrder("GET", "/page")
		page.Order = false
		if outcome := p.Send(page, new(fasthttp.Response)); outcome != Answered {
			t.Errorf("a page beside a sale: outcome %d", outcome)
		}
	}
	pageTo(p, "/slow", ends) // takes the last connection
	testkit.Eventually(t, "it is under way", func() bool { return p.Targets()[0].InFlight == o.MaxConns })
	if outcome := p.Send(newPage("/page"), new(fasthttp.Response)); outcome != Busy {
		t.Errorf("one more than there are connections: outcome %v", outcome)
	}
	close(release)
	for range o.MaxConns {
		if outcome := <-ends; outcome != Answered {
			t.Errorf("a slow request: outcome %d", outcome)
		}
	}
	if x := p.targets.Load().all[0]; x.orders != 0 || x.pages != 0 {
		t.Errorf("%d orders and %d pages are counted, and none is under way", x.orders, x.pages)
	}
}

// stepper counts the calls of StepAside.
type stepper struct{ calls int }

func (s *stepper) StepAside() { s.calls++ }

// An event loop is left before a connection is opened, also where the target is known to be down, and only then.
func TestPool_OwnerStepsAsideBeforeADial(t *testing.T) {
	send := func(p *Pool, owner *stepper) Outcome {
		r := newRequest("GET", "/")
		r.Owner = owner
		outcome, _ := sendAndRead(p, r)
		return outcome
	}
	up, owner := newPool(t, options(newRawServer(t, echo).url())), new(stepper)
	for range 3 { // the first one dials
		if outcome := send(up, owner); outcome != Answered || owner.calls != 1 {
			t.Errorf("outcome %d after %d calls", outcome, owner.calls)
		}
	}
	down := newPool(t, options(closedPort(t)))
	for range ejectAfter {
		sendOrder(down, "GET", "/x")
	}
	if owner := new(stepper); !down.Targets()[0].Ejected || send(down, owner) != NotSent || owner.calls == 0 {
		t.Errorf("%d calls for an ejected target", owner.calls)
	}
}
