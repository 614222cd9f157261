package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// The upstream reads exactly the lines and the body that were given, in their order and spelling.
func TestTransport_WritesTheRequestAsGiven(t *testing.T) {
	heads, bodies := make(chan string, 1), make(chan string, 1)
	server := newRawServer(t, func(v *visit) {
		for {
			head, body, err := v.request()
			if err != nil {
				return
			}
			heads <- head
			bodies <- body
			v.reply(ok(""))
		}
	})
	p := newPool(t, options(server.url()))
	for _, size := range []int{0, 1, 100, smallRequest, smallRequest + 1, 800<<10 + 7} {
		body := bytes.Repeat([]byte("b"), size)
		lines := []string{"cookie: a", "Cookie: b", "user-agent: x", "Content-Type: text/plain", "Connection: close-ish"}
		for framing, req := range map[string]*Request{
			"Content-Length: " + strconv.Itoa(size): newRequest("POST", "/x?y=1", lines...).withBody(body),
			"Content-Length: " + strconv.Itoa(size) + " ": newRequest("POST", "/x?y=1", lines...).
				withStream(bytes.NewReader(body), size),
			"Transfer-Encoding: chunked": newRequest("POST", "/x?y=1", lines...).
				withStream(iotestOneAndHalf{bytes.NewReader(body)}, -1),
		} {
			host := server.Addr().String()
			if size%2 == 1 {
				host = "shop.example"
				req.HTTP.Header.Set("Host", host)
			}
			if o := p.Send(req, new(fasthttp.Response)); o != Answered {
				t.Fatalf("%d bytes: %v", size, o)
			}
			checkConns(t, p, 0, 1)
			if req.Target != server.url() {
				t.Errorf("target %q", req.Target)
			}
			want := "POST /x?y=1 HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(lines, "\r\n") + "\r\n" +
				strings.TrimSpace(framing) + "\r\n\r\n"
			if got := <-heads; got != want {
				t.Errorf("head %q\nwant %q", got, want)
			}
			if got := <-bodies; got != string(body) {
				t.Errorf("%d bytes: body differs, %d bytes came", size, len(got))
			}
		}
	}
}

// An empty Host is the authority of the target that the request is sent to, whichever that is.
func TestTransport_EmptyHostIsTheTargetsOwn(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		v.each(func(head string) {
			v.reply(ok(strings.Split(head, "\r\n")[1]))
		})
	})
	o := options(closedPort(t), server.url())
	o.Policy = "first"
	p := newPool(t, o)
	req := newOrder("POST", "/")
	for range 2 {
		if o, body := sendAndRead(p, req); o != Answered || body != "Host: "+server.Addr().String() {
			t.Errorf("%v, %q", o, body)
		}
	}
}

// A body that the header does not announce would be read as the next request.
func TestTransport_UnannouncedStreamPanics(t *testing.T) {
	p := newPool(t, options(newRawServer(t, echo).url()))
	req := newRequest("POST", "/")
	req.HTTP.SetBodyStream(strings.NewReader("GET /evil HTTP/1.1\r\n\r\n"), 23)
	defer func() {
		if recover() == nil {
			t.Error("it was sent")
		}
		checkConns(t, p, 0, 0)
	}()
	p.Send(req, new(fasthttp.Response))
}

func TestRequest_ResetLeavesNothing(t *testing.T) {
	req := newOrder("POST", "/").withBody([]byte("x"))
	req.Store, req.Whole, req.ClientKey, req.Target = true, true, 7, "t"
	req.Reset()
	if got := string(req.AppendHead(nil, nil)); got != "GET / HTTP/1.1\r\n\r\n" || len(req.body()) != 0 {
		t.Errorf("%q", got)
	}
	if req.Order || req.Store || req.Whole || req.ClientKey != 0 || req.Target != "" {
		t.Errorf("%+v", req)
	}
}

// iotestOneAndHalf returns odd pieces, so that chunks of several sizes are written.
type iotestOneAndHalf struct{ r io.Reader }

func (o iotestOneAndHalf) Read(p []byte) (int, error) { return o.r.Read(p[:len(p)/2+1]) }

