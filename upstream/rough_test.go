package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/proxy"
)

// rough is a shop that says too much, too early, in pieces, at the very end of the time, and hangs up by halves.
func rough(limit time.Duration) func(v *visit) {
	return func(v *visit) {
		for {
			head, err := v.head()
			if err != nil {
				return
			}
			target, toHead := targetOf(head), strings.HasPrefix(head, "HEAD")
			answer := ok(target)
			if toHead {
				answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(target))
			}
			mood := rand.IntN(60)
			if mood == 0 { // before the body
				v.say(answer)
				return
			}
			if !v.body(head) {
				return
			}
			switch mood {
			case 1:
				v.say(answer + ok("poison"))
				v.gone()
				return
			case 2:
				v.say(answer)
				v.Conn.(*net.TCPConn).CloseWrite()
				v.gone()
				return
			case 3, 4: // about when a loop waits no longer
				time.Sleep(limit/2 - 150*time.Millisecond + time.Duration(rand.IntN(300))*time.Millisecond)
			case 5, 6: // about when nobody does
				time.Sleep(limit - 4*time.Millisecond + time.Duration(rand.IntN(60))*time.Millisecond)
			case 7:
				v.say(answer[:len(answer)-1])
				v.reset()
				return
			case 8:
				v.reset()
				return
			case 9:
				if toHead {
					break
				}
				v.say("HTTP/1.1 200 OK\r\n\r\n" + target)
				return
			case 10:
				v.say(strings.Replace(answer, "\r\n", "\r\nConnection: close\r\n", 1))
				return
			case 11:
				if !toHead {
					answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(target), target)
					v.say(answer)
					time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
					answer = "0\r\n\r\n"
				}
			case 14, 15, 16, 17:
				if toHead {
					break
				}
				body := strings.Repeat(target+" ", []int{1000, 10_000, 30_000, 200_000}[mood-14])
				if answer = ok(body); rand.IntN(2) == 0 {
					answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
				}
			case 12:
				for len(answer) > 1 {
					v.say(answer[:1])
					answer = answer[1:]
				}
			}
			v.say(answer)
			if mood == 13 {
				time.Sleep(time.Millisecond)
				return
			}
		}
	}
}

// body reads past the body that a head announces.
func (v *visit) body(head string) bool {
	for line := range strings.SplitSeq(head, "\r\n") {
		if l, found := strings.CutPrefix(line, "Content-Length: "); found {
			n := 0
			fmt.Sscan(l, &n)
			_, err := io.CopyN(io.Discard, v.r, int64(n))
			return err == nil
		}
	}
	if strings.Contains(head, "Transfer-Encoding: chunked") {
		_, err := v.chunks()
		return err == nil
	}
	return true
}

// visits sends requests of all kinds until there have been enough, each with a name of its own.
func (k *crowd) visits(w, many int) {
	var c *shopper
	leave := func() {
		if c != nil {
			c.Close()
			c = nil
		}
	}
	defer leave()
	for i := 0; i < many; {
		if c == nil {
			nc, err := net.Dial("tcp", k.addr)
			if err != nil {
				return // drained
			}
			_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
			c = shopperOf(nc)
		}
		type question struct{ method, target string }
		var asked []question
		var text bytes.Buffer
		last := false
		for range 1 + rand.IntN(2)*rand.IntN(4) {
			q := question{[]string{"GET", "POST", "POST", "HEAD"}[rand.IntN(4)], fmt.Sprintf("/%d/%d", w, i)}
			i++
			asked = append(asked, q)
			version, fields, body := "1.1", "", ""
			if q.method == "POST" {
				switch body = strings.Repeat("b", []int{0, 3, 5000, 40_000}[rand.IntN(4)]); rand.IntN(3) {
				case 0:
					fields += "Transfer-Encoding: chunked\r\n"
					if body != "" {
						body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
					} else {
						body = "0\r\n\r\n"
					}
				default:
					fields += fmt.Sprintf("Content-Length: %d\r\n", len(body))
				}
			}
			if !strings.Contains(fields, "chunked") && rand.IntN(6) == 0 {
				version = "1.0"
				fields += "Connection: keep-alive\r\n"
			}
			if rand.IntN(20) == 0 && version == "1.1" {
				fields += "Connection: close\r\n"
				last = true
			}
			fmt.Fprintf(&text, "%s %s HTTP/%s\r\nHost: shop\r\n%s\r\n%s", q.method, q.target, version, fields, body)
			if last {
				break
			}
		}
		for raw := text.Bytes(); len(raw) > 0; {
			n := len(raw)
			if rand.IntN(4) == 0 {
				n = 1 + rand.IntN(n)
			}
			if _, err := c.Write(raw[:n]); err != nil {
				break
			}
			if raw = raw[n:]; len(raw) > 0 && rand.IntN(4) == 0 {
				time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			}
		}
		switch rand.IntN(40) {
		case 0:
			leave()
			continue
		case 1:
			time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			c.Conn.(*net.TCPConn).SetLinger(0)
			leave()
			continue
		case 2:
			c.Conn.(*net.TCPConn).CloseWrite()
			last = true
		}
		if rand.IntN(20) == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		for _, q := range asked {
			status, body, closes, err := c.hear(q.method)
			if err != nil {
				k.cut.Add(1)
				last = true
				break
			}
			switch {
			case status == 200:
				k.answered.Add(1)
				if q.method != "HEAD" && strings.TrimSpace(strings.ReplaceAll(body, q.target+" ", "")) != "" && body != q.target {
					k.t.Errorf("%s %s got %.100q", q.method, q.target, body)
				}
			default:
				k.refused.Add(1)
				if status == 503 && k.came(q.target) != 0 && strings.Contains(body, "no_upstream") {
					k.t.Errorf("%s came, and is reported as not sent", q.target)
				}
			}
			if closes {
				last = true
				break
			}
		}
		if last {
			leave()
		}
	}
}

