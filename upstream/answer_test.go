package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// answering is a shop that gives every request the same answer, and closes if that says nothing else.
func answering(t *testing.T, answer string, closes bool) *Pool {
	shop := newRawShop(t, func(v *visit) {
		for {
			if _, _, err := v.request(); err != nil {
				return
			}
			v.say(answer)
			if closes {
				return
			}
		}
	})
	return newPool(t, options(shop.url()))
}

// fields lists an answer's header as the client will see it.
func fields(h *fasthttp.ResponseHeader) []string {
	var all []string
	for k, v := range h.All() {
		all = append(all, fmt.Sprintf("%s: %s", k, v))
	}
	return all
}

func TestAnswerKeepsWhatIsForTheClientAndNothingElse(t *testing.T) {
	p := answering(t, "HTTP/1.1 299 Quite Fine\r\nDate: Tue, 11 Nov 2025 00:00:00 GMT\r\nServer: shop\r\n"+
		"Set-Cookie: b=2; Path=/\r\nX-One: 1\r\nset-cookie: a=1\r\nX-Two:\t2 \r\nX-One: 3\r\n"+
		"Connection: keep-alive, X-Secret\r\nX-Secret: s\r\nKeep-Alive: timeout=5\r\nProxy-Connection: a\r\nTE: trailers\r\n"+
		"Trailer: X-T\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\nContent-Encoding: a\r\nContent-Encoding: b\r\n\r\n"+
		"2;ext=\"x\"\r\nok\r\n0\r\nX-T: t\r\n\r\n", false)
	for range 2 { // the second time on the same connection
		outcome, resp := sendFor(p, "GET", "/")
		if outcome != proxy.Answered || resp.StatusCode() != 299 || string(resp.Body()) != "ok" {
			t.Fatalf("outcome %d, status %d, body %q", outcome, resp.StatusCode(), resp.Body())
		}
		if m := string(resp.Header.StatusMessage()); m != "Quite Fine" {
			t.Errorf("reason %q", m)
		}
		want := []string{
			"Content-Encoding: a, b", "Server: shop", "Set-Cookie: b=2; Path=/", "Set-Cookie: a=1",
			"Date: Tue, 11 Nov 2025 00:00:00 GMT", "X-One: 1", "X-Two: 2", "X-One: 3",
		}
		if got := fields(&resp.Header); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("fields\n%q, want\n%q", got, want)
		}
		if resp.ConnectionClose() {
			t.Error("the client's connection is to be closed")
		}
	}
	if st := p.Targets()[0]; st.Open != 1 || st.Idle != 1 {
		t.Errorf("connection was not kept: %+v", st)
	}
}

// Bodies of every framing arrive whole, read whole or as a stream, and the connection is used again
// where the end of the body is known.
func TestBodyArrivesWhole(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 20<<10) // 320 KiB
	cases := map[string]struct {
		answer, body string
		closes       bool
	}{
		"empty":               {answer: ok("")},
		"small":               {answer: ok("x"), body: "x"},
		"large":               {answer: ok(big), body: big},
		"chunked":             {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n", body: "abc0123456789"},
		"large chunk":         {answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%X\r\n%s\r\n0\r\nA: b\r\n\r\n", len(big), big), body: big},
		"empty chunked":       {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		"until close":         {answer: "HTTP/1.1 200 OK\r\n\r\nabc", body: "abc", closes: true},
		"large until close":   {answer: "HTTP/1.0 200 OK\r\n\r\n" + big, body: big, closes: true},
		"without a reason":    {answer: "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", body: "x"},
		"after interim":       {answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok("x"), body: "x"},
		"large head":          {answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("h", 60<<10) + "\r\nContent-Length: 1\r\n\r\nx", body: "x"},
		"large, closes after": {answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(big), big), body: big, closes: true},
	}
	for name, c := range cases {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				t.Parallel()
				p := answering(t, c.answer, c.closes)
				for range 2 {
					if o, body := sendAndClose(p, stream); o != proxy.Answered || body != c.body {
						t.Fatalf("outcome %d, %d bytes of body, want %d", o, len(body), len(c.body))
					}
				}
				kept := 1
				if c.closes {
					kept = 0
				}
				if st := p.Targets()[0]; st.Open != kept || st.InFlight != 0 {
					t.Errorf("%+v, want %d open", st, kept)
				}
			})
		}
	}
}

