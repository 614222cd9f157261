package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// answering is an upstream that gives every request the same response, and closes if that says nothing else.
func answering(t *testing.T, response string, closes bool) *Pool {
	server := newRawServer(t, func(v *visit) {
		for {
			if _, _, err := v.request(); err != nil {
				return
			}
			v.reply(response)
			if closes {
				return
			}
		}
	})
	return newPool(t, options(server.url()))
}

func TestTransport_KeepsEndToEndFieldsInOrderAndNoOthers(t *testing.T) {
	p := answering(t, "HTTP/1.1 299 Quite Fine\r\nDate: Tue, 11 Nov 2025 00:00:00 GMT\r\nServer: shop\r\n"+
		"Set-Cookie: b=2; Path=/\r\nX-One: 1\r\nset-cookie: a=1\r\nX-Two:\t2 \r\nX-One: 3\r\n"+
		"Connection: keep-alive, X-Secret\r\nX-Secret: s\r\nKeep-Alive: timeout=5\r\nProxy-Connection: a\r\nTE: trailers\r\n"+
		"Trailer: X-T\r\nTrailer: Set-Cookie,\r\nUpgrade: h2c\r\nX-One: 4\r\nTransfer-Encoding: chunked\r\n"+
		"Content-Encoding: a\r\nContent-Encoding: b\r\nX-One: 5\r\n\r\n2;ext=\"x\"\r\nok\r\n0\r\nX-T: t\r\n\r\n", false)
	for range 2 { // the second time on the same connection
		outcome, resp := sendOrder(p, "GET", "/")
		if outcome != Answered || resp.StatusCode() != 299 || string(resp.Body()) != "ok" {
			t.Fatalf("%v, status %d, body %q", outcome, resp.StatusCode(), resp.Body())
		}
		if m := string(resp.Header.StatusMessage()); m != "Quite Fine" {
			t.Errorf("reason %q", m)
		}
		want := []string{
			"Content-Length: 2", "Content-Encoding: a, b", "Server: shop", "Set-Cookie: b=2; Path=/", "Set-Cookie: a=1",
			"Date: Tue, 11 Nov 2025 00:00:00 GMT", "X-One: 1", "X-Two: 2", "X-One: 3", "X-One: 4", "X-One: 5",
		}
		if got := fieldsOf(&resp.Header); !slices.Equal(got, want) {
			t.Errorf("fields\n%q, want\n%q", got, want)
		}
		if resp.ConnectionClose() {
			t.Error("the client's connection is to be closed")
		}
	}
	checkConns(t, p, 0, 1)
}

// Bodies of every framing arrive whole, read whole or as a stream, and the connection is used again where the end of
// the body is known.
func TestTransport_BodyOfEveryFramingArrivesWhole(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 20<<10) // 320 KiB
	cases := map[string]struct {
		response, body string
		closes         bool
	}{
		"empty": {response: ok("")},
		"small": {response: ok("x"), body: "x"},
		"large": {response: ok(big), body: big},
		"chunked": {response: status200 + "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n",
			body: "abc0123456789"},
		"large chunk":       {response: fmt.Sprintf(chunkedHead+"%X\r\n%s\r\n0\r\nA: b\r\n\r\n", len(big), big), body: big},
		"empty chunked":     {response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		"until close":       {response: "HTTP/1.1 200 OK\r\n\r\nabc", body: "abc", closes: true},
		"large until close": {response: "HTTP/1.0 200 OK\r\n\r\n" + big, body: big, closes: true},
		"without a reason":  {response: "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", body: "x"},
		"after interim":     {response: "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 H\r\nLink: x\r\n\r\n" + ok("x"), body: "x"},
		"large head": {response: status200 + "X: " + strings.Repeat("h", 60<<10) + "\r\nContent-Length: 1\r\n\r\nx",
			body: "x"},
		"large, closes after": {response: strings.Replace(ok(big), "\r\n", "\r\nConnection: close\r\n", 1),
			body: big, closes: true},
	}
	for name, c := range cases {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				t.Parallel()
				p := answering(t, c.response, c.closes)
				for range 2 {
					req := newPage("/")
					req.Whole = !stream
					if o, body := sendAndRead(p, req); o != Answered || body != c.body {
						t.Fatalf("%v, %d bytes of body, want %d", o, len(body), len(c.body))
					}
				}
				kept := 1
				if c.closes {
					kept = 0
				}
				checkConns(t, p, 0, kept)
			})
		}
	}
}

// hears is a client that keeps the interim responses.
type hears struct{ heard []string }

func (*hears) Gone() bool { return false }

func (h *hears) Interim(head []byte) { h.heard = append(h.heard, string(head)) }

