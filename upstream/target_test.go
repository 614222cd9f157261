package upstream

import (
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"sluice/proxy"
)

func TestTargetIsReadOrRefused(t *testing.T) {
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
	for _, url := range []string{"", "shop:9000", "ftp://shop", "http://", "http://:80", "http://u:p@shop", "http://shop/api", "http://shop?x", "unix:", "http://shop:99:1"} {
		if a, err := parseAddress(url); err == nil {
			t.Errorf("%q is read as %+v", url, a)
		}
	}
}

func TestImpossibleOptionsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(o *Options){
		"no targets":         func(o *Options) { o.Targets = nil },
		"a target twice":     func(o *Options) { o.Targets = append(o.Targets, o.Targets...) },
		"65 targets":         func(o *Options) { o.Targets = manyTargets(65) },
		"policy":             func(o *Options) { o.Policy = "best" },
		"retry":              func(o *Options) { o.Retry = "always" },
		"connections":        func(o *Options) { o.MaxConns = 0 },
		"time-out":           func(o *Options) { o.Timeout = 0 },
		"health status":      func(o *Options) { o.Health = Health{"/", 1, 1, 1, 1, "2xx"} },
		"health path":        func(o *Options) { o.Health = Health{"/a b", 1, 1, 1, 1, "200"} },
		"health interval":    func(o *Options) { o.Health = Health{"/", 0, 1, 1, 1, "200"} },
		"health status back": func(o *Options) { o.Health = Health{"/", 1, 1, 1, 1, "399-200"} },
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

func TestUnixSocketIsATarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	shop := serveRaw(t, l, answerEach)
	p := newPool(t, options("unix:"+path))
	for i := range 3 {
		mustAnswer(t, p, fmt.Sprintf("/%d", i))
	}
	if st := p.Targets()[0]; st.Open != 1 {
		t.Errorf("connection was not reused: %+v", st)
	}
	shop.stop()
	if o, _ := sendFor(p, "POST", "/late"); o != proxy.NotSent {
		t.Errorf("closed socket: outcome %d", o)
	}
}

func TestNameIsLookedUp(t *testing.T) {
	shop := newRawShop(t, answerEach)
	mustAnswer(t, newPool(t, options("http://localhost:"+port(shop.Addr()))), "/")
}

// Idle connections are closed when they are old: the next request finds a new one.
func TestOldIdleConnectionIsClosed(t *testing.T) {
	shop := newRawShop(t, answerEach)
	p := newPool(t, options(shop.url()))
	mustAnswer(t, p, "/1")
	target := p.targets.Load().all[0]
	used := target.idle[0].idle
	target.reap(used + target.maxIdle - 1)
	if st := p.Targets()[0]; st.Idle != 1 {
		t.Errorf("closed too early: %+v", st)
	}
	target.reap(used + target.maxIdle)
	if st := p.Targets()[0]; st.Idle != 0 || st.Open != 0 {
		t.Errorf("not closed: %+v", st)
	}
	mustAnswer(t, p, "/2")
	target.idle[0].idle -= target.maxIdle // as if it had been used long ago
	mustAnswer(t, p, "/3")
	if n, most := shop.total(); n != 3 || most != 1 {
		t.Errorf("%d orders came, one %d times", n, most)
	}
}

// A target that goes finishes what it has; one that stays keeps its connections; and no request is
// lost in between.
func TestReplaceLosesNothing(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	old := newRawShop(t, func(v *visit) {
		head, _, _ := v.request()
		arrived <- struct{}{}
		<-leave
		v.say(ok(targetOf(head)))
		v.gone()
	})
	stays := newRawShop(t, answerEach)
	o := options(old.url(), stays.url())
	o.Policy = "first"
	p := newPool(t, o)
	under := make(chan proxy.Outcome)
	go func() { o, _ := sendFor(p, "POST", "/old"); under <- o }()
	<-arrived
	gone := p.targets.Load().all[0]
	if err := p.Replace([]string{stays.url()}); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, p, "/new")
	kept := p.targets.Load().all[0]
	if err := p.Replace([]string{"nonsense"}); err == nil || p.targets.Load().all[0] != kept {
		t.Errorf("a bad target changed something: %v", err)
	}
	if err := p.Replace([]string{old.url(), stays.url()}); err != nil || p.targets.Load().all[1] != kept {
		t.Errorf("a target that stays was made anew: %v", err)
	}
	close(leave)
	if o := <-under; o != proxy.Answered {
		t.Errorf("request under way: outcome %d", o)
	}
	if gone.open != 0 {
		t.Error("the removed target has kept a connection")
	}
}

func TestRequestsFlowWhileTargetsAreReplaced(t *testing.T) {
	a, b := newRawShop(t, answerEach), newRawShop(t, answerEach)
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
				if o, _ := sendFor(p, "POST", fmt.Sprintf("/%d/%d", w, i)); o != proxy.Answered {
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
		if err := p.Replace(urls); err != nil {
			t.Error(err)
		}
		mustAnswer(t, p, fmt.Sprintf("/main/%d", i))
	}
	close(stop)
	all.Wait()
}

func TestClosedPoolSendsNothing(t *testing.T) {
	shop := newRawShop(t, answerEach)
	p := newPool(t, options(shop.url()))
	mustAnswer(t, p, "/1")
	p.Close()
	if o, _ := sendFor(p, "POST", "/2"); o != proxy.NotSent || shop.count("/2") != 0 {
		t.Errorf("outcome %d", o)
	}
	if st := p.Targets()[0]; st.Open != 0 {
		t.Errorf("connections left: %+v", st)
	}
	if err := p.Replace([]string{shop.url()}); err == nil {
		t.Error("targets of a closed pool were replaced")
	}
	p.Close()
}