// An answer with a doubt about it is no answer. The outcome is unknown, and the connection is closed.
func TestDoubtfulAnswerIsBroken(t *testing.T) {
	for name, answer := range doubtful {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := answering(t, answer, true)
			resp := new(fasthttp.Response)
			resp.Header.Set("X-Before", "1")
			if o := p.Send(orderFor("POST", "/"), resp); o != proxy.Broken {
				t.Errorf("outcome %d, status %d, body %.50q", o, resp.StatusCode(), resp.Body())
			}
			if len(resp.Header.Peek("X-Before")) == 0 || len(resp.Body()) != 0 {
				t.Error("the response was touched")
			}
			if st := p.Targets()[0]; st.Open != 0 {
				t.Errorf("connection was kept: %+v", st)
			}
		})
	}
}

var doubtful = map[string]string{
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
	"bare CR in a value":      "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: x\r\nContent-Length: 0\r\n\r\n",
	"NUL in a value":          "HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 0\r\n\r\n",
	"DEL in a value":          "HTTP/1.1 200 OK\r\nA: b\x7f\r\nContent-Length: 0\r\n\r\n",
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
	"length and coding":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"coding twice":            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"coding gzip":             "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"coding identity":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx",
	"coding empty":            "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nx",
	"coding with VT":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"coding on HTTP/1.0":      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"shorter than it says":    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
	"cut chunk":               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	"no last chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
	"cut trailer":             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n",
	"malformed trailer":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA b\r\n\r\n",
	"chunk of no size":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n0\r\n\r\n",
	"chunk size with a space": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nab\r\n0\r\n\r\n",
	"chunk size 0x2":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n",
	"chunk without an end":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab0\r\n\r\n",
	"CR in an extension":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a\rb\r\nab\r\n0\r\n\r\n",
	"endless extension":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("a", 300) + "\r\nab\r\n0\r\n\r\n",
	"endless trailers":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 3000) + "\r\n",
	"endless head":            "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 11000) + "\r\n",
	"endless line":            "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 66000) + "\r\n\r\n",
	"too many fields":         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + strings.Repeat("A: b\r\n", maxFields) + "\r\n",
	"too many named fields":   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: " + strings.Repeat("a,", maxNamed+1) + "\r\n\r\n",
	"endless interim answers": strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1) + ok("x"),
	"101 unasked":             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}

func TestAnswerOverTheLimitIsBroken(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			switch targetOf(head) {
			case "/counted":
				v.say(ok("12345"))
			case "/chunked":
				v.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n")
			default:
				v.say("HTTP/1.1 200 OK\r\n\r\n12345")
				return
			}
		}
	})
	for most, want := range map[int]proxy.Outcome{4: proxy.Broken, 5: proxy.Answered} {
		o := options(shop.url())
		o.MaxAnswer = most
		p := newPool(t, o)
		for _, target := range []string{"/counted", "/chunked", "/closed"} {
			if outcome, _ := sendFor(p, "GET", target); outcome != want {
				t.Errorf("%s, limit %d: outcome %d", target, most, outcome)
			}
		}
	}
}

// A HEAD answer, a 304 and a 204 have no body, whatever their fields announce.
func TestBodilessAnswerKeepsItsLength(t *testing.T) {
	for _, c := range []struct {
		method, answer, length string
	}{
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 123\r\n\r\n", "123"},
		{"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"HEAD", "HTTP/1.1 200 OK\r\n\r\n", ""},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 123\r\n\r\n", "123"},
		{"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", ""},
	} {
		p := answering(t, c.answer, false)
		for range 2 {
			outcome, resp := sendFor(p, c.method, "/")
			if outcome != proxy.Answered || len(resp.Body()) != 0 {
				t.Fatalf("%s %q: outcome %d, body %q", c.method, c.answer, outcome, resp.Body())
			}
			var wire bytes.Buffer
			w := bufio.NewWriter(&wire)
			resp.Write(w)
			w.Flush()
			_, rest, found := strings.Cut(wire.String(), "Content-Length: ")
			if got, _, _ := strings.Cut(rest, "\r\n"); got != c.length || found != (c.length != "") {
				t.Errorf("%s %q becomes %q", c.method, c.answer, wire.String())
			}
			if !strings.HasSuffix(wire.String(), "\r\n\r\n") || strings.Contains(wire.String(), "Content-Type") {
				t.Errorf("%s %q becomes %q", c.method, c.answer, wire.String())
			}
		}
		if st := p.Targets()[0]; st.Idle != 1 {
			t.Errorf("%s %q: connection was not kept", c.method, c.answer)
		}
	}
}
