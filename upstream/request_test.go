package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// The shop reads exactly Line, Host, Fields and body, and nothing that was added.
func TestRequestIsWrittenAsGiven(t *testing.T) {
	heads := make(chan string, 1)
	bodies := make(chan string, 1)
	shop := newRawShop(t, func(v *visit) {
		for {
			head, body, err := v.request()
			if err != nil {
				return
			}
			heads <- head
			bodies <- body
			v.say(ok(""))
		}
	})
	p := newPool(t, options(shop.url()))
	for _, size := range []int{0, 1, 100, smallRequest, smallRequest + 1, 3*piece + 7} {
		body := bytes.Repeat([]byte("b"), size)
		counted := fmt.Sprintf("Cookie: a\r\nCookie: b\r\nContent-Length: %d\r\n", size)
		for _, out := range []proxy.Outgoing{
			{Host: []byte("shop.example"), Fields: []byte(counted), Body: body},
			{Fields: []byte(counted), BodyStream: bytes.NewReader(body), BodyLength: int64(size)},
			{Fields: []byte("Transfer-Encoding: chunked\r\n"), BodyStream: iotestOneAndHalf{bytes.NewReader(body)}, BodyLength: -1},
		} {
			out.Line = []byte("POST /x?y=1 HTTP/1.1\r\n")
			if o := p.Send(&out, new(fasthttp.Response)); o != proxy.Answered {
				t.Fatalf("%d bytes: outcome %d", size, o)
			}
			if st := p.Targets()[0]; st.Idle != 1 {
				t.Errorf("%d bytes: connection was not kept", size)
			}
			host := string(out.Host)
			if host == "" {
				host = shop.Addr().String()
			}
			want := "POST /x?y=1 HTTP/1.1\r\nHost: " + host + "\r\n" + string(out.Fields) + "\r\n"
			if got := <-heads; got != want {
				t.Errorf("head %q\nwant %q", got, want)
			}
			if got := <-bodies; got != string(body) {
				t.Errorf("%d bytes: body differs, %d bytes came", size, len(got))
			}
		}
	}
}

// iotestOneAndHalf returns odd pieces, so that chunks of several sizes are written.
type iotestOneAndHalf struct{ r io.Reader }

func (o iotestOneAndHalf) Read(p []byte) (int, error) { return o.r.Read(p[:len(p)/2+1]) }

// A shop that refuses a body answers before it has read it. That answer is delivered, whether the shop
// closes, stops reading or reads on; and the connection is not used again.
func TestEarlyAnswerIsDelivered(t *testing.T) {
	const refusal = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"
	for name, end := range map[string]func(v *visit, leave chan struct{}){
		"and stops reading": func(_ *visit, leave chan struct{}) { <-leave },
		"and closes":        func(*visit, chan struct{}) {},
		"and reads on":      func(v *visit, _ chan struct{}) { v.gone() },
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/streamed=%v", name, streamed), func(t *testing.T) {
				leave := make(chan struct{})
				shop := newRawShop(t, func(v *visit) {
					v.head()
					v.say(refusal)
					end(v, leave)
				})
				t.Cleanup(func() { close(leave) })
				p := newPool(t, options(shop.url()))
				const size = 32 << 20 // more than the kernel's buffers take
				out := proxy.Outgoing{Line: []byte("POST /upload HTTP/1.1\r\n"), Fields: []byte(fmt.Sprintf("Content-Length: %d\r\n", size))}
				if streamed {
					out.BodyStream, out.BodyLength = io.LimitReader(zeros{}, size), size
				} else {
					out.Body = make([]byte, size)
				}
				resp := new(fasthttp.Response)
				if o := p.Send(&out, resp); o != proxy.Answered || resp.StatusCode() != 413 || string(resp.Body()) != "big" {
					t.Errorf("outcome %d, status %d, body %q", o, resp.StatusCode(), resp.Body())
				}
				if st := p.Targets()[0]; st.Open != 0 {
					t.Errorf("connection was kept: %+v", st)
				}
				if st := p.Targets()[0]; st.InFlight != 0 {
					t.Errorf("still in flight: %+v", st)
				}
			})
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// An interim answer in the middle of an upload does not end it.
func TestInterimAnswerDoesNotCutTheBody(t *testing.T) {
	const size = 2 * piece
	shop := newRawShop(t, func(v *visit) {
		v.say("HTTP/1.1 102 Processing\r\n\r\n")
		head, body, err := v.request()
		if err == nil && len(body) == size {
			v.say(ok(targetOf(head)))
		}
	})
	p := newPool(t, options(shop.url()))
	out := proxy.Outgoing{Line: []byte("POST /up HTTP/1.1\r\n"), Fields: []byte(fmt.Sprintf("Content-Length: %d\r\n", size)), Body: make([]byte, size)}
	resp := new(fasthttp.Response)
	if o := p.Send(&out, resp); o != proxy.Answered || string(resp.Body()) != "/up" {
		t.Errorf("outcome %d, body %q", o, resp.Body())
	}
}

