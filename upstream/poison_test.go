package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

// poisons are responses that leave something behind for the next exchange, if the connection is pooled.
var poisons = map[string]string{
	"surplus after counted":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + evil,
	"surplus after empty":     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + evil,
	"surplus after chunked":   chunkedHead + "2\r\nok\r\n0\r\n\r\n" + evil,
	"body after 204":          "HTTP/1.1 204 No Content\r\nContent-Length: 62\r\n\r\n" + evil,
	"body after 304":          "HTTP/1.1 304 Not Modified\r\nContent-Length: 62\r\n\r\n" + evil,
	"length and chunked":      status200 + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
	"chunked and length":      status200 + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + evil,
	"two lengths":             status200 + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok" + evil,
	"two different lengths":   status200 + "Content-Length: 0\r\nContent-Length: 2\r\n\r\nok" + evil,
	"101":                     "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + evil,
	"interim then two finals": "HTTP/1.1 103 Early Hints\r\n\r\n" + ok("ok") + evil,
	"close in capitals":       status200 + "Connection: Keep-Alive, CLOSE\r\nContent-Length: 2\r\n\r\nok",
	"close among others":      status200 + "Connection: x-a ,\tclose , x-b\r\nContent-Length: 2\r\n\r\nok",
	"close in a second line": status200 + "Connection: keep-alive\r\nConnection: close\r\n" +
		"Content-Length: 2\r\n\r\nok",
	"HTTP/1.0 with keep-alive":     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.0 chunked":             "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
	"bare LF ends the head":        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok" + evil,
	"folded length":                "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok" + evil,
	"space before the colon":       "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok" + evil,
	"chunk longer than it says":    chunkedHead + "2\r\nokok\r\n0\r\n\r\n" + evil,
	"chunk line ends in a bare LF": chunkedHead + "2\nok\r\n0\r\n\r\n" + evil,
	"chunk size with a sign":       chunkedHead + "+2\r\nok\r\n0\r\n\r\n" + evil,
	"chunk size overflows":         chunkedHead + "10000000000000002\r\nok\r\n0\r\n\r\n" + evil,
}

// What the upstream wrote too much for one client is never another client's response.
func TestTransport_SurplusBytesNeverReachAnotherRequest(t *testing.T) {
	for name, poison := range poisons {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				t.Parallel()
				req := newPage("/first")
				req.Whole = !stream
				victimised(t, func(v *visit) { v.request(); v.reply(poison); v.waitClosed() }, func(p *Pool) {
					sendAndRead(p, req)
				})
			})
		}
	}
}

// victimised spoils the first connection, runs first, and checks that later requests get their own responses.
func victimised(t *testing.T, spoil func(v *visit), first func(p *Pool)) {
	t.Helper()
	server := newRawServer(t, func(v *visit) {
		if v.n > 0 {
			echo(v)
			return
		}
		spoil(v)
	})
	p := newPool(t, options(server.url()))
	first(p)
	for _, victim := range []string{"/victim", "/victim2"} {
		mustAnswer(t, p, victim)
	}
}

// What the upstream writes while the connection is idle makes it useless.
func TestTransport_BytesOnAnIdleConnectionReachNoRequest(t *testing.T) {
	step := make(chan struct{})
	victimised(t, func(v *visit) {
		v.request()
		v.reply(ok("first"))
		<-step
		v.reply(evil)
		step <- struct{}{}
		v.waitClosed()
	}, func(p *Pool) {
		if o, body := sendAndRead(p, newPage("/first")); o != Answered || body != "first" {
			t.Fatalf("%v, body %q", o, body)
		}
		step <- struct{}{}
		<-step
	})
}

// A response to HEAD has no body; an upstream that sends one all the same has spoiled the connection.
func TestTransport_BodyAfterHeadReachesNoRequest(t *testing.T) {
	victimised(t, func(v *visit) {
		v.request()
		v.reply("HTTP/1.1 200 OK\r\nContent-Length: 62\r\n\r\n" + evil)
		v.waitClosed()
	}, func(p *Pool) {
		outcome, resp := sendOrder(p, "HEAD", "/first")
		if outcome != Answered || resp.Header.ContentLength() != 62 || len(resp.Body()) != 0 {
			t.Fatalf("%v, length %d, body %q", outcome, resp.Header.ContentLength(), resp.Body())
		}
	})
}

// A stream that is closed half-way takes its connection with it, whether some of the body waits on the connection or
// all that came so far was read.
func TestTransport_AbandonedStreamClosesItsConnection(t *testing.T) {
	const size, half = 2 << 20, 10 << 10
	for name, read := range map[string]int{"at once": 0, "in the middle": 1000, "where it pauses": half} {
		t.Run(name, func(t *testing.T) {
			victimised(t, func(v *visit) {
				v.request()
				v.reply(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", half)))
				v.waitClosed()
			}, func(p *Pool) {
				resp := new(fasthttp.Response)
				if o := p.Send(newPage("/big"), resp); o != Answered || !resp.IsBodyStream() {
					t.Fatalf("%v, stream %v", o, resp.IsBodyStream())
				}
				s := resp.BodyStream()
				closed := 0
				s.(interface{ OnEnd(func(bool)) }).OnEnd(func(bool) { closed++ })
				if _, err := io.ReadFull(s, make([]byte, read)); err != nil {
					t.Fatal(err)
				}
				checkConns(t, p, 1, 0)
				resp.CloseBodyStream()
				s.(io.Closer).Close()
				checkConns(t, p, 0, 0)
				if closed != 1 {
					t.Errorf("OnEnd ran %d times", closed)
				}
				if n, err := s.Read(make([]byte, 10)); n != 0 || err == nil {
					t.Errorf("read %d bytes after closing, error %v", n, err)
				}
			})
		})
	}
}
