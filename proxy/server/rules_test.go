package server

import (
	"strings"
	"testing"
)

// get is a request with the given field lines behind Host; post the same with a body.
func get(fields ...string) string {
	return "GET /a HTTP/1.1\r\nHost: shop\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

func post(body string, fields ...string) string {
	return "POST /a HTTP/1.1\r\nHost: shop\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n" + body
}

func line(l string) string { return l + "\r\nHost: shop\r\n\r\n" }

func host(h string) string { return "GET / HTTP/1.1\r\nHost: " + h + "\r\n\r\n" }

func chunked(body string) string { return post(body, "Transfer-Encoding: chunked") }

// rejected are heads that are rejected, whatever their bodies.
var rejected = []struct {
	raw  string
	rule Rule
}{
	{"\r\n\r\n" + get(), emptyLine},
	{"\n" + get(), bareLF},
	{"\r" + get(), bareCR},
	{"GET / HTTP/1.1\nHost: shop\r\n\r\n", bareLF},
	{"GET / HTTP/1.1\r\nHost: shop\n\r\n", bareLF},
	{"GET / HTTP/1.1\r\nHost: shop\r\n\n", bareLF},
	{get("A: b\rc"), bareCR},
	{get("A: b\r\rc"), bareCR},
	{get("A: b\x00c"), nulByte},
	{get("A\x00B: c"), nulByte},
	{get("A: b\x01"), controlByte},
	{get("A: 0123456789\x7f"), controlByte},
	{get("A: 0123456789\x0b0123456789"), controlByte},
	{"\x16\x03\x01\x02\x00\x01", badMethod},
	{" GET / HTTP/1.1\r\n", badMethod},

	{line("GET /"), badRequestLine},
	{line("GET"), badRequestLine},
	{line("GET  / HTTP/1.1"), badRequestLine},
	{line("GET /  HTTP/1.1"), badVersion},
	{line("GET / HTTP/1.1 "), badVersion},
	{line("GET\t/ HTTP/1.1"), badRequestLine},
	{line("GET\x00/ HTTP/1.1"), nulByte},
	{line("GET /\tHTTP/1.1"), badRequestLine},
	{line("GET / http/1.1"), badVersion},
	{line("GET / HTTP/1.10"), badVersion},
	{line("GET / HTTP/+1.1"), badVersion},
	{line("GET / HTTP/a.1"), badVersion},
	{line("GET / HTTP/1.:"), badVersion},
	{line("GET / HTTP/1.1\x00"), nulByte},
	{line("GET / FTP/1.1"), badVersion},
	{line("GET / HTTP/2.0"), unknownVersion},
	{line("GET / HTTP/1.2"), unknownVersion},
	{line("GET / HTTP/0.9"), unknownVersion},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", unknownVersion},
	{line("G@T / HTTP/1.1"), badMethod},
	{line("GET\"X / HTTP/1.1"), badMethod},
	{line("TRACE / HTTP/1.1"), traceMethod},
	{line("CONNECT shop:443 HTTP/1.1"), connectMethod},

	{line("GET /" + strings.Repeat("a", 128) + " HTTP/1.1"), targetTooLong},
	{line("GET /" + strings.Repeat("a", 5000) + " HTTP/1.1"), targetTooLong},
	{line("GET a HTTP/1.1"), badTarget},
	{line("GET shop:80 HTTP/1.1"), badTarget},
	{line("GET * HTTP/1.1"), badTarget},
	{line("OPTIONS ** HTTP/1.1"), badTarget},
	{line("GET /a#b HTTP/1.1"), badTarget},
	{line("GET /\xc3\xa4 HTTP/1.1"), badTarget},
	{line("GET /\x7f HTTP/1.1"), badTarget},
	{line("GET /\x01 HTTP/1.1"), badTarget},
	{line("GET /%00 HTTP/1.1"), encodedControl},
	{line("GET /%41%00 HTTP/1.1"), encodedControl},
	{line("GET /a?b=%0d HTTP/1.1"), encodedControl},
	{line("GET /%0A HTTP/1.1"), encodedControl},
	{line("GET /%%00 HTTP/1.1"), encodedControl},
	{line("GET /%%0%0D HTTP/1.1"), encodedControl},
	{line("GET http://shop/%0a HTTP/1.1"), encodedControl},
	{line("GET http://shop?%00 HTTP/1.1"), encodedControl},
	{line("GET http://other/ HTTP/1.1"), targetNotHost},
	{line("GET http://chop/ HTTP/1.1"), targetNotHost},
	{line("GET http://shop:80/ HTTP/1.1"), targetNotHost},
	{"GET http://shop/ HTTP/1.0\r\n\r\n", targetNotHost},
	{line("GET http://a@shop/ HTTP/1.1"), badTarget},
	{line("GET http:///a HTTP/1.1"), badTarget},
	{line("GET http://shop#a HTTP/1.1"), badTarget},
	{line("GET http:/shop/ HTTP/1.1"), badTarget},
	{line("GET http\x1a//shop/ HTTP/1.1"), badTarget},
	{line("GET ftp://shop/ HTTP/1.1"), badTarget},

	{get("A: " + strings.Repeat("b", 1000)), headerTooLarge},
	{get("A: " + strings.Repeat("b", 1025-len(get("A: ")))), headerTooLarge},
	{get(strings.Repeat("A: b\r\n", 200) + "C: d"), headerTooLarge},
	{get(strings.Repeat("A", 5000)), headerTooLarge},
	{get("A: b", " c"), obsFold},
	{get("A: b", "\tc: d"), obsFold},
	{"GET / HTTP/1.1\r\n Host: shop\r\n\r\n", obsFold},
	{get(": b"), badName},
	{get("A"), badName},
	{get("A\xff: b"), badName},
	{get("A(b): c"), badName},
	{get("A : b"), spaceInName},
	{get("Content-Length : 0"), spaceInName},
	{get("A\t: b"), spaceInName},
	{get("A b: c"), spaceInName},
	{get("Content_Length: 5"), underscoreAlias},
	{get("TRANSFER_ENCODING: chunked"), underscoreAlias},
	{get("Content.Length: 5"), underscoreAlias},
	{get("Keep_Alive: timeout=5"), underscoreAlias},
	{get("Proxy_Connection: close"), underscoreAlias},
	{get("HTTP2_Settings: a"), underscoreAlias},

	{"GET / HTTP/1.1\r\n\r\n", hostMissing},
	{get("Host: shop"), hostTwice},
	{get("hOST: other"), hostTwice},
	{host(""), hostEmpty},
	{"GET / HTTP/1.0\r\nHost:\r\n\r\n", hostEmpty},
	{host(" \t"), hostEmpty},
	{host("user@shop"), badHost},
	{host("shop/a"), badHost},
	{host("shop,other"), badHost},
	{host("shop other"), badHost},
	{host("shop:"), badHost},
	{host(":80"), badHost},
	{host("shop:8a"), badHost},
	{host("shop:65536"), badHost},
	{host("shop:000080"), badHost},
	{host("[::1"), badHost},
	{host("[::1]x"), badHost},
	{host("[::1%25eth0]"), badHost},
	{host("[1.2.3.4]"), badHost},
	{host("::1"), badHost},
	{host("sh%6fp"), badHost},
	{host("sh\xf6p"), badHost},
	{host("shop?"), badHost},

	{post("abc", "Content-Length: 3", "Content-Length: 3"), lengthTwice},
	{post("abc", "Content-Length: 0", "content-length: 3"), lengthTwice},
	{post("abc", "Content-Length: +3"), badLength},
	{post("abc", "Content-Length: -3"), badLength},
	{post("abc", "Content-Length: 3 3"), badLength},
	{post("abc", "Content-Length: 3, 3"), badLength},
	{post("abc", "Content-Length: 03"), badLength},
	{post("abc", "Content-Length: 00"), badLength},
	{post("abc", "Content-Length:"), badLength},
	{post("abc", "Content-Length: 0x3"), badLength},
	{post("abc", "Content-Length: 9223372036854775808"), badLength},
	{post("abc", "Content-Length: 99999999999999999999"), badLength},
	{post("0\r\n\r\n", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), codingTwice},
	{post("", "Transfer-Encoding: identity"), badCoding},
	{post("", "Transfer-Encoding: gzip, chunked"), badCoding},
	{post("", "Transfer-Encoding: chunked, identity"), badCoding},
	{post("", "Transfer-Encoding: chunked,"), badCoding},
	{post("", "Transfer-Encoding: \"chunked\""), badCoding},
	{post("", "Transfer-Encoding: xchunked"), badCoding},
	{post("", "Transfer-Encoding:"), badCoding},
	{post("", "Transfer-Encoding: chunked;q=1"), badCoding},
	{"POST / HTTP/1.0\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", codingOnHTTP10},
	{post("0\r\n\r\n", "Content-Length: 5", "Transfer-Encoding: chunked"), codingAndLength},
	{post("0\r\n\r\n", "Transfer-Encoding: chunked", "Content-Length: 5"), codingAndLength},
	{post("0\r\n\r\n", "Trailer: A", "Transfer-Encoding: chunked"), trailer},
	{post("a=1", "Content-Length: 3", "Content-Type: text/plain", "Content-Type: text/plain"), contentTypeTwice},
	{post("a=1", "content-type: application/json", "Content-Length: 3", "CONTENT-TYPE:"), contentTypeTwice},
	{post("", "Content-Type:", "Content-Type: a/b"), contentTypeTwice},

	{get("Connection: Host"), connectionNamesHeader},
	{get("Connection: close, Content-Length"), connectionNamesHeader},
	{get("Connection: cookie"), connectionNamesHeader},
	{get("Connection: Authorization"), connectionNamesHeader},
	{get("Connection: keep-alive", "Connection: X-Forwarded-For"), connectionNamesHeader},
	{get("Connection: X_Real_IP"), connectionNamesHeader},
	{get("Connection: Sluice-Reservation"), connectionNamesHeader},
	{get("Connection: ,,Idempotency-Key"), connectionNamesHeader},
	{get("Connection: Transfer-Encoding"), connectionNamesHeader},
	{get("Connection: X-User-ID"), connectionNamesHeader},
	{get("Connection: close keep-alive"), badConnection},
	{get("Connection: close;"), badConnection},
	{get("Expect: 200-ok"), badExpectation},
	{get("Expect:"), badExpectation},
	{get("Expect: 100-continue", "Expect: 100-continue"), badExpectation},

	{"GET / HTTP/1.1\r\nHost: sh", headCutShort},
	{"GET", headCutShort},
	{get()[:len(get())-1], headCutShort},
}

func TestParser_RejectsBrokenHeads(t *testing.T) {
	for _, c := range rejected {
		got := play(small, []byte(c.raw), 1<<20, 4096)
		if got.verdict() != c.rule {
			t.Errorf("%q: %v, want %v", c.raw, got.err, c.rule)
		}
		if len(got.whole) > 0 {
			t.Errorf("%q: handed on %q", c.raw, got.whole)
		}
	}
}

func TestParser_HandsOnNothingOfARejectedHead(t *testing.T) {
	for _, c := range rejected {
		if got := play(small, []byte(c.raw), 1<<20, 4096); got.begun != (message{}) {
			t.Errorf("%q: handed on %q before the rejection", c.raw, got.begun)
		}
	}
}

func TestRule_HasACaseALabelAndAStatus(t *testing.T) {
	want := map[Rule]int{
		traceMethod: 405, headLate: 408, targetTooLong: 414, badExpectation: 417, headerTooLarge: 431,
		connectMethod: 501, unknownVersion: 505,
	}
	// See TestReader_LateHeadIs408AndAnIdleConnectionIsNot, and e2e.
	seen := map[Rule]bool{headLate: true, plainOnTLS: true, otherReading: true}
	for _, c := range rejected {
		seen[c.rule] = true
	}
	for _, c := range breaches {
		seen[c.rule] = true
	}
	names := map[string]bool{}
	for rule := fine + 1; rule < numRules; rule++ {
		v := rule.err()
		if status := max(want[rule], 400); v.Status != status || v.Rule != rule {
			t.Errorf("%v: %d, want %d", rule, v.Status, status)
		}
		if !seen[rule] {
			t.Errorf("%v: no case breaks this rule", rule)
		}
		if names[rule.String()] || strings.ToLower(rule.String()) != rule.String() {
			t.Errorf("%v: not a name of its own in snake_case", rule)
		}
		names[rule.String()] = true
		if text := rule.Text(); text == "" || names[text] || !strings.HasSuffix(v.Error(), text) {
			t.Errorf("%v: %q is no text of its own in %q", rule, text, v)
		}
		names[rule.Text()] = true
	}
	if fine.String() != "none" || numRules.String() != "unknown" {
		t.Errorf("values that are no rule are called %q and %q", fine, numRules)
	}
}