// A client that breaks off its upload leaves an unknown outcome and a closed connection.
func TestCutUploadIsBroken(t *testing.T) {
	for _, length := range []int64{-1, 100} {
		shop := newRawShop(t, func(v *visit) {
			v.request()
			v.say(ok("never"))
		})
		p := newPool(t, options(shop.url()))
		fields := "Transfer-Encoding: chunked\r\n"
		if length >= 0 {
			fields = "Content-Length: 100\r\n"
		}
		out := proxy.Outgoing{
			Line: []byte("POST /up HTTP/1.1\r\n"), Fields: []byte(fields),
			BodyStream: io.MultiReader(strings.NewReader("12345"), failing{}), BodyLength: length,
		}
		if o := p.Send(&out, new(fasthttp.Response)); o != proxy.Broken {
			t.Errorf("length %d: outcome %d", length, o)
		}
		if st := p.Targets()[0]; st.Open != 0 {
			t.Errorf("length %d: connection was kept: %+v", length, st)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("client went") }

// A body stream that is shorter than it said is cut, one that is longer is read only so far.
func TestBodyStreamIsHeldToItsLength(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		for {
			_, body, err := v.request()
			if err != nil {
				return
			}
			v.say(ok(body))
		}
	})
	p := newPool(t, options(shop.url()))
	send := func(s string) (proxy.Outcome, string) {
		resp := new(fasthttp.Response)
		o := p.Send(&proxy.Outgoing{
			Line: []byte("POST /up HTTP/1.1\r\n"), Fields: []byte("Content-Length: 4\r\n"),
			BodyStream: strings.NewReader(s), BodyLength: 4,
		}, resp)
		return o, string(resp.Body())
	}
	if o, body := send("1234GET /evil HTTP/1.1\r\n\r\n"); o != proxy.Answered || body != "1234" {
		t.Errorf("longer: outcome %d, body %q", o, body)
	}
	if o, _ := send("12"); o != proxy.Broken {
		t.Errorf("shorter: outcome %d", o)
	}
}

// A shop that neither reads nor answers is given up after the whole time-out.
func TestStalledUploadTimesOut(t *testing.T) {
	leave := make(chan struct{})
	shop := newRawShop(t, func(v *visit) { <-leave })
	t.Cleanup(func() { close(leave) })
	o := options(shop.url())
	o.Timeout = 200 * time.Millisecond
	p := newPool(t, o)
	out := proxy.Outgoing{Line: []byte("POST /up HTTP/1.1\r\n"), Fields: []byte("Content-Length: 33554432\r\n"), Body: make([]byte, 32<<20)}
	if o := p.Send(&out, new(fasthttp.Response)); o != proxy.TimedOut {
		t.Errorf("outcome %d", o)
	}
}

// stutter is a connection whose first writes are cut by their deadline, as when a shop reads slowly.
type stutter struct {
	*net.TCPConn
	left int
}

func (s *stutter) Write(p []byte) (int, error) {
	if s.left--; s.left < 0 {
		return s.TCPConn.Write(p)
	}
	n, err := s.TCPConn.Write(p[:len(p)/2])
	if err == nil {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// A shop that reads slowly gets the body to its end, each byte once.
func TestInterruptedWriteGoesOnWhereItStopped(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		_, body, err := v.request()
		if err == nil {
			v.say(ok(body))
		}
	})
	raw, err := net.Dial("tcp", shop.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSocket(&stutter{TCPConn: raw.(*net.TCPConn), left: 5}, false)
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, options(shop.url()))
	target := p.targets.Load().all[0]
	e := exchange{patience: target.patience, conn: newConn(s, s), start: time.Now()}
	var body []byte
	for i := range 20000 {
		body = fmt.Appendf(body, "%d,", i)
	}
	out := proxy.Outgoing{Line: []byte("POST /up HTTP/1.1\r\n"), Fields: fmt.Appendf(nil, "Content-Length: %d\r\n", len(body)), Body: body}
	resp := new(fasthttp.Response)
	if o, _ := e.run(&out, resp, target); o != proxy.Answered || !bytes.Equal(resp.Body(), body) {
		t.Errorf("outcome %d, %d bytes of %d came", o, len(resp.Body()), len(body))
	}
	s.Close()
}

// An upload may take longer than a whole exchange; then its answer still has its time.
func TestLongUploadLeavesTimeForItsAnswer(t *testing.T) {
	body := strings.Repeat("b", 2*streamFrom)
	shop := newRawShop(t, func(v *visit) {
		if _, _, err := v.request(); err == nil {
			v.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			v.say(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
		}
	})
	p := newPool(t, options(shop.url()))
	target := p.targets.Load().all[0]
	c, err := target.take(true, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer target.drop(c)
	e := exchange{patience: target.patience, conn: c, start: time.Now().Add(-time.Hour)}
	out := proxy.Outgoing{
		Line: []byte("POST /up HTTP/1.1\r\n"), Fields: []byte("Transfer-Encoding: chunked\r\n"),
		BodyStream: strings.NewReader(body), BodyLength: -1,
	}
	resp := new(fasthttp.Response)
	if o, _ := e.run(&out, resp, target); o != proxy.Answered || string(resp.Body()) != body {
		t.Errorf("outcome %d, %d bytes", o, len(resp.Body()))
	}
}
