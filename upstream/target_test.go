package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

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

// tlsShop is net/http's server, whose certificate is for example.com.
func tlsShop(t *testing.T, tune func(s *httptest.Server)) (*httptest.Server, *x509.CertPool) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Sni", r.TLS.ServerName)
		fmt.Fprintf(w, "%s %s %d", r.Proto, r.URL.Path, len(body))
	}))
	tune(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

func TestTLSConnectionIsVerifiedAndReused(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		shop, roots := tlsShop(t, func(s *httptest.Server) {
			s.TLS = &tls.Config{MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}}
		})
		o := options(shop.URL)
		o.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
		p := newPool(t, o)
		for i := range 3 {
			outcome, resp := sendFor(p, "POST", fmt.Sprintf("/%d", i))
			if want := fmt.Sprintf("HTTP/1.1 /%d 2", i); outcome != proxy.Answered || string(resp.Body()) != want {
				t.Fatalf("outcome %d, body %q, want %q", outcome, resp.Body(), want)
			}
			if sni := string(resp.Header.Peek("X-Sni")); sni != "example.com" {
				t.Errorf("server name %q", sni)
			}
		}
		if st := p.Targets()[0]; st.Open != 1 {
			t.Errorf("connection was not reused: %+v", st)
		}
		big := proxy.Outgoing{Line: []byte("POST /big HTTP/1.1\r\n"), Fields: []byte("Content-Length: 1000000\r\n"), Body: make([]byte, 1000000)}
		resp := new(fasthttp.Response)
		if o := p.Send(&big, resp); o != proxy.Answered || !strings.HasSuffix(string(resp.Body()), " 1000000") {
			t.Errorf("large body: outcome %d, %q", o, resp.Body())
		}

		o.TLS = nil // the system's roots do not know this shop
		if outcome, _ := sendFor(newPool(t, o), "POST", "/"); outcome != proxy.NotSent {
			t.Errorf("unknown authority: outcome %d", outcome)
		}
		o.TLS = &tls.Config{RootCAs: roots, ServerName: "other.example"}
		if outcome, _ := sendFor(newPool(t, o), "POST", "/"); outcome != proxy.NotSent {
			t.Errorf("wrong name: outcome %d", outcome)
		}
	}
}

// Under TLS what the shop said too much may be hidden in the TLS layer, whole or cut.
func TestTLSSurplusIsNobodysAnswer(t *testing.T) {
	cert, roots := certificate(t)
	for name, poison := range map[string]func(c *tls.Conn, raw net.Conn){
		"same record":  func(c *tls.Conn, _ net.Conn) { io.WriteString(c, ok("first")+evil) },
		"next record":  func(c *tls.Conn, _ net.Conn) { twoRecords(c, ok("first"), evil, 0) },
		"cut record":   func(c *tls.Conn, _ net.Conn) { twoRecords(c, ok("first"), evil, 10) },
		"cut header":   func(c *tls.Conn, _ net.Conn) { twoRecords(c, ok("first"), evil, len(evil)+40) },
		"close notify": func(c *tls.Conn, _ net.Conn) { io.WriteString(c, ok("first")); c.CloseWrite() },
		"plain bytes":  func(c *tls.Conn, raw net.Conn) { io.WriteString(c, ok("first")); io.WriteString(raw, evil) },
	} {
		t.Run(name, func(t *testing.T) {
			poisoned := make(chan struct{}, 1)
			shop := newRawShop(t, func(v *visit) {
				raw := &joined{Conn: v.Conn}
				c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
				v.Conn, v.r = c, newReader(c)
				if v.n > 0 {
					answerEach(v)
					return
				}
				v.request()
				poison(c, raw)
				poisoned <- struct{}{}
				v.gone()
			})
			o := options("https://" + shop.Addr().String())
			o.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
			p := newPool(t, o)
			if outcome, resp := sendFor(p, "POST", "/first"); outcome != proxy.Answered || string(resp.Body()) != "first" {
				t.Fatalf("outcome %d, body %q", outcome, resp.Body())
			}
			<-poisoned
			mustAnswer(t, p, "/victim")
		})
	}
}

// joined is a connection that can collect writes, and leave out the end of them.
type joined struct {
	net.Conn
	collect bool
	held    []byte
}

func (j *joined) Write(p []byte) (int, error) {
	if j.collect {
		j.held = append(j.held, p...)
		return len(p), nil
	}
	return j.Conn.Write(p)
}

// twoRecords writes two TLS records in one packet, without the last cut bytes.
func twoRecords(c *tls.Conn, a, b string, cut int) {
	j := c.NetConn().(*joined)
	j.collect = true
	io.WriteString(c, a)
	first := len(j.held)
	io.WriteString(c, b)
	j.collect = false
	end := max(len(j.held)-cut, first+3) // at least a part of the second one's header
	j.Conn.Write(j.held[:end])
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates[0], roots
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