// RFC 9110, section 15.2: a proxy forwards 1xx responses, but for the 100 that it has asked for itself. Fields of one
// hop, and of framing, are not theirs to hand on.
func TestInterim_ReachesTheClientBeforeTheResponse(t *testing.T) {
	p := answering(t, "HTTP/1.1 100 C\r\n\r\nHTTP/1.0 103 Early Hints\r\nConnection: x-a, close\r\nX-A: 1\r\n"+
		"Content-Length: 9\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 P\r\n\r\n"+ok("x"), false)
	client := &hears{}
	req := newPage("/")
	req.Client = client
	if o, body := sendAndRead(p, req); o != Answered || body != "x" {
		t.Fatalf("%v, %q", o, body)
	}
	want := []string{"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n", "HTTP/1.1 102 P\r\n\r\n"}
	if !slices.Equal(client.heard, want) {
		t.Errorf("the client hears %q, want %q", client.heard, want)
	}
}

// What ContentLength says is what the client is to be told, in every form of a response.
func TestTransport_ContentLengthDescribesTheBody(t *testing.T) {
	const atOnce = status200 + "X-Accel-Buffering: no\r\n"
	big := strings.Repeat("x", streamFrom+1)
	for name, c := range map[string]struct {
		method, response string
		stream           bool
		want             int
	}{
		"counted":             {"GET", ok("abc"), true, 3},
		"chunked, read whole": {"GET", chunkedHead + "3\r\nabc\r\n0\r\n\r\n", false, 3},
		"chunked, at once":    {"GET", chunkedHead + "3\r\nabc\r\n0\r\n\r\n", true, 3},
		"chunked, streamed":   {"GET", atOnce + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true, -1},
		"closed, read whole":  {"GET", "HTTP/1.1 200 OK\r\n\r\nabc", false, 3},
		"closed, streamed":    {"GET", atOnce + "\r\nabc", true, -1},
		"large":               {"GET", ok(big), true, len(big)},
		"named by Connection": {"GET", status200 + "Connection: content-length\r\nContent-Length: 3\r\n\r\nabc", true, 3},
		"HEAD":                {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 123\r\n\r\n", true, 123},
	} {
		req := newPage("/")
		req.HTTP.Header.SetMethod(c.method)
		req.Whole = !c.stream
		resp := new(fasthttp.Response)
		if o := answering(t, c.response, true).Send(req, resp); o != Answered || resp.Header.ContentLength() != c.want {
			t.Errorf("%s: %v, length %d, want %d", name, o, resp.Header.ContentLength(), c.want)
		}
		if resp.Header.Peek("Transfer-Encoding") != nil {
			t.Errorf("%s: a hop's field was kept", name)
		}
		resp.CloseBodyStream()
	}
}

// A response with a doubt about it is no response. The outcome is unknown, and the connection is closed.
func TestTransport_MalformedResponseIsBroken(t *testing.T) {
	for name, response := range malformed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := answering(t, response, true)
			o, resp := sendOrder(p, "POST", "/")
			resp.Header.SetNoDefaultContentType(true)
			if o != Broken || len(resp.Body()) != 0 || len(fieldsOf(&resp.Header)) != 0 {
				t.Errorf("%v, status %d, body %.50q, fields %q", o, resp.StatusCode(), resp.Body(), fieldsOf(&resp.Header))
			}
			checkConns(t, p, 0, 0)
		})
	}
}

