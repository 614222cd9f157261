package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// flow is an answer's stream; closed hears of each Close.
type flow struct {
	io.Reader
	closed chan struct{}
}

func (f flow) Close() error {
	f.closed <- struct{}{}
	return nil
}

func TestAnswerToAnHTTP10ClientIsNeverHeldWhole(t *testing.T) {
	for length, want := range map[int]string{-1: "Connection: close\r\n\r\nabc", 3: "\r\n\r\nabc"} {
		closed := make(chan struct{}, 10)
		addr, _ := gate(t, options(shopFunc(func(o *Outgoing, resp *fasthttp.Response) Outcome {
			if !o.Stream {
				t.Error("the answer may not be a stream")
			}
			resp.SetBodyStream(flow{strings.NewReader("abc"), closed}, length)
			resp.Header.Set("Set-Cookie", "a=b")
			return Answered
		})))
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.0\r\nHost: s\r\nConnection: keep-alive\r\n\r\n")
		<-closed
		if length >= 0 { // the connection stays; end it
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		all, err := io.ReadAll(c)
		if answer := string(all); err != nil || !strings.HasSuffix(answer, want) || strings.Contains(answer, "hunked") || strings.Contains(answer, "Length") != (length >= 0) || strings.Contains(answer, "keep-alive") != (length >= 0) ||
			!strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.Contains(answer, "\r\nSet-Cookie: a=b\r\n") {
			t.Errorf("length %d: %q, %v; want …%q", length, all, err, want)
		}
	}
}

func TestAnswerIsLetGoWhenTheHTTP10ClientLeft(t *testing.T) {
	closed, asked, goOn := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	addr, _ := gate(t, options(shopFunc(func(_ *Outgoing, resp *fasthttp.Response) Outcome {
		asked <- struct{}{}
		<-goOn
		resp.SetBodyStream(flow{strings.NewReader(strings.Repeat("x", 1<<20)), closed}, -1)
		return Answered
	})))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET / HTTP/1.0\r\nHost: s\r\n\r\n")
	<-asked
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
	goOn <- struct{}{}
	<-closed
}

// endless is an answer without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Who takes an answer whose end is that of the connection, and does not read it, is waited for no longer than anybody else, also
// when an answer before it was written a moment ago.
func TestHTTP10ClientThatDoesNotReadIsLeft(t *testing.T) {
	closed := make(chan struct{}, 10)
	p := newProxy(t, options(shopFunc(func(o *Outgoing, resp *fasthttp.Response) Outcome {
		if strings.HasPrefix(string(o.Line), "GET /endless") {
			resp.SetBodyStream(flow{endless{}, closed}, -1)
		}
		return Answered
	})))
	c, err := net.Dial("tcp", serve(t, p, ServerOptions{WriteTimeout: time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.0\r\nHost: s\r\nConnection: keep-alive\r\n\r\nGET /endless HTTP/1.0\r\nHost: s\r\n\r\n")
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("it is waited for without end")
	}
}
