package server

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

// dateRE is the field that the server adds.
var dateRE = regexp.MustCompile(`Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

func TestResponse_IsWholeForEachRequest(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		status := 200
		_, addr := e.start(t, &handler{handle: func(x *served) {
			Begin(x.Forwarded, status)
			x.Forwarded.Header.Add("date", "now") // fasthttp takes none
			x.Forwarded.Header.Add("ETag", "b")
			x.Forwarded.AppendBodyString("hey")
		}}, long)
		const fields = "ETag: b\r\nDate: DATE\r\n"
		for _, c := range []struct {
			raw    string
			status int
			want   string
		}{
			{get(), 200, "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: 3\r\n\r\nhey"},
			{line("HEAD / HTTP/1.1"), 200, "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: 3\r\n\r\n"},
			{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 409, "HTTP/1.1 409 Conflict\r\n" + fields +
				"Content-Length: 3\r\nConnection: keep-alive\r\n\r\nhey"},
			{get(), 204, "HTTP/1.1 204 No Content\r\n" + fields + "\r\n"},
			{get(), 304, "HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n"},
		} {
			status = c.status
			last := "HTTP/1.1 " // the same, once more, and no byte of the one before it
			got := converse(t, addr, c.raw+get("Connection: close"))
			got = dateRE.ReplaceAllString(got, "Date: DATE\r\n")
			if !strings.HasPrefix(got, c.want+last) || !strings.Contains(got[len(c.want):], "Connection: close\r\n") {
				t.Errorf("%q: %q, want %q", c.raw, got, c.want)
			}
		}
	})
}

// An answer does not leak into the one that follows it on the same connection.
func TestExchange_AnswersDoNotStay(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{handle: func(x *served) {
			if string(x.Request.Path) == "/local" {
				answerText(x, 429, "local")
				return
			}
			if x.Forwarded.StatusCode() != 200 || len(x.Forwarded.Body()) > 0 {
				t.Errorf("an answer is there before the handler: %d", x.Forwarded.StatusCode())
			}
			x.Forwarded.SetStatusCode(201)
			x.Forwarded.SetBodyString("forwarded")
		}}, long)
		c := connect(t, addr)
		for range 3 {
			c.send(line("GET /local HTTP/1.1"))
			c.expect(429, "local")
			c.send(get())
			c.expect(201, "forwarded")
		}
	})
}

func TestRead_ReadsTextAsAConnectionWould(t *testing.T) {
	peer := netip.MustParseAddr("203.0.113.9")
	c, err := Read(post("hello", "Content-Length: 5", "Expect: 100-continue"), peer, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := bodyOf(c)
	if err != nil || string(body) != "hello" || string(c.Request().Path) != "/a" || c.Peer() != peer ||
		c.Requests() != 1 || c.Gone() {
		t.Errorf("%s, %q, %v", c.Request().Path, body, err)
	}
	if _, err := Read("GET /\r\n", peer, Limits{}); err != badRequestLine.err() {
		t.Error(err)
	}
	if _, err := Read("", peer, Limits{}); err == nil {
		t.Error("no request is one")
	}
}