// malformed are responses that leave a doubt.
var malformed = map[string]string{
	"nothing":                 "",
	"empty line first":        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"version 2":               "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
	"version 1.2":             "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n",
	"lower-case version":      "http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"two spaces":              "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
	"status of two digits":    "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
	"status of four digits":   "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
	"status with a sign":      "HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n",
	"status 099":              "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
	"status 600":              "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
	"control byte in reason":  "HTTP/1.1 200 O\x00K\r\nContent-Length: 0\r\n\r\n",
	"bare CR in reason":       "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
	"bare LF":                 "HTTP/1.1 200 OK\r\nA: b\nContent-Length: 0\r\n\r\n",
	"bare LF behind one byte": "HTTP/1.1 200 OK\r\n0\n\r\nContent-Length: 0\r\n\r\n",
	"bare CR in a value":      "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: x\r\nContent-Length: 0\r\n\r\n",
	"NUL in a value":          "HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 0\r\n\r\n",
	"DEL in a value":          "HTTP/1.1 200 OK\r\nA: b\x7f\r\nContent-Length: 0\r\n\r\n",
	"CR in a named field":     "HTTP/1.1 200 OK\r\nConnection: A\r\nA: b\r\r\nContent-Length: 0\r\n\r\n",
	"CR in a hop's field":     "HTTP/1.1 200 OK\r\nKeep-Alive: b\r\r\nContent-Length: 0\r\n\r\n",
	"CR in an interim field":  "HTTP/1.1 103 Hints\r\nA: b\r\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"folded line":             "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
	"folded first line":       "HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 0\r\n\r\n",
	"no colon":                "HTTP/1.1 200 OK\r\nA\r\nContent-Length: 0\r\n\r\n",
	"empty name":              "HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 0\r\n\r\n",
	"space before the colon":  "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
	"space in a name":         "HTTP/1.1 200 OK\r\nA B: b\r\nContent-Length: 0\r\n\r\n",
	"high byte in a name":     "HTTP/1.1 200 OK\r\n\xc3\xa4: b\r\nContent-Length: 0\r\n\r\n",
	"empty length":            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
	"signed length":           "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
	"negative length":         "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	"zero-led length":         "HTTP/1.1 200 OK\r\nContent-Length: 01\r\n\r\nx",
	"hexadecimal length":      "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\nx",
	"list of lengths":         "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx",
	"overflowing length":      "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\nx",
	"length twice":            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
	"length and coding":       status200 + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"coding twice":            status200 + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"coding gzip":             "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"coding identity":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx",
	"coding empty":            "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nx",
	"coding with VT":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"coding on HTTP/1.0":      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"shorter than it says":    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
	"cut chunk":               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	"no last chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
	"cut trailer":             chunkedHead + "2\r\nab\r\n0\r\nA: b\r\n",
	"malformed trailer":       chunkedHead + "2\r\nab\r\n0\r\nA b\r\n\r\n",
	"chunk of no size":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n0\r\n\r\n",
	"chunk size in two parts": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 0\r\nab\r\n0\r\n\r\n",
	"blank before a size":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 2\r\nab\r\n0\r\n\r\n",
	"chunk size 0x2":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n",
	"chunk without an end":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab0\r\n\r\n",
	"CR in an extension":      chunkedHead + "2;a\rb\r\nab\r\n0\r\n\r\n",
	"endless extension":       chunkedHead + "2;" + strings.Repeat("a", 300) + "\r\nab\r\n0\r\n\r\n",
	"endless trailers":        chunkedHead + "0\r\n" + strings.Repeat("A: b\r\n", 3000) + "\r\n",
	"endless head":            "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 11000) + "\r\n",
	"endless line":            "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 66000) + "\r\n\r\n",
	"too many fields":         status200 + "Content-Length: 0\r\n" + strings.Repeat("A: b\r\n", maxFields) + "\r\n",
	"too many named fields": status200 + "Content-Length: 0\r\nConnection: " +
		strings.Repeat("a,", maxNamed+1) + "\r\n\r\n",
	"endless interim responses": strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1) + ok("x"),
	"101 unasked":               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}

// A response to HEAD, a 304 and a 204 have no body, whatever their fields announce.
func TestTransport_BodilessResponseKeepsItsLength(t *testing.T) {
	for _, c := range []struct {
		method, response, length string
	}{
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 123\r\n\r\n", "123"},
		{"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"HEAD", "HTTP/1.1 200 OK\r\n\r\n", ""},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 123\r\n\r\n", "123"},
		{"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", ""},
	} {
		p := answering(t, c.response, false)
		for range 2 {
			outcome, resp := sendOrder(p, c.method, "/")
			if outcome != Answered || len(resp.Body()) != 0 {
				t.Fatalf("%s %q: outcome %d, body %q", c.method, c.response, outcome, resp.Body())
			}
			var wire bytes.Buffer
			w := bufio.NewWriter(&wire)
			resp.Write(w)
			w.Flush()
			_, rest, found := strings.Cut(wire.String(), "Content-Length: ")
			if got, _, _ := strings.Cut(rest, "\r\n"); got != c.length || found != (c.length != "") {
				t.Errorf("%s %q becomes %q", c.method, c.response, wire.String())
			}
			if !strings.HasSuffix(wire.String(), "\r\n\r\n") || strings.Contains(wire.String(), "Content-Type") {
				t.Errorf("%s %q becomes %q", c.method, c.response, wire.String())
			}
		}
		checkConns(t, p, 0, 1)
	}
}

// The responses to many orders at once have a bound.
func TestTransport_WholeResponseOverOneMiBIsBroken(t *testing.T) {
	for n, want := range map[int]Outcome{MaxWhole: Answered, MaxWhole + 1: Broken} {
		p := newPool(t, options(largeAnswers(t, n).url()))
		for _, target := range []string{"/counted", "/chunked", "/closed"} {
			if outcome, _ := sendOrder(p, "GET", target); outcome != want {
				t.Errorf("%s, %d bytes: %v, want %v", target, n, outcome, want)
			}
		}
	}
}
