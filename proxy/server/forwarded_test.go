package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/valyala/fasthttp"
)

// stream is a body stream that tells when it is closed.
type stream struct {
	io.Reader
	closed chan struct{}
}

func (s stream) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func streamOf(r io.Reader) stream { return stream{r, make(chan struct{})} }

// parsed fills resp as the upstream's bytes say.
func parsedResponse(t *testing.T, resp *fasthttp.Response, head, body string) {
	t.Helper()
	if err := resp.Header.Read(bufio.NewReader(strings.NewReader(head + "\r\n"))); err != nil {
		t.Error(err)
	}
	resp.SetBodyString(body)
}

func TestForwarded_EachFramingIsWhole(t *testing.T) {
	const hi = "hello"
	sized := func(n int) func(*fasthttp.Response) {
		return func(r *fasthttp.Response) { r.SetBodyStream(streamOf(strings.NewReader(hi)), n) }
	}
	from := func(wrap func(io.Reader) io.Reader, text string, n int) func(*fasthttp.Response) {
		return func(resp *fasthttp.Response) { resp.SetBodyStream(wrap(strings.NewReader(text)), n) }
	}
	atOnce := func(n int) func(*fasthttp.Response) {
		return func(resp *fasthttp.Response) {
			sized(n)(resp)
			resp.ImmediateHeaderFlush = true
		}
	}
	text := func(resp *fasthttp.Response) { resp.SetBodyString(hi) }
	const (
		keepAlive = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
		length    = "Content-Length: 5\r\n\r\n"
		coding    = "Transfer-Encoding: chunked\r\n"
		chunks    = "5\r\nhello\r\n0\r\n\r\n"
	)
	for name, c := range map[string]struct {
		request string
		fill    func(*fasthttp.Response)
		want    string // behind the status line and in front of Connection
		closes  bool
	}{
		"whole":           {get(), text, length + hi, false},
		"whole, empty":    {get(), func(r *fasthttp.Response) {}, "Content-Length: 0\r\n\r\n", false},
		"stream":          {get(), sized(5), length + hi, false},
		"stream, at once": {get(), atOnce(5), length + hi, false},
		"chunks":          {get(), sized(-1), coding + "\r\n" + chunks, false},
		"chunks, at once": {get(), atOnce(-1), coding + "\r\n" + chunks, false},
		"unknown length":  {get(), sized(-2), coding + "\r\n" + chunks, false},
		"chunks, empty":   {get(), from(iotest.DataErrReader, "", -1), coding + "\r\n0\r\n\r\n", false},
		"stream, empty":   {get(), from(iotest.DataErrReader, "", 0), "Content-Length: 0\r\n\r\n", false},
		"1.0 whole":       {keepAlive, text, "Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", false},
		"1.0 stream":      {keepAlive, sized(5), "Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", false},
		"1.0 no length":   {keepAlive, sized(-1), "Connection: close\r\n\r\nhello", true},
		"HEAD":            {line("HEAD / HTTP/1.1"), text, length, false},
		"HEAD, stream":    {line("HEAD / HTTP/1.1"), sized(5), length, false},
		"HEAD, no length": {line("HEAD / HTTP/1.1"), sized(-1), "\r\n", false},
		"HEAD, said": {line("HEAD / HTTP/1.1"), func(r *fasthttp.Response) {
			r.Header.SetContentLength(77)
			r.SkipBody = true
		}, "Content-Length: 77\r\n\r\n", false},
		"HEAD, nothing": {line("HEAD / HTTP/1.1"), func(r *fasthttp.Response) {}, "\r\n", false},
		"204":           {get(), func(r *fasthttp.Response) { r.SetStatusCode(204); r.SetBodyString(hi) }, "\r\n", false},
		"304":           {get(), func(r *fasthttp.Response) { r.SetStatusCode(304); r.SetBodyString(hi) }, "\r\n", false},
		"304, stream":   {get(), func(r *fasthttp.Response) { r.SetStatusCode(304); sized(5)(r) }, "\r\n", false},
		"304, said": {get(), func(r *fasthttp.Response) { r.Header.SetContentLength(77); r.SetStatusCode(304) },
			"Content-Length: 77\r\n\r\n", false},
		"client closes": {get("Connection: close"), sized(-1), coding + "Connection: close\r\n\r\n" + chunks, true},
		"upstream closes": {get(), func(r *fasthttp.Response) { r.SetConnectionClose(); r.SetBodyString(hi) },
			length + hi, false},
		"byte by byte": {get(), from(iotest.OneByteReader, "ab", -1),
			coding + "\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n", false},
		"stream, data last": {get(), from(iotest.DataErrReader, hi, 5), length + hi, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, e engine) {
				first := atomic.Bool{}
				_, addr := e.start(t, &handler{handle: func(x *served) {
					if first.Swap(true) {
						answerText(x, 200, "next")
						return
					}
					c.fill(x.Forwarded)
				}}, long)
				raw := c.request
				if !c.closes {
					raw += get("Connection: close")
				}
				_, got, _ := strings.Cut(dateRE.ReplaceAllString(converse(t, addr, raw), ""), "\r\n")
				next := ""
				if !c.closes {
					next = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnext"
				}
				if got != c.want+next {
					t.Errorf("answered %q, want %q", got, c.want+next)
				}
			})
		})
	}
}

