package upstream

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// answerTo sends an order, whose answer may be a stream.
func answerTo(p *Pool, path string) (*fasthttp.Response, Outcome) {
	resp, order := new(fasthttp.Response), newOrder("POST", path)
	order.Whole = false
	return resp, p.Send(order, resp)
}

// largeAnswers gives to /counted, /chunked and so on what the name says, of n bytes.
func largeAnswers(t *testing.T, n int) *rawServer {
	body := strings.Repeat("x", n)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", n, body)
	answers := map[string]string{
		"/counted": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, body),
		"/chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "0\r\n\r\n",
		"/events": status200 + "Content-Type: Text/Event-Stream; charset=utf-8\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n" + chunk + "0\r\n\r\n",
		"/asked":  status200 + "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "0\r\n\r\n",
		"/closed": "HTTP/1.1 200 OK\r\n\r\n" + body,
		"/cut":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "zz\r\n",
	}
	return newRawServer(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			v.reply(answers[targetOf(head)])
			if targetOf(head) == "/closed" {
				return
			}
		}
	})
}

// A page of a known length, too, holds no connection.
func TestTransport_CountedPageWaitsInMemory(t *testing.T) {
	p := newPool(t, options(largeAnswers(t, maxAhead).url()))
	resp := new(fasthttp.Response)
	if outcome := p.Send(newPage("/counted"), resp); outcome != Answered {
		t.Fatalf("outcome %v", outcome)
	}
	checkConns(t, p, 0, 1)
	if n := defaultMemory - left(p); n != maxAhead {
		t.Errorf("%d bytes of memory are counted", n)
	}
	if body, err := io.ReadAll(resp.BodyStream()); err != nil || len(body) != maxAhead || left(p) != defaultMemory {
		t.Errorf("%d bytes, %v, %d bytes of memory are left", len(body), err, left(p))
	}
	resp.CloseBodyStream()
}

// halting is a connection on which each byte comes after a read that timed out.
type halting struct {
	script
	late bool
}

func (h *halting) Read(p []byte) (int, error) {
	if h.late = !h.late; h.late {
		return 0, os.ErrDeadlineExceeded
	}
	return h.script.Read(p)
}

// A read that ends in a timeout loses nothing: the next one goes on there.
func TestBody_GoesOnAfterATimeout(t *testing.T) {
	wire := &halting{script: script{said: []byte("3\r\nabc\r\n00A \r\n0123456789\r\n0\r\nA: b\r\n\r\n"), step: 1}}
	in := &responseReader{src: wire}
	if err := in.wait(1); !isTimeout(err) {
		t.Fatal(err)
	}
	b := body{in: in, framing: chunked}
	var got []byte
	for !b.done {
		var err error
		if got, err = b.appendTo(got, 100); err != nil && !isTimeout(err) {
			t.Fatalf("after %q: %v", got, err)
		}
	}
	if string(got) != "abc0123456789" || in.buffered() != 0 {
		t.Errorf("%q", got)
	}
}

// What the server has finished holds no connection there, however slowly its client reads.
func TestTransport_ResponseToAnOrderWaitsInMemory(t *testing.T) {
	for _, c := range []struct {
		path   string
		inside int // in flight at the server while the client has read nothing
	}{{"/counted", 0}, {"/chunked", 0}, {"/events", 1}, {"/asked", 1}} {
		server := largeAnswers(t, 200<<10)
		p := newPool(t, options(server.url()))
		resp, outcome := answerTo(p, c.path)
		if outcome != Answered {
			t.Fatalf("%s: outcome %d", c.path, outcome)
		}
		if got := p.Targets()[0].InFlight; got != c.inside {
			t.Errorf("%s: %d in flight before the client has read, want %d", c.path, got, c.inside)
		}
		var read bytes.Buffer
		if err := resp.BodyWriteTo(&read); err != nil || read.Len() != 200<<10 {
			t.Errorf("%s: %d bytes, %v", c.path, read.Len(), err)
		}
		if err := resp.CloseBodyStream(); err != nil {
			t.Error(err)
		}
		if left := left(p); left != defaultMemory {
			t.Errorf("%s: %d bytes of the room are not given back", c.path, defaultMemory-left)
		}
	}
}

func TestTransport_ResponseThatDoesNotFitIsStreamed(t *testing.T) {
	server := largeAnswers(t, maxAhead+1)
	p := newPool(t, options(server.url()))
	for _, path := range []string{"/counted", "/chunked", "/closed"} {
		resp, outcome := answerTo(p, path)
		if outcome != Answered || p.Targets()[0].InFlight != 1 {
			t.Fatalf("%s: outcome %d, %d in flight", path, outcome, p.Targets()[0].InFlight)
		}
		if n, err := io.Copy(io.Discard, resp.BodyStream()); n != maxAhead+1 || err != nil {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
		if err := resp.CloseBodyStream(); err != nil {
			t.Error(err)
		}
		if left, inside := left(p), p.Targets()[0].InFlight; left != defaultMemory || inside != 0 {
			t.Errorf("%s: %d bytes of the room are not given back, %d in flight", path, defaultMemory-left, inside)
		}
	}
}

func TestTransport_CountedResponseThatIsStreamedHoldsNoMemory(t *testing.T) {
	o := options(largeAnswers(t, 200<<10).url())
	o.Memory = streamFrom
	p := newPool(t, o)
	resp, outcome := answerTo(p, "/counted")
	if outcome != Answered || p.Targets()[0].InFlight != 1 || left(p) != defaultMemory {
		t.Errorf("outcome %v, %d in flight, %d bytes of room", outcome, p.Targets()[0].InFlight, left(p))
	}
	resp.CloseBodyStream()
}

func TestTransport_WithoutMemoryResponsesAreStreamed(t *testing.T) {
	server := largeAnswers(t, 200<<10)
	o := options(server.url())
	o.Memory = 2 * streamFrom
	p := newPool(t, o)
	resp, outcome := answerTo(p, "/chunked")
	if outcome != Answered || p.Targets()[0].InFlight != 1 || left(p) != defaultMemory-2*streamFrom {
		t.Fatalf("outcome %d, %d in flight, %d bytes of room", outcome, p.Targets()[0].InFlight, left(p))
	}
	if n, err := io.Copy(io.Discard, resp.BodyStream()); n != 200<<10 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := resp.CloseBodyStream(); err != nil || left(p) != defaultMemory {
		t.Errorf("%v, %d bytes of room", err, left(p))
	}
}

// An answer to an order that breaks off is no answer: what became of the order is unknown.
func TestTransport_BufferedResponseThatBreaksOffIsBroken(t *testing.T) {
	server := largeAnswers(t, 100<<10)
	p := newPool(t, options(server.url()))
	resp, outcome := answerTo(p, "/cut")
	if outcome != Broken || resp.Header.StatusCode() != 200 || len(resp.Body()) != 0 {
		t.Errorf("outcome %d", outcome)
	}
	if left := left(p); left != defaultMemory {
		t.Errorf("%d bytes of the room are not given back", defaultMemory-left)
	}
}

// left is what is left of the usual memory for responses.
func left(p *Pool) int64 {
	return defaultMemory - p.memory.used.Load()
}