// crowd is all who visit a gate, and what they have heard.
type crowd struct {
	t                      *testing.T
	addr                   string
	shops                  []*rawShop
	answered, refused, cut atomic.Int64
}

func (k *crowd) came(target string) (n int) {
	for _, s := range k.shops {
		n += s.count(target)
	}
	return n
}

func shopperOf(c net.Conn) *shopper { return &shopper{c, bufio.NewReader(c)} }

func proxyTo(t *testing.T, p *Pool, e *everybody, before *proxy.Proxy) *proxy.Proxy {
	g, err := proxy.New(proxy.Options{
		Routes: []proxy.Route{{Name: "order", Match: "POST /", Gate: proxy.Limit}, {Name: "rest", Match: "/", Gate: proxy.Pass}},
		Shop:   p, Windows: e, Places: e, MaxBody: 1 << 20, Responses: proxy.Responses{Languages: []string{"en"}},
		RequestIDHeader: "X-Request-Id", Log: slog.New(slog.DiscardHandler), Before: before,
	})
	if err != nil {
		t.Error(err)
	}
	return g
}

// Shops and clients do everything at the worst time, while routes and targets are replaced, until a drain: nothing comes twice, every
// answer is the asker's own, and everything is given back.
func TestRoughShopsRoughClientsAndReloads(t *testing.T) {
	const limit = 800 * time.Millisecond
	k := &crowd{t: t}
	for range 2 {
		k.shops = append(k.shops, newRawShop(t, rough(limit)))
	}
	o := options(k.shops[0].url(), k.shops[1].url())
	o.ResponseTimeout, o.Timeout, o.IdleConnTimeout = limit, 2*limit, 50*time.Millisecond
	p := newPool(t, o)
	e := &everybody{}
	g := proxyTo(t, p, e, nil)
	s := proxy.NewServer(g, proxy.ServerOptions{MaxHeader: 16 << 10, WriteTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, Connections: e, Log: slog.New(slog.DiscardHandler)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	k.addr = ln.Addr().String()
	over := make(chan struct{})
	var reloads, all sync.WaitGroup
	reloads.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(15 * time.Millisecond):
			}
			g = proxyTo(t, p, e, g)
			s.Replace(g)
			if err := p.Replace([][]string{{k.shops[0].url()}, {k.shops[0].url(), k.shops[1].url()}, {k.shops[1].url()}}[n%3]); err != nil {
				t.Error(err)
			}
		}
	})
	for w := range 12 {
		all.Go(func() { k.visits(w, 50) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	if rand.IntN(2) == 0 {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
	} else {
		<-done
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Millisecond)
	defer cancel()
	cut := s.Drain(ctx)
	<-done
	close(over)
	reloads.Wait()
	t.Logf("%d answered, %d refused, %d cut; %d by the drain", k.answered.Load(), k.refused.Load(), k.cut.Load(), cut)
	for i, shop := range k.shops {
		if n, most := shop.total(); most > 1 {
			t.Errorf("shop %d: %d, one came %d times", i, n, most)
		}
	}
	for target := range k.shops[0].seen {
		if k.came(target) > 1 {
			t.Errorf("%s came to both", target)
		}
	}
	e.empty(t)
	if err := p.Replace([]string{k.shops[0].url(), k.shops[1].url()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all connections are given back", func() bool {
		for _, st := range p.Targets() {
			if st.InFlight != 0 || st.Open != st.Idle {
				return false
			}
		}
		return true
	})
}
