package upstream

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// kinds are the requests that the proxy makes. Each has its own target to know it by.
var kinds = map[string]func() *Request{
	"order":  func() *Request { return newOrder("POST", "/kind") },
	"page":   func() *Request { return newRequest("GET", "/kind") },
	"stream": func() *Request { return newPage("/kind") },
	"put":    func() *Request { return newOrder("PUT", "/kind") }, // idempotent, and not repeated either
	"upload": func() *Request {
		r := newRequest("POST", "/kind")
		r.Whole = false
		return r.withStream(io.LimitReader(zeros{}, 1<<20), 1<<20)
	},
}

// behaviour is what an upstream does on a connection, and what must come of a request that meets it.
type behaviour struct {
	serve func(v *visit)
	want  []Outcome
	keeps bool // the connection is used again
}

var (
	answered = []Outcome{Answered}
	broken   = []Outcome{Broken}
	timedOut = []Outcome{TimedOut}
)

// answers is a behaviour that reads the request, responds and reads on.
func answers(response string, keeps bool) behaviour {
	return behaviour{func(v *visit) { v.request(); v.reply(response); echo(v) }, answered, keeps}
}

// breaksOff is one that reads the request, writes a part of a response, and closes; or resets, or hangs.
func breaksOff(part string) behaviour {
	return behaviour{func(v *visit) { v.request(); v.reply(part) }, broken, false}
}

func resets(part string) behaviour {
	return behaviour{func(v *visit) { v.request(); v.reply(part); v.reset() }, broken, false}
}

func hangs(part string) behaviour {
	return behaviour{func(v *visit) { v.request(); v.reply(part); v.waitClosed() }, timedOut, false}
}

const (
	halfHead  = "HTTP/1.1 200 OK\r\nContent-Le"
	halfBody  = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"
	http10    = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nfine"
	halfChunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123"
)

var behaviours = map[string]behaviour{
	"answers":                     answers(ok("fine"), true),
	"answers 500":                 answers("HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", true),
	"answers in chunks":           answers(chunkedHead+"4\r\nfine\r\n0\r\n\r\n", true),
	"answers after interim ones":  answers("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 H\r\n\r\n"+ok("fine"), true),
	"answers, and will close":     answers(status200+"Connection: Close\r\nContent-Length: 4\r\n\r\nfine", false),
	"answers as HTTP/1.0":         answers(http10, false),
	"answers too much":            answers(ok("fine")+evil, false),
	"answers until it closes":     {func(v *visit) { v.request(); v.reply(status200 + "\r\nfine") }, answered, false},
	"answers 101 unasked":         breaksOff("HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n"),
	"closes after one byte":       {func(v *visit) { v.r.ReadByte() }, broken, false},
	"closes in the request head":  {func(v *visit) { v.r.ReadString('\n') }, broken, false},
	"closes after the request":    breaksOff(""),
	"closes in the status line":   breaksOff("HTTP/1.1 2"),
	"closes in the head":          breaksOff(halfHead),
	"closes in the body":          breaksOff(halfBody),
	"closes in a chunk":           breaksOff(halfChunk),
	"closes before the last CRLF": breaksOff(chunkedHead + "4\r\nfine\r\n0\r\n"),
	"closes after interim ones":   breaksOff("HTTP/1.1 100 Continue\r\n\r\n"),
	"answers garbage":             breaksOff("SSH-2.0-OpenSSH\r\n\r\n"),
	"resets after one byte":       {func(v *visit) { v.r.ReadByte(); v.reset() }, broken, false},
	"resets after the request":    resets(""),
	"resets in the head":          resets(halfHead),
	"resets in the body":          resets(halfBody),
	"hangs":                       hangs(""),
	"hangs in the head":           hangs(halfHead),
	"hangs in the body":           hangs(halfBody),
}

type listener func(t *testing.T, serve func(v *visit)) (*rawServer, Options)

// upstreamKinds are the ways in which a connection to an upstream is made.
var upstreamKinds = map[string]listener{
	"tcp": func(t *testing.T, serve func(v *visit)) (*rawServer, Options) {
		s := newRawServer(t, serve)
		return s, options(s.url(), "http://localhost:"+port(s.Addr())) // the second is not tried once a byte was written
	},
	"wrapped": func(t *testing.T, serve func(v *visit)) (*rawServer, Options) {
		s := newRawServer(t, serve)
		o := options(s.url())
		o.Wrap = wrap
		return s, o
	},
	"unix": func(t *testing.T, serve func(v *visit)) (*rawServer, Options) {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return serveRaw(t, l, serve), options("unix:" + path)
	},
	"tls": func(t *testing.T, serve func(v *visit)) (*rawServer, Options) {
		cert, roots := certificate(t)
		s := newRawServer(t, func(v *visit) {
			c := tls.Server(v.Conn, &tls.Config{Certificates: []tls.Certificate{cert}})
			v.Conn, v.r = c, bufio.NewReader(c)
			defer c.Close()
			serve(v)
		})
		o := options("https://" + s.Addr().String())
		o.TLS = TLS{CA: roots, ServerName: "example.com"}
		return s, o
	},
}

// Whatever an upstream does to whatever request: the outcome is true, the request is written at most once, and the
// connection is used again only where nothing about it is in doubt.
func TestTransport_Contract(t *testing.T) {
	for via, listen := range upstreamKinds {
		for name, b := range behaviours {
			for kind, request := range kinds {
				for _, used := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/used=%v", via, name, kind, used), func(t *testing.T) {
						t.Parallel()
						checkContract(t, listen, b, request(), used)
					})
				}
			}
		}
	}
}

