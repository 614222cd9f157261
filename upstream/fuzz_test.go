package upstream

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// script is a connection on which the upstream writes what is said here, in pieces of at most step bytes.
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

// receive runs the reading half of an exchange on what the upstream says. left is what stays in the buffer: what is
// still in the socket is for the probe to find.
func receive(said []byte, step int, req *Request) (resp *fasthttp.Response, o Outcome, d disposition, left int) {
	s := &socket{Conn: &script{said: said, step: max(1, step)}}
	c := newConn(s, s)
	t := &target{dialer: &dialer{}, memory: new(budget), open: 1, retired: true, log: slog.New(slog.DiscardHandler)}
	t.settings.Store(&settings{maxConns: 8})
	e := exchange{conn: c, timeouts: timeouts{time.Second, time.Second}, start: time.Now()}
	resp = new(fasthttp.Response)
	for {
		final, err := e.readHead()
		if err != nil {
			return resp, outcomeOf(err), mustClose, 0
		}
		if final {
			break
		}
	}
	o, d = e.receive(req, resp, t, false)
	if d == streaming {
		body, err := io.ReadAll(resp.BodyStream())
		d = resp.BodyStream().(*stream).body.disposition(resp.BodyStream().(*stream).reusable)
		resp.CloseBodyStream()
		if err != nil {
			return resp, Broken, mustClose, 0
		}
		resp.SetBody(body)
	}
	return resp, o, d, c.in.buffered()
}

// FuzzResponse compares with net/http, which reads more than the transport but nothing differently: what the transport
// takes for a response is the same response there. A connection is never kept with bytes left.
func FuzzResponse(f *testing.F) {
	for _, seed := range poisons {
		f.Add([]byte(seed), 1<<16, false, false)
	}
	for _, seed := range malformed {
		f.Add([]byte(seed), 7, true, false)
	}
	for _, seed := range []string{
		smallResponse,
		"HTTP/1.0 200\r\nA:b\r\nC:\td \r\nConnection: c\r\n\r\n",
		"HTTP/1.1 204 \r\nContent-Length: 0\r\nETag: \"\xff\"\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: a\r\nX-A: 12345678\t\r\ncontent-encoding: b\r\nX-a: 2\r\n\r\n",
		status200 + "X-A: 1\r\nConnection: X-B, x-c\r\nX-B: 1\r\nX-A: 2\r\nX-C: 3\r\nTrailer: Set-Cookie\r\n\r\n",
	} {
		f.Add([]byte(seed), 1, false, true)
	}
	f.Fuzz(func(t *testing.T, said []byte, step int, streams, head bool) {
		req := newPage("/")
		req.Whole = !streams
		if head {
			req.HTTP.Header.SetMethod("HEAD")
		}
		resp, outcome, d, left := receive(bytes.Clone(said), step, req)
		if outcome != Answered {
			if d == mayReuse {
				t.Fatal("connection kept without a response")
			}
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(said), 1<<17) // net/http wants all trailers in the buffer
		want := netHTTPResponse(r, head)
		if want == nil {
			t.Fatalf("net/http reads no response from %.500q", said)
		}
		fields := want.Header.Clone() // the body may add trailers
		body, err := io.ReadAll(want.Body)
		if err != nil || want.StatusCode != resp.StatusCode() || !bytes.Equal(body, resp.Body()) {
			t.Fatalf("%.500q:\nnet/http reads %d %.200q (%v)\nthe transport %d %.200q",
				said, want.StatusCode, body, err, resp.StatusCode(), resp.Body())
		}
		if d == mayReuse && (left != 0 || want.Close) {
			t.Fatalf("connection kept with %d bytes left, close is %v: %.500q", left, want.Close, said)
		}
		compareFields(t, fields, &resp.Header)
	})
}

// netHTTPResponse reads the first response that is not an interim one.
func netHTTPResponse(r *bufio.Reader, head bool) *http.Response {
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

// compareFields checks that the client gets every field but the hop's, with all its values in order.
func compareFields(t *testing.T, want http.Header, h *fasthttp.ResponseHeader) {
	hop := []string{"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "transfer-encoding"}
	for _, list := range want["Connection"] {
		for token := range strings.SplitSeq(list, ",") {
			hop = append(hop, strings.ToLower(strings.Trim(token, " \t")))
		}
	}
	values, got := map[string][]string{}, map[string][]string{}
	for name, all := range want {
		if name = strings.ToLower(name); !slices.Contains(hop, name) {
			values[name] = append(values[name], all...)
		}
	}
	for name, value := range h.All() {
		if bytes.ContainsAny(name, "\r\n\x00 :") || bytes.ContainsAny(value, "\r\n\x00") {
			t.Fatalf("field %q: %q", name, value)
		}
		lower := strings.ToLower(string(name))
		if lower != "content-length" && slices.Contains(hop, lower) {
			t.Fatalf("field %q was kept", name)
		}
		got[lower] = append(got[lower], string(value))
	}
	for name, all := range values {
		switch name {
		case "content-length": // net/http and the transport both say more of it than the upstream
			continue
		case "content-encoding":
			all = []string{strings.TrimPrefix(strings.Join(all, ", "), ", ")}
		case "content-type", "server": // fasthttp keeps the last
			all = all[len(all)-1:]
		}
		if len(all) == 1 && all[0] == "" && got[name] == nil {
			continue // an empty one of those four
		}
		if !slices.Equal(all, got[name]) {
			t.Fatalf("%s: %q, want %q", name, got[name], all)
		}
	}
}

// Where the network cuts a response changes nothing.
func TestTransport_PiecesOfAnySizeReadTheSame(t *testing.T) {
	for name, said := range poisons {
		for _, streams := range []bool{false, true} {
			req := newPage("/")
			req.Whole = !streams
			want, wantOutcome, _, _ := receive([]byte(said), 1<<16, req)
			for step := 1; step < len(said); step++ {
				resp, outcome, _, _ := receive([]byte(said), step, req)
				if outcome != wantOutcome || resp.StatusCode() != want.StatusCode() || !bytes.Equal(resp.Body(), want.Body()) {
					t.Fatalf("%s in pieces of %d: %v, body %q; whole: %v, %q",
						name, step, outcome, resp.Body(), wantOutcome, want.Body())
				}
			}
		}
	}
}
