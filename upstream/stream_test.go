package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// Each event goes on when it comes. The shop says the second only after the client has read the first.
func TestStreamIsNotHeldBack(t *testing.T) {
	const large = 100 << 10
	for name, c := range map[string]struct{ head, first, second string }{
		"chunked":     {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\none\r\n", "3\r\ntwo\r\n0\r\n\r\n"},
		"until close": {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", "one", "two"},
		"counted":     {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", large), "one", "two" + strings.Repeat(".", large-6)},
	} {
		t.Run(name, func(t *testing.T) {
			heard := make(chan struct{})
			shop := newRawShop(t, func(v *visit) {
				v.request()
				v.say(c.head)
				<-heard
				v.say(c.first)
				<-heard
				v.say(c.second)
			})
			client := serveThrough(t, newPool(t, options(shop.url())))
			io.WriteString(client, "GET /events HTTP/1.1\r\nHost: h\r\n\r\n")
			r := bufio.NewReader(client)
			for line := ""; line != "\r\n"; {
				var err error
				if line, err = r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range []string{"one", "two"} {
				heard <- struct{}{}
				var got []byte
				for !bytes.Contains(got, []byte(want)) {
					b, err := r.ReadByte()
					if err != nil {
						t.Fatalf("%v after %q", err, got)
					}
					got = append(got, b)
				}
			}
		})
	}
}

func TestWhatComesWithTheHeadLeavesWithIt(t *testing.T) {
	heard := make(chan struct{})
	shop := newRawShop(t, func(v *visit) {
		v.request()
		v.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
		<-heard
		v.say("0\r\n\r\n")
	})
	client := serveThrough(t, newPool(t, options(shop.url())))
	io.WriteString(client, "GET /events HTTP/1.1\r\nHost: h\r\n\r\n")
	room := make([]byte, 4096) // a pipe gives one write at a time
	if n, err := client.Read(room); err != nil || !strings.HasSuffix(string(room[:n]), "3\r\none\r\n") {
		t.Errorf("the first write is %q, %v", room[:n], err)
	}
	close(heard)
	if n, err := io.ReadFull(client, room[:5]); err != nil || string(room[:n]) != "0\r\n\r\n" {
		t.Errorf("then comes %q, %v", room[:n], err)
	}
}

// serveThrough puts fasthttp's server before p, and returns a client's connection to it.
func serveThrough(t *testing.T, p *Pool) net.Conn {
	s := &fasthttp.Server{
		Logger:        log.New(io.Discard, "", 0),
		NoDefaultDate: true, NoDefaultServerHeader: true, NoDefaultContentType: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			out := orderFor("GET", string(ctx.Path()))
			out.Stream, out.Order = true, false // what is gated is stored first
			if o := p.Send(out, &ctx.Response); o != proxy.Answered {
				ctx.SetStatusCode(502)
			}
		},
	}
	c, served := net.Pipe()
	done := make(chan struct{})
	go func() { s.ServeConn(served); served.Close(); close(done) }()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { c.Close(); <-done })
	return c
}

// A stream that breaks off must look broken to the client too, never complete.
func TestCutStreamIsCutForTheClient(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		v.request()
		v.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n5\r\ntw")
	})
	client := serveThrough(t, newPool(t, options(shop.url())))
	io.WriteString(client, "GET /cut HTTP/1.1\r\nHost: h\r\n\r\n")
	all, _ := io.ReadAll(client)
	if s := string(all); !strings.Contains(s, "one") || strings.Contains(s, "\r\n0\r\n") {
		t.Errorf("the client read %q", s)
	}
}

// Who cannot take chunks can still take a length: an answer that says it is handed on however large it is, and not held
// in memory.
func TestAnswerOfKnownLengthIsHandedOnToAnybody(t *testing.T) {
	const size = 9 << 20 // more than is read whole
	for name, c := range map[string]struct {
		head string
		want proxy.Outcome
	}{
		"counted":     {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size), proxy.Answered},
		"until close": {"HTTP/1.1 200 OK\r\n\r\n", proxy.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			shop := newRawShop(t, func(v *visit) {
				v.request()
				v.say(c.head)
				v.say(strings.Repeat("x", size))
			})
			out, resp := orderFor("GET", "/large"), new(fasthttp.Response)
			if o := newPool(t, options(shop.url())).Send(out, resp); o != c.want {
				t.Fatalf("outcome %d, want %d", o, c.want)
			}
			if c.want != proxy.Answered {
				return
			}
			defer resp.CloseBodyStream()
			if n, err := io.Copy(io.Discard, resp.BodyStream()); n != size || err != nil {
				t.Errorf("%d bytes of %d: %v", n, size, err)
			}
		})
	}
}
