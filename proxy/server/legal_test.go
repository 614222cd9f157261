package server

import (
	"io"
	"strings"
	"testing"
)

// canonical are legal requests.
var canonical = []string{
	get(),
	get("Accept: */*", "X-Value: caf\xc3\xa9\ttab", "Empty:", "Odd!#$%&'*+-.^_`|~: x", "X_Foo: 1"),
	get("Connection: keep-alive, , TE", "Connection: HTTP2-Settings", "TE: trailers"),
	get("Content-Length: 0"),
	get("Content-Type: text/plain", "X-Content-Type: text/html", "Content-Typo: a"),
	line("GET /?q=%E5%A4%A7;a=://b&c='\"<>[]{}|^`!~ HTTP/1.1"),
	line("OPTIONS * HTTP/1.1"),
	line("PURGE / HTTP/1.1"),
	line("PROPFIND /dav HTTP/1.1"),
	line("get / HTTP/1.1"),
	line("M-SEARCH! / HTTP/1.1"),
	line("GET //a//b HTTP/1.1"),
	line("GET /?y=100% HTTP/1.1"),
	line("GET /%4g/%u0041/%2F/%2f%5c HTTP/1.1"),
	line("GET /a\\b HTTP/1.1"),
	line("GET http://shop/b?c HTTP/1.1"),
	line("PATCH HTTPS://SHOP/b HTTP/1.1"),
	line("GET http://shop HTTP/1.1"),
	line("GET http://shop?a HTTP/1.1"),
	line("GET http://shop//a HTTP/1.1"),
	line("OPTIONS http://shop HTTP/1.1"),
	line("OPTIONS http://shop?a HTTP/1.1"),
	get("X_Forwarded-For: 1.2.3.4", "X-Forwarded.Proto: https", "Content_Type: a/b", "X_User_Id: 7"),
	get("Expect: 100-Continue"),
	"GET / HTTP/1.0\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
	line("GET /" + strings.Repeat("a", 127) + " HTTP/1.1"),
	get("A: " + strings.Repeat("b", 1024-len(get("A: ")))), // as large as a head may be
	host("Shop.Example.:8080"),
	host("a_b-c.example:65535"),
	host("shop=blue.example:80"),
	host("[2001:db8::1]:443"),
	host("[::ffff:1.2.3.4]"),
	host("192.0.2.1:9"),
	host(" \tshop\t "),
	post("hello", "Content-Length: 5"),
	post("hello", "Content-Length:\t5 "),
	post("hello", "Expect: 100-continue", "Content-Length: 5"),
	post(strings.Repeat("x", 9000), "Content-Length: 9000"),
	strings.Replace(post("hello", "Content-Length: 5"), "POST", "DELETE", 1),
	chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
	chunked("000000000000000a\r\n0123456789\r\n000\r\n\r\n"),
	chunked("A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n"),
	post("0\r\n\r\n", "transfer-encoding: \tChunked "),
	"HEAD / HTTP/1.0\r\nHost: shop\r\nConnection: Keep-Alive\r\n\r\n",
}

func TestParser_HandsOnLegalHeadsUnchanged(t *testing.T) {
	for _, raw := range canonical {
		got := play(small, []byte(raw), 1<<20, 4096)
		head, _, _ := strings.Cut(raw, "\r\n\r\n")
		if got.err != io.EOF || len(got.whole) != 1 || got.whole[0].head != head+"\r\n\r\n" {
			t.Errorf("%q: %q, then %v", raw, got.whole, got.err)
		}
	}
}

// TestParser_DropsOneEmptyLine: see RFC 9112, section 2.2.
func TestParser_DropsOneEmptyLine(t *testing.T) {
	got := play(small, []byte("\r\n"+get()+"\r\n"+get()), 1<<20, 4096)
	if want := (message{get(), ""}); got.err != io.EOF || len(got.whole) != 2 || got.whole[0] != want ||
		got.whole[1] != want {
		t.Errorf("%q, then %v", got.whole, got.err)
	}
}
