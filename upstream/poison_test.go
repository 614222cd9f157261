package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

// poisons are answers that leave something behind for the next exchange, if the connection is pooled.
var poisons = map[string]string{
	"surplus after counted":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + evil,
	"surplus after empty":          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + evil,
	"surplus after chunked":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + evil,
	"body after 204":               "HTTP/1.1 204 No Content\r\nContent-Length: 62\r\n\r\n" + evil,
	"body after 304":               "HTTP/1.1 304 Not Modified\r\nContent-Length: 62\r\n\r\n" + evil,
	"length and chunked":           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
	"chunked and length":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + evil,
	"two lengths":                  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok" + evil,
	"two different lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 2\r\n\r\nok" + evil,
	"101":                          "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + evil,
	"interim then two finals":      "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + evil,
	"close in capitals":            "HTTP/1.1 200 OK\r\nConnection: Keep-Alive, CLOSE\r\nContent-Length: 2\r\n\r\nok",
	"close among others":           "HTTP/1.1 200 OK\r\nConnection: x-a ,\tclose , x-b\r\nContent-Length: 2\r\n\r\nok",
	"close in a second line":       "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.0 with keep-alive":     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.0 chunked":             "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
	"bare LF ends the head":        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok" + evil,
	"folded length":                "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok" + evil,
	"space before the colon":       "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok" + evil,
	"chunk longer than it says":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokok\r\n0\r\n\r\n" + evil,
	"chunk line ends in a bare LF": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n" + evil,
	"chunk size with a sign":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n" + evil,
	"chunk size overflows":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\nok\r\n0\r\n\r\n" + evil,
}

// Whatever the shop said to one shopper, the next one gets the answer to his own request.
func TestNoAnswerReachesAnotherShopper(t *testing.T) {
	for name, poison := range poisons {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				t.Parallel()
				// The first connection is poisoned for good, as by a shop that knows no better: if a second
				// request came on it, its answer would be late by one.
				shop := newRawShop(t, func(v *visit) {
					if v.n > 0 {
						answerEach(v)
						return
					}
					v.request()
					v.say(poison)
					v.gone()
				})
				o := options(shop.url())
				o.ResponseTimeout = 2 * time.Second
				p := newPool(t, o)
				sendAndClose(p, stream)
				for _, victim := range []string{"/victim", "/victim2"} {
					mustAnswer(t, p, victim)
				}
			})
		}
	}
}

// sendAndClose sends one request and does what fasthttp's server would with its answer.
func sendAndClose(p *Pool, stream bool) (proxy.Outcome, string) {
	out := orderFor("GET", "/first")
	out.Stream = stream
	resp := new(fasthttp.Response)
	outcome := p.Send(out, resp)
	if !resp.IsBodyStream() {
		return outcome, string(resp.Body())
	}
	body, err := io.ReadAll(resp.BodyStream())
	resp.CloseBodyStream()
	if err != nil {
		outcome = proxy.Broken
	}
	return outcome, string(body)
}

// What the shop says unasked, while the connection is idle, makes it useless.
func TestUnaskedAnswerIsNobodysAnswer(t *testing.T) {
	said := make(chan struct{})
	shop := newRawShop(t, func(v *visit) {
		if v.n > 0 {
			answerEach(v)
			return
		}
		v.request()
		v.say(ok("first"))
		<-said
		v.say(evil)
		said <- struct{}{}
		v.gone()
	})
	p := newPool(t, options(shop.url()))
	if o, body := sendAndClose(p, false); o != proxy.Answered || body != "first" {
		t.Fatalf("outcome %d, body %q", o, body)
	}
	said <- struct{}{}
	<-said
	mustAnswer(t, p, "/victim")
}

// An answer to HEAD has no body; a shop that sends one all the same has spoiled the connection.
func TestBodyAfterHeadIsNobodysAnswer(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		if v.n > 0 {
			answerEach(v)
			return
		}
		v.request()
		v.say("HTTP/1.1 200 OK\r\nContent-Length: 62\r\n\r\n" + evil)
		v.gone()
	})
	p := newPool(t, options(shop.url()))
	outcome, resp := sendFor(p, "HEAD", "/first")
	if outcome != proxy.Answered || resp.Header.ContentLength() != 62 || len(resp.Body()) != 0 {
		t.Fatalf("outcome %d, length %d, body %q", outcome, resp.Header.ContentLength(), resp.Body())
	}
	mustAnswer(t, p, "/victim")
}

// A stream that is given up half-way takes its connection with it: whether some of the body waits on
// the connection, or all that came so far was read.
func TestAbandonedStreamIsNobodysAnswer(t *testing.T) {
	const size, half = 256 << 10, 10 << 10
	for name, read := range map[string]int{"at once": 0, "in the middle": 1000, "where it pauses": half} {
		t.Run(name, func(t *testing.T) {
			shop := newRawShop(t, func(v *visit) {
				if v.n > 0 {
					answerEach(v)
					return
				}
				v.request()
				v.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", half)))
				v.gone()
			})
			p := newPool(t, options(shop.url()))
			out := orderFor("GET", "/big")
			out.Stream, out.Order = true, false
			resp := new(fasthttp.Response)
			if o := p.Send(out, resp); o != proxy.Answered || !resp.IsBodyStream() {
				t.Fatalf("outcome %d, stream %v", o, resp.IsBodyStream())
			}
			s := resp.BodyStream()
			if _, err := io.ReadFull(s, make([]byte, read)); err != nil {
				t.Fatal(err)
			}
			if st := p.Targets()[0]; st.Open != 1 || st.InFlight != 1 {
				t.Errorf("before closing: %+v", st)
			}
			resp.CloseBodyStream()
			if st := p.Targets()[0]; st.Open != 0 || st.InFlight != 0 {
				t.Errorf("after closing: %+v", st)
			}
			mustAnswer(t, p, "/victim")
			if n, err := s.Read(make([]byte, 10)); n != 0 || err == nil {
				t.Errorf("read %d bytes after closing, error %v", n, err)
			}
		})
	}
}