func TestForwarded_FieldsAreTheUpstreamsAlone(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		fields := []string{"Date: Tue, 15 Nov 1994 08:12:31 GMT", "Set-Cookie: a=b; Path=/", "Set-Cookie: c=d", "X-A: 1",
			"X-A: 2",
			"Server: shop", "Content-Type: text/x", "Content-Encoding: br", "Upgrade: h3"}
		_, addr := e.start(t, &handler{handle: func(x *served) {
			if string(x.Request.Path) == "/none" {
				parsedResponse(t, x.Forwarded, "HTTP/1.1 299 Odd\r\nContent-Length: 9\r\nConnection: close\r\n"+
					"Keep-Alive: x\r\nProxy-Connection: x\r\nTrailer: X-T\r\n", "hello")
				return
			}
			parsedResponse(t, x.Forwarded, "HTTP/1.1 200 Fine\r\n"+strings.Join(fields, "\r\n")+"\r\nContent-Length: 5\r\n",
				"hello")
		}}, long)
		want := "HTTP/1.1 299 Odd\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
		got := converse(t, addr, line("GET /none HTTP/1.0")) // a response without Date gets one: RFC 9110, section 6.6.1
		if dated := dateRE.ReplaceAllString(got, ""); dated != want || dated == got {
			t.Errorf("%q", got)
		}
		got = converse(t, addr, get("Connection: close"))
		for _, field := range fields {
			if strings.Count(got, "\r\n"+field+"\r\n") != 1 {
				t.Errorf("%q in %q", field, got)
			}
		}
		if n := strings.Count(got, "\r\n"); n != len(fields)+4 || !strings.HasPrefix(got, "HTTP/1.1 200 Fine\r\n") ||
			!strings.HasSuffix(got, "\r\n\r\nhello") {
			t.Errorf("%d lines in %q", n, got)
		}
	})
}

// A body that breaks off is never taken for a whole one: the connection ends within it.
func TestForwarded_BrokenStreamEndsTheConnection(t *testing.T) {
	broken := iotest.ErrReader(errors.New("broken"))
	parts := func(all ...io.Reader) func() io.Reader {
		return func() io.Reader { return io.MultiReader(all...) }
	}
	text := func(s string) io.Reader { return readerFunc(strings.NewReader(s).Read) } // no io.WriterTo
	for name, c := range map[string]struct {
		body func() io.Reader
		size int
	}{
		"chunks":         {func() io.Reader { return io.MultiReader(text("hel"), broken) }, -1},
		"length":         {func() io.Reader { return io.MultiReader(text("hel"), broken) }, 5},
		"short":          {func() io.Reader { return text("hel") }, 5},
		"short, itself":  {func() io.Reader { return strings.NewReader("hel") }, 5},
		"too long":       {func() io.Reader { return io.MultiReader(text("hel"), text("lo")) }, 4},
		"panic":          {parts(readerFunc(func([]byte) (int, error) { panic("odd") })), -1},
		"mute":           {parts(readerFunc(func([]byte) (int, error) { return 0, nil })), 5},
		"broken at once": {parts(broken), -1},
	} {
		t.Run(name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, e engine) {
				body := streamOf(c.body())
				_, addr := e.start(t, &handler{handle: func(x *served) { x.Forwarded.SetBodyStream(body, c.size) }}, long)
				k := connect(t, addr)
				k.send(get())
				all, _ := io.ReadAll(k.in)
				if strings.HasSuffix(string(all), "0\r\n\r\n") || strings.HasSuffix(string(all), "hello") {
					t.Errorf("%q looks whole", all)
				}
				<-body.closed
			})
		})
	}
}

func TestForwarded_StreamIsClosedWhenTheClientLeft(t *testing.T) {
	for _, size := range []int{-1, 1 << 30} {
		eachEngine(t, func(t *testing.T, e engine) {
			asked, goOn := make(chan struct{}), make(chan struct{})
			body := streamOf(endless{strings.Repeat("x", 4<<10)})
			_, addr := e.start(t, &handler{handle: func(x *served) {
				x.Conn.StepAside()
				close(asked)
				<-goOn
				x.Forwarded.SetBodyStream(body, size)
			}}, long)
			c := connect(t, addr)
			c.send("GET / HTTP/1.0\r\n\r\n")
			<-asked
			c.reset()
			close(goOn)
			<-body.closed
		})
	}
}

