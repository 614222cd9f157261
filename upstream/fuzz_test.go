package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// script is a connection on which the shop says what is written here, in pieces of at most step bytes.
type script struct {
	net.Conn
	said []byte
	step int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.said) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.step)], s.said)
	s.said = s.said[n:]
	return n, nil
}

func (s *script) SetReadDeadline(time.Time) error { return nil }
func (s *script) Close() error                    { return nil }

// read runs the reading half of an exchange on what the shop says.
func read(said []byte, step int, out *proxy.Outgoing) (resp *fasthttp.Response, o proxy.Outcome, f fate, left int) {
	wire := &script{said: said, step: max(1, step)}
	s := &socket{Conn: wire}
	c := newConn(s, s)
	t := &target{dialer: &dialer{}, headers: newHeaders(), room: newRoom(0), open: 1, retired: true}
	e := exchange{conn: c, patience: patience{answer: time.Second, whole: time.Second, most: 1 << 20}, start: time.Now()}
	resp = new(fasthttp.Response)
	for {
		final, err := e.readHead()
		if err != nil {
			return resp, outcomeOf(err), shut, 0
		}
		if final {
			break
		}
	}
	o, f = e.finish(out, resp, t, false)
	if f == lend {
		body, err := io.ReadAll(resp.BodyStream())
		s := resp.BodyStream().(*stream)
		f = shut
		if s.reusable && s.body.done && len(s.rest) == 0 && c.in.buffered() == 0 {
			f = keep
		}
		resp.CloseBodyStream()
		if err != nil {
			return resp, proxy.Broken, shut, 0
		}
		resp.SetBody(body)
	}
	return resp, o, f, c.in.buffered() // what is still in the socket is for the probe to find
}

// FuzzAnswer holds our reader against net/http's, which reads more than ours but nothing differently:
// what ours takes for an answer is the same answer there. A connection is never kept with bytes left.
func FuzzAnswer(f *testing.F) {
	for _, seed := range poisons {
		f.Add([]byte(seed), 1<<16, false, false)
	}
	for _, seed := range doubtful {
		f.Add([]byte(seed), 7, true, false)
	}
	f.Add([]byte(smallAnswer), 1, false, true)
	f.Fuzz(func(t *testing.T, said []byte, step int, streams, head bool) {
		out := &proxy.Outgoing{Stream: streams, Head: head}
		resp, outcome, fate, left := read(bytes.Clone(said), step, out)
		if outcome != proxy.Answered {
			if fate == keep {
				t.Fatal("connection kept without an answer")
			}
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(said), 1<<17) // net/http wants all trailers in the buffer
		want := netHTTPAnswer(r, head)
		if want == nil {
			t.Fatalf("net/http takes no answer from %.500q", said)
		}
		body, err := io.ReadAll(want.Body)
		if err != nil || want.StatusCode != resp.StatusCode() || !bytes.Equal(body, resp.Body()) {
			t.Fatalf("%.500q:\nnet/http reads %d %.200q (%v)\nand we %d %.200q", said, want.StatusCode, body, err, resp.StatusCode(), resp.Body())
		}
		if fate == keep && (left != 0 || want.Close) {
			t.Fatalf("connection kept with %d bytes left, close is %v: %.500q", left, want.Close, said)
		}
		checkFields(t, resp)
	})
}

// netHTTPAnswer reads the first answer that is not an interim one.
func netHTTPAnswer(r *bufio.Reader, head bool) *http.Response {
	method := "GET"
	if head {
		method = "HEAD"
	}
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return nil
		}
		if resp.StatusCode >= 200 {
			return resp
		}
	}
}

// checkFields looks at what the client would get: no byte that could end a line early, no hop's field.
func checkFields(t *testing.T, resp *fasthttp.Response) {
	for k, v := range resp.Header.All() {
		if bytes.ContainsAny(k, "\r\n\x00 :") || bytes.ContainsAny(v, "\r\n\x00") {
			t.Fatalf("field %q: %q", k, v)
		}
		switch strings.ToLower(string(k)) {
		case "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade":
			t.Fatalf("field %q was kept", k)
		}
	}
}

// TestBytesInAnyPiecesReadTheSame: where the network cuts an answer changes nothing.
func TestBytesInAnyPiecesReadTheSame(t *testing.T) {
	for name, said := range poisons {
		for _, streams := range []bool{false, true} {
			out := &proxy.Outgoing{Stream: streams}
			want, wantOutcome, _, _ := read([]byte(said), 1<<16, out)
			for step := 1; step < len(said); step++ {
				resp, outcome, _, _ := read([]byte(said), step, out)
				if outcome != wantOutcome || resp.StatusCode() != want.StatusCode() || !bytes.Equal(resp.Body(), want.Body()) {
					t.Fatalf("%s in pieces of %d: outcome %d, body %q; whole: %d, %q", name, step, outcome, resp.Body(), wantOutcome, want.Body())
				}
			}
		}
	}
}