// An upstream that rejects a body responds before it has read it. That response is delivered, whether the upstream
// closes, stops reading or reads on; and the connection is not used again.
func TestTransport_EarlyResponseIsDelivered(t *testing.T) {
	const rejection = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"
	for name, end := range map[string]func(v *visit, leave chan struct{}){
		"and stops reading": func(_ *visit, leave chan struct{}) { <-leave },
		"and closes":        func(*visit, chan struct{}) {},
		"and reads on":      func(v *visit, _ chan struct{}) { v.waitClosed() },
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/streamed=%v", name, streamed), func(t *testing.T) {
				leave := make(chan struct{})
				server := newRawServer(t, func(v *visit) {
					v.head()
					v.reply(rejection)
					end(v, leave)
				})
				t.Cleanup(func() { close(leave) })
				p := newPool(t, options(server.url()))
				const size = 32 << 20 // more than the kernel's buffers take
				req := newRequest("POST", "/upload")
				if streamed {
					req.withStream(io.LimitReader(zeros{}, size), size)
				} else {
					req.withBody(make([]byte, size))
				}
				resp := new(fasthttp.Response)
				if o := p.Send(req, resp); o != Answered || resp.StatusCode() != 413 || string(resp.Body()) != "big" {
					t.Errorf("%v, status %d, body %q", o, resp.StatusCode(), resp.Body())
				}
				if st := p.Targets()[0]; st.Open != 0 && name != "and reads on" { // which may have read it all in time
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
func TestTransport_InterimResponseDoesNotCutTheBody(t *testing.T) {
	const size = 512 << 10
	server := newRawServer(t, func(v *visit) {
		v.reply("HTTP/1.1 102 Processing\r\n\r\n")
		head, body, err := v.request()
		if err == nil && len(body) == size {
			v.reply(ok(targetOf(head)))
		}
	})
	p := newPool(t, options(server.url()))
	req := newRequest("POST", "/up").withBody(make([]byte, size))
	resp := new(fasthttp.Response)
	if o := p.Send(req, resp); o != Answered || string(resp.Body()) != "/up" {
		t.Errorf("%v, body %q", o, resp.Body())
	}
}

// A client that breaks off its upload leaves an unknown outcome and a closed connection.
func TestTransport_CutUploadIsBroken(t *testing.T) {
	for _, length := range []int{-1, 100} {
		server := newRawServer(t, func(v *visit) {
			v.request()
			v.reply(ok("never"))
		})
		p := newPool(t, options(server.url()))
		req := newRequest("POST", "/up").withStream(io.MultiReader(strings.NewReader("12345"), failing{}), length)
		if o := p.Send(req, new(fasthttp.Response)); o != Broken {
			t.Errorf("length %d: %v", length, o)
		}
		if st := p.Targets()[0]; st.Open != 0 {
			t.Errorf("length %d: connection was kept: %+v", length, st)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("client left") }

// A body stream that is shorter than it said is cut, one that is longer is read only so far.
func TestTransport_BodyStreamIsHeldToItsLength(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		for {
			_, body, err := v.request()
			if err != nil {
				return
			}
			v.reply(ok(body))
		}
	})
	p := newPool(t, options(server.url()))
	send := func(s string) (Outcome, string) {
		resp := new(fasthttp.Response)
		o := p.Send(newRequest("POST", "/up").withStream(strings.NewReader(s), 4), resp)
		return o, string(resp.Body())
	}
	if o, body := send("1234GET /evil HTTP/1.1\r\n\r\n"); o != Answered || body != "1234" {
		t.Errorf("longer: %v, body %q", o, body)
	}
	if o, _ := send("12"); o != Broken {
		t.Errorf("shorter: %v", o)
	}
}

// An upstream that neither reads nor responds ends the exchange by its timeout.
func TestTransport_StalledUploadTimesOut(t *testing.T) {
	leave := make(chan struct{})
	server := newRawServer(t, func(v *visit) { <-leave })
	t.Cleanup(func() { close(leave) })
	o := options(server.url())
	o.Timeout = 2 * time.Second // also on a busy machine it is begun within that
	p := newPool(t, o)
	req := newRequest("POST", "/up").withBody(make([]byte, 32<<20))
	if o := p.Send(req, new(fasthttp.Response)); o != TimedOut {
		t.Errorf("%v", o)
	}
}

// stutter is a connection of which every other write is cut by its deadline, as when a server reads slowly.
type stutter struct {
	*net.TCPConn
	cut bool
}

func (s *stutter) Write(p []byte) (int, error) {
	if s.cut = !s.cut; !s.cut {
		return s.TCPConn.Write(p)
	}
	n, err := s.TCPConn.Write(p[:len(p)/2])
	if err == nil {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// An upstream that reads slowly gets the body to its end, each byte once.
func TestTransport_InterruptedWriteGoesOnWhereItStopped(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		_, body, err := v.request()
		if err == nil {
			v.reply(ok(body))
		}
	})
	raw, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSocket(&stutter{TCPConn: raw.(*net.TCPConn)}, false)
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, options(server.url()))
	target := p.targets.Load().all[0]
	e := exchange{
		timeouts: target.settings.Load().timeouts,
		conn:     newConn(s, s),
		start:    time.Now(),
	}
	var body []byte
	for i := range 20000 {
		body = fmt.Appendf(body, "%d,", i)
	}
	req := newRequest("POST", "/up").withBody(body)
	resp := new(fasthttp.Response)
	if o, _ := e.run(req, resp, target); o != Answered || !bytes.Equal(resp.Body(), body) {
		t.Errorf("%v, %d bytes of %d came", o, len(resp.Body()), len(body))
	}
	s.Close()
}

// An upload may take longer than a whole exchange; then its answer still has its time.
func TestTransport_LongUploadLeavesTimeForItsResponse(t *testing.T) {
	body := strings.Repeat("b", 2*streamFrom)
	server := newRawServer(t, func(v *visit) {
		if _, _, err := v.request(); err == nil {
			v.reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			v.reply(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
		}
	})
	p := newPool(t, options(server.url()))
	target := p.targets.Load().all[0]
	c, err := target.ready(openPlace(target), newOrder("GET", "/"), true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer target.drop(c)
	e := exchange{
		timeouts: target.settings.Load().timeouts,
		conn:     c,
		start:    time.Now().Add(-time.Hour),
	}
	req := newRequest("POST", "/up").withStream(strings.NewReader(body), -1)
	resp := new(fasthttp.Response)
	if o, _ := e.run(req, resp, target); o != Answered || string(resp.Body()) != body {
		t.Errorf("%v, %d bytes", o, len(resp.Body()))
	}
}