// A client that takes an endless answer and does not read it is waited for no longer than WriteTimeout.
func TestForwarded_ClientThatDoesNotReadIsLeft(t *testing.T) {
	for _, raw := range []string{get(), "GET / HTTP/1.0\r\n\r\n"} {
		eachEngine(t, func(t *testing.T, e engine) {
			body := streamOf(endless{strings.Repeat("x", 4<<10)})
			_, addr := e.start(t, &handler{handle: func(x *served) { x.Forwarded.SetBodyStream(body, -1) }},
				Options{WriteTimeout: 100 * time.Millisecond})
			connect(t, addr).send(raw)
			<-body.closed
		})
	}
}

// The head of a stream that is slow to begin leaves at once, and each piece as it comes.
func TestForwarded_PiecesLeaveAsTheyCome(t *testing.T) {
	for _, size := range []int{-1, 6} {
		eachEngine(t, func(t *testing.T, e engine) {
			r, w := io.Pipe()
			_, addr := e.start(t, &handler{handle: func(x *served) {
				x.Forwarded.SetBodyStream(r, size)
				x.Forwarded.ImmediateHeaderFlush = true
			}}, long)
			c := connect(t, addr)
			c.send(get())
			for {
				text, err := c.in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if text == "\r\n" {
					break // the head has come, and no byte of the body
				}
			}
			for _, piece := range []string{"one", "two"} {
				if _, err := io.WriteString(w, piece); err != nil {
					t.Fatal(err)
				}
				if size < 0 {
					piece = "3\r\n" + piece + "\r\n"
				}
				got := make([]byte, len(piece))
				if _, err := io.ReadFull(c.in, got); err != nil || string(got) != piece {
					t.Fatalf("%q, %v", got, err)
				}
			}
			w.Close()
			if size < 0 {
				if got, err := c.in.ReadString('0'); err != nil || got != "0" {
					t.Fatalf("%q, %v", got, err)
				}
			}
		})
	}
}

// A head and a small body leave in one write; a large body is not copied.
func TestForwarded_SmallAnswersAreOneWrite(t *testing.T) {
	for size, want := range map[int]int{0: 1, 100: 1, maxJoined: 1, maxJoined + 1: 2, 1 << 20: 2} {
		for _, streamed := range []bool{false, true} {
			writes, written := 0, 0
			out := writerConn{func(p []byte) { writes++; written += len(p) }}
			c := &Conn{Conn: out, server: NewServer(&handler{}, Limits{}, Options{})}
			c.acquire(c.server.parser.Load(), []byte(get())...)
			x := c.exchange
			if err := x.reader.readHead(&x.request); err != nil {
				t.Fatal(err)
			}
			body := bytes.Repeat([]byte("x"), size)
			x.ctx.Response.SetBody(body)
			if streamed {
				if size > pieceSize {
					continue
				}
				x.ctx.Response.SetBodyStream(streamOf(bytes.NewReader(body)), size)
			}
			frame, length := x.framing()
			err := x.write(c, frame, length, false)
			if err != nil || writes != want || written < size+len("HTTP/1.1 200 OK\r\n") {
				t.Errorf("%d bytes, streamed %v: %d writes of %d bytes, %v; want %d", size, streamed, writes, written, err, want)
			}
		}
	}
}

// writerConn is a connection that is only written.
type writerConn struct{ write func([]byte) }

func (c writerConn) Read([]byte) (int, error)         { return 0, io.EOF }
func (c writerConn) Write(p []byte) (int, error)      { c.write(p); return len(p), nil }
func (c writerConn) Close() error                     { return nil }
func (c writerConn) LocalAddr() net.Addr              { return nil }
func (c writerConn) RemoteAddr() net.Addr             { return nil }
func (c writerConn) SetDeadline(time.Time) error      { return nil }
func (c writerConn) SetReadDeadline(time.Time) error  { return nil }
func (c writerConn) SetWriteDeadline(time.Time) error { return nil }

// A stream that breaks before its first byte ends behind the head: the client sees an incomplete response, not none.
func TestForwarded_StreamThatBreaksAtOnceIsAnswered(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{}
		h.handle = func(x *served) {
			x.Forwarded.SetBodyStream(streamOf(iotest.ErrReader(errors.New("malformed chunk"))), -1)
		}
		_, addr := e.start(t, h, long)
		if got := converse(t, addr, get()); !strings.HasPrefix(got, "HTTP/1.1 ") {
			t.Errorf("the client reads %q", got)
		}
	})
}