func checkContract(t *testing.T, listen listener, b behaviour, req *Request, used bool) {
	server, o := listen(t, func(v *visit) {
		if v.n > 0 {
			echo(v)
			return
		}
		if used {
			v.request()
			v.reply(ok("/warm"))
		}
		b.serve(v)
	})
	o.Policy = "first"
	p := newPool(t, o)
	if used {
		mustAnswer(t, p, "/warm")
	}
	first := p.targets.Load().all[0]
	if usual := first.settings.Load(); slices.Equal(b.want, timedOut) {
		short := *usual
		short.timeouts = timeouts{response: 120 * time.Millisecond, total: 400 * time.Millisecond}
		first.settings.Store(&short)
		defer func() { first.settings.Store(usual); mustAnswer(t, p, "/victim") }()
	} else {
		defer mustAnswer(t, p, "/victim")
	}
	outcome, _ := sendAndRead(p, req)
	if !slices.Contains(b.want, outcome) && !(outcome == Broken && !req.Whole && slices.Equal(b.want, timedOut)) {
		t.Errorf("%v, want %v", outcome, b.want)
	}
	if n := server.count("/kind"); n > 1 || n == 1 && outcome == NotSent {
		t.Errorf("%v, and the upstream read it %d times", outcome, n)
	}
	idle := 0
	if b.keeps {
		idle = 1
	}
	checkConns(t, p, 0, idle)
}

// A pooled connection that has ended, or on which bytes wait, carries no request: it is found out before a byte is
// written, and the request is sent on a new one, once, without counting as a retry.
func TestTransport_StaleConnectionIsFoundBeforeWriting(t *testing.T) {
	for via, listen := range upstreamKinds {
		for name, end := range map[string]func(v *visit){
			"closed":      func(*visit) {},
			"reset":       func(v *visit) { v.reset() },
			"half closed": func(v *visit) { v.Conn.(interface{ CloseWrite() error }).CloseWrite(); v.waitClosed() },
			"spoken":      func(v *visit) { v.reply(evil); v.waitClosed() },
		} {
			for kind, request := range kinds {
				t.Run(fmt.Sprintf("%s/%s/%s", via, name, kind), func(t *testing.T) {
					t.Parallel()
					server, o := listen(t, func(v *visit) {
						if v.n > 0 {
							echo(v)
							return
						}
						v.request()
						v.reply(ok("/warm"))
						end(v)
					})
					o.Retry, o.Policy = "off", "first"
					p := newPool(t, o)
					mustAnswer(t, p, "/warm")
					only := p.targets.Load().all[0]
					testkit.Eventually(t, "the connection is stale", func() bool {
						return len(only.idle) == 0 ||
							!only.idle[0].fresh()
					})
					if outcome, body := sendAndRead(p, request()); outcome != Answered || body != "/kind" {
						t.Errorf("%v, body %q", outcome, body)
					}
					if n := server.count("/kind"); n != 1 {
						t.Errorf("the upstream read it %d times", n)
					}
					checkConns(t, p, 0, 1)
					if n := held(p); n != 0 {
						t.Errorf("%d connections are counted as held", n)
					}
				})
			}
		}
	}
}

// However many idle connections have ended, a request finds one that is good, or opens it, without a retry.
func TestTransport_ManyStaleConnectionsCostNoRequest(t *testing.T) {
	const many = maxStale + 2
	arrived, answer, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := newRawServer(t, func(v *visit) {
		if v.n < many {
			v.request()
			arrived <- struct{}{}
			<-answer
			v.reply(ok("early"))
			<-end
			return
		}
		echo(v)
	})
	o := options(server.url())
	o.Retry = "off"
	p := newPool(t, o)
	var all sync.WaitGroup
	for range many {
		all.Go(func() { sendOrder(p, "GET", "/early") })
		<-arrived
	}
	close(answer)
	all.Wait()
	checkConns(t, p, 0, many)
	close(end)
	for _, c := range p.targets.Load().all[0].idle {
		testkit.Eventually(t, "the connection is stale", func() bool { return !c.fresh() })
	}
	mustAnswer(t, p, "/late")
	checkConns(t, p, 0, 1)
}

// A request that the socket accepts only in pieces is written to its end all the same, on new connections and used
// ones.
func TestTransport_ShortWritesArriveWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s") // what such a socket accepts at once is known better than what TCP does
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := serveRaw(t, l, echo)
	o := options("unix:" + path)
	o.Wrap = func(c net.Conn) net.Conn {
		if err := c.(*net.UnixConn).SetWriteBuffer(1); err != nil { // the kernel makes it as small as it can
			t.Error(err)
		}
		return c
	}
	p := newPool(t, o)
	for range 3 {
		req := newRequest("POST", "/whole").withBody(make([]byte, smallRequest-1<<10))
		resp := new(fasthttp.Response)
		if o := p.Send(req, resp); o != Answered || string(resp.Body()) != "/whole" {
			t.Fatalf("%v, body %q", o, resp.Body())
		}
	}
	if n := server.count("/whole"); n != 3 {
		t.Errorf("the upstream read %d requests", n)
	}
	checkConns(t, p, 0, 1)
}
