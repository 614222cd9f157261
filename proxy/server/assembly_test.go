package server

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Requests put together from good and bad parts meet combinations that flipping bytes does not.
var (
	someLines = []string{
		"GET / HTTP/1.1", "POST /a?b=%20 HTTP/1.1", "OPTIONS * HTTP/1.1", "GET http://shop/b HTTP/1.1",
		"OPTIONS http://SHOP HTTP/1.1",
		"PUT /a HTTP/1.0", "GET http://other/ HTTP/1.1", "GET //a HTTP/1.1", "HEAD /%0a HTTP/1.1", "GET /%zz HTTP/1.1",
		"GET /a#b HTTP/1.1",
		"get / HTTP/1.1", "GET / HTTP/2.0", "GET /  HTTP/1.1", "GET * HTTP/1.1", "DELETE /" + strings.Repeat("a", 127) +
			" HTTP/1.1",
	}
	someFields = []string{
		"Host: shop", "Host: shop", "Host: shop", "host:\tSHOP ", "Host: other", "Host: a@b", "Host:",
		"Content-Length: 5", "Content-Length: 5", "content-length:5", "Content-Length: 0", "Content-Length: 05",
		"Content-Length: 5,5",
		"Transfer-Encoding: chunked", "Transfer-Encoding: chunked", "transfer-encoding: CHUNKED",
		"Transfer-Encoding: gzip", "Transfer_Encoding: chunked",
		"Connection: close", "Connection: keep-alive", "Connection: upgrade,te", "Connection: Cookie", "Connection: a b",
		"Upgrade: h2c",
		"Expect: 100-Continue", "Expect: x", "Trailer: a", "Accept: */*", "X_User_Id: 7", "X_Foo: 7", "A : b", " folded",
		"A: \x00", "A: b\rc",
		"Long: " + strings.Repeat("x", 300), "Cookie: a=b; c=\xff", "A:", ":", "A", "Content-Type: a/b", "content-type:a/b",
	}
	someBodies = []string{
		"", "", "hello", "5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "00\r\n\r\n", "5;a\r\nhello\r\n0\r\n\r\n",
		"5\r\nhello\r\n0\r\nA: b\r\n\r\n", "hell", "f\r\nhello", "\r\n",
	}
	someEnds = []string{"\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n",
		"\n", "\r"}
)

func drawRequest(t *rapid.T) string {
	var b strings.Builder
	end := func() string { return rapid.SampledFrom(someEnds).Draw(t, "end") }
	b.WriteString(rapid.SampledFrom(someLines).Draw(t, "line") + end())
	if rapid.IntRange(0, 9).Draw(t, "host") > 0 {
		b.WriteString("Host: shop\r\n")
	}
	for _, field := range rapid.SliceOfN(rapid.SampledFrom(someFields), 0, 4).Draw(t, "fields") {
		b.WriteString(field + end())
	}
	b.WriteString(end() + rapid.SampledFrom(someBodies).Draw(t, "body"))
	return b.String()
}

func TestParser_AgreesWithTheReferenceOnAssembledRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw := ""
		for range rapid.IntRange(1, 3).Draw(rt, "requests") {
			raw += drawRequest(rt)
		}
		want := play(small, []byte(raw), 1<<20, 4096)
		ref := agree(t, small, []byte(raw), 1+rapid.IntRange(0, 99).Draw(rt, "pieces"))
		for _, n := range []int{1, 13} {
			if got := play(small, []byte(raw), n, 64); !got.equal(want) {
				rt.Fatalf("%q in pieces of %d: %+v, want %+v", raw, n, got, want)
			}
		}
		for i := range want.whole {
			want.parsed(t, i, ref.bodies[i])
		}
	})
}
