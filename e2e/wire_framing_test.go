package e2e

import "strings"

// head makes a request's head of its lines.
func head(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

const (
	toPost  = "POST /a HTTP/1.1"
	toGet   = "GET /a HTTP/1.1"
	host    = "Host: shop"
	chunked = "Transfer-Encoding: chunked"
	hello   = "5\r\nhello\r\n0\r\n\r\n"
	request = "GET /admin HTTP/1.1\r\nHost: shop\r\nX: y\r\n\r\n" // 41 bytes
)

// RFC 9112, section 6: which bytes are the body. Two servers that disagree on this hear different requests.
var framing = []wired{
	{"CL.TE", head(toPost, host, "Content-Length: 6", chunked) + "0\r\n\r\nG", "400 closed", ""},
	{"TE.CL", head(toPost, host, chunked, "Content-Length: 4") + "29\r\n" + request + "\r\n0\r\n\r\n", "400 closed", ""},
	{"length 0 and chunked", head(toPost, host, "Content-Length: 0", chunked) + hello, "400 closed", ""},
	{"chunked on HTTP/1.0", head("POST /a HTTP/1.0", host, chunked) + hello, "400 closed", ""},
	{"chunked in capitals", head(toPost, host, "TRANSFER-ENCODING: CHUNKED") + hello, "200 kept", "POST /a 5"},
	{"chunked twice", head(toPost, host, chunked, chunked) + hello, "400 closed", ""},
	{"chunked and identity", head(toPost, host, chunked, "Transfer-Encoding: identity") + hello, "400 closed", ""},
	{"chunked, chunked", head(toPost, host, "Transfer-Encoding: chunked, chunked") + hello, "400 closed", ""},
	{"chunked, identity", head(toPost, host, "Transfer-Encoding: chunked, identity") + hello, "400 closed", ""},
	{"gzip, chunked", head(toPost, host, "Transfer-Encoding: gzip, chunked") + hello, "400 closed", ""},
	{"gzip alone", head(toPost, host, "Transfer-Encoding: gzip", "Content-Length: 5") + "hello", "400 closed", ""},
	{"xchunked", head(toPost, host, "Transfer-Encoding: xchunked", "Content-Length: 5") + "hello", "400 closed", ""},
	{"identity with a length", head(toPost, host, "Transfer-Encoding: identity", "Content-Length: 5") + "hello", "400 closed", ""},
	{"coding without a value", head(toPost, host, "Transfer-Encoding:", "Content-Length: 5") + "hello", "400 closed", ""},
	{"coding with a parameter", head(toPost, host, "Transfer-Encoding: chunked;q=1") + hello, "400 closed", ""},
	{"coding in quotes", head(toPost, host, `Transfer-Encoding: "chunked"`) + hello, "400 closed", ""},
	{"coding behind a vertical tab", head(toPost, host, "Transfer-Encoding: \x0bchunked") + hello, "400 closed", ""},
	{"coding before a NUL", head(toPost, host, "Transfer-Encoding: chunked\x00") + hello, "400 closed", ""},
	{"coding after a tab", head(toPost, host, "Transfer-Encoding:\tchunked") + hello, "200 kept", "POST /a 5"},
	{"space before the colon", head(toPost, host, "Transfer-Encoding : chunked", "Content-Length: 5") + hello, "400 closed", ""},
	{"coding on a folded line", head(toPost, host, "X: y", " Transfer-Encoding: chunked", "Content-Length: 5") + "hello", "400 closed", ""},
	{"coding folded behind its name", head(toPost, host, "Transfer-Encoding:", " chunked", "Content-Length: 5") + hello, "400 closed", ""},
	{"coding after a bare LF", head(toPost, host, "X: y\n"+chunked, "Content-Length: 5") + "hello", "400 closed", ""},
	{"coding after a bare CR", head(toPost, host, "X: y\r"+chunked, "Content-Length: 5") + "hello", "400 closed", ""},
	{"coding with an underscore", head(toPost, host, "Transfer_Encoding: chunked", "Content-Length: 5") + "hello", "400 closed", ""},
	{"coding with a dot", head(toPost, host, "Transfer.Encoding: chunked", "Content-Length: 5") + "hello", "400 closed", ""},
	{"length twice, equal", head(toPost, host, "Content-Length: 5", "Content-Length: 5") + "hello", "400 closed", ""},
	{"length twice, different", head(toPost, host, "Content-Length: 5", "Content-Length: 0") + "hello", "400 closed", ""},
	{"length as a list", head(toPost, host, "Content-Length: 5, 5") + "hello", "400 closed", ""},
	{"length with a plus", head(toPost, host, "Content-Length: +5") + "hello", "400 closed", ""},
	{"length with a minus", head(toPost, host, "Content-Length: -5") + "hello", "400 closed", ""},
	{"length with a leading zero", head(toPost, host, "Content-Length: 05") + "hello", "400 closed", ""},
	{"length in hexadecimal", head(toPost, host, "Content-Length: 0x5") + "hello", "400 closed", ""},
	{"length with an exponent", head(toPost, host, "Content-Length: 5e0") + "hello", "400 closed", ""},
	{"length with a unit", head(toPost, host, "Content-Length: 5b") + "hello", "400 closed", ""},
	{"length without a value", head(toPost, host, "Content-Length:") + "hello", "400 closed", ""},
	{"length over 64 bits", head(toPost, host, "Content-Length: 18446744073709551621") + "hello", "400 closed", ""},
	{"length with an underscore beside one", head(toPost, host, "Content-Length: 5", "Content_Length: 0") + "hello", "400 closed", ""},
	{"length among spaces", head(toPost, host, "Content-Length: \t 5 \t") + "hello", "200 kept", "POST /a 5"},
}

// What looks like a second request, and whether anybody takes it for one.
var smuggling = []wired{
	{"CL.0: a body that is a request", head(toPost, host, "Content-Length: 41") + request, "200 kept", "POST /a 41"},
	{"CL.0 on GET", head(toGet, host, "Content-Length: 41") + request, "200 kept", "GET /a 41"},
	{"CL.0 on HEAD", head("HEAD /a HTTP/1.1", host, "Content-Length: 41") + request, "200 kept", "HEAD /a 41"},
	{"CL.0 on OPTIONS *", head("OPTIONS * HTTP/1.1", host, "Content-Length: 41") + request, "200 kept", "OPTIONS * 41"},
	{"CL.0 on an order that is refused", head("POST /api/seckill/404/order HTTP/1.1", host, "Content-Length: 41") + request, "404 kept", ""},
	{"chunks of a refused order", head("POST /api/seckill/404/order HTTP/1.1", host, chunked) + "29\r\n" + request + "\r\n0\r\n\r\n", "404 kept", ""},
	{"0.CL: a length that nobody reads", head(toGet, host, "Content-Length : 41") + request, "400 closed", ""},
	{"a body that nobody announced", head(toPost, host) + request, "200 200 kept", "POST /a, GET /admin"},
	{"a byte too many", head(toPost, host, "Content-Length: 5") + "hello!", "200 501 closed", "POST /a 5"},
	{"a line end too many", head(toPost, host, "Content-Length: 5") + "hello\r\n", "200 kept", "POST /a 5"},
	{"behind the last chunk", head(toPost, host, chunked) + hello + request, "200 200 kept", "POST /a 5, GET /admin"},
	{"two requests in one piece", head(toGet, host) + head("GET /b HTTP/1.1", host), "200 200 kept", "GET /a, GET /b"},
	{"an order and a page in one piece", head("POST /api/seckill/1001/order HTTP/1.1", host, "Content-Length: 5") + "hello" + head("GET /b HTTP/1.1", host), "200 200 kept", "POST /api/seckill/1001/order 5, GET /b"},
	{"a good request, then a bad one", head(toGet, host) + head("GET /b HTTP/1.1"), "200 400 closed", "GET /a"},
	{"a bad request, then a good one", head(toGet) + head("GET /b HTTP/1.1", host), "400 closed", ""},
	{"after Connection: close", head(toGet, host, "Connection: close") + head("GET /b HTTP/1.1", host), "200 closed", "GET /a"},
	{"after HTTP/1.0", head("GET /a HTTP/1.0", host) + head("GET /b HTTP/1.1", host), "200 closed", "GET /a"},
	{"HTTP/1.0 with keep-alive", head("GET /a HTTP/1.0", host, "Connection: keep-alive"), "200 kept", "GET /a"},
	{"Expect, and the body at once", head(toPost, host, "Expect: 100-continue", "Content-Length: 5") + "hello", "200 kept", "POST /a 5"},
	{"Expect, and a request as the body", head(toPost, host, "Expect: 100-continue", "Content-Length: 41") + request, "200 kept", "POST /a 41"},
	{"Expect on GET without a body", head(toGet, host, "Expect: 100-continue"), "200 kept", "GET /a"},
	{"Expect twice", head(toPost, host, "Expect: 100-continue", "Expect: 100-continue", "Content-Length: 5") + "hello", "417 closed", ""},
	{"Expect something else", head(toPost, host, "Expect: y 100-continue", "Content-Length: 5") + "hello", "417 closed", ""},
	{"Expect on HTTP/1.0", head("POST /a HTTP/1.0", host, "Expect: 100-continue", "Content-Length: 5") + "hello", "200 closed", "POST /a 5"},
	{"Upgrade to h2c", head(toGet, host, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"), "200 kept", "GET /a"},
	{"Upgrade to h2c among others", head(toGet, host, "Connection: Upgrade", "Upgrade: websocket, h2c"), "200 kept", "GET /a"},
	{"Upgrade that the shop ignores", head(toGet, host, "Connection: Upgrade", "Upgrade: websocket") + head("GET /b HTTP/1.1", host), "200 200 kept", "GET /a, GET /b"},
	{"Upgrade with a body", head(toPost, host, "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 5") + "hello", "200 kept", "POST /a 5"},
	{"Upgrade of an order", head("POST /api/seckill/1001/order HTTP/1.1", host, "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 0"), "400 kept", ""},
}

// RFC 9112, section 7.1.
var chunks = []wired{
	{"two chunks", head(toPost, host, chunked) + "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n", "200 kept", "POST /a 15"},
	{"no chunk but the last", head(toPost, host, chunked) + "0\r\n\r\n", "200 kept", "POST /a"},
	{"chunks on GET", head(toGet, host, chunked) + hello, "200 kept", "GET /a 5"},
	{"leading zeros", head(toPost, host, chunked) + "0005\r\nhello\r\n000\r\n\r\n", "200 kept", "POST /a 5"},
	{"17 digits", head(toPost, host, chunked) + "00000000000000005\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"over 64 bits", head(toPost, host, chunked) + "10000000000000005\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"63 bits and more", head(toPost, host, chunked) + "fffffffffffffff5\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"extension", head(toPost, host, chunked) + "5;a=b\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"extension with a bare LF", head(toPost, host, chunked) + "5;a\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"extension that hides a chunk", head(toPost, host, chunked) + "2;\nxx\r\n29\r\n" + request + "\r\n0\r\n\r\n", "400 closed", ""},
	{"space behind the size", head(toPost, host, chunked) + "5 \r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"space before the size", head(toPost, host, chunked) + " 5\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"size with a plus", head(toPost, host, chunked) + "+5\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"size with a minus", head(toPost, host, chunked) + "-5\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"size with 0x", head(toPost, host, chunked) + "0x5\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"size with an underscore", head(toPost, host, chunked) + "0_5\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"size that is none", head(toPost, host, chunked) + "g\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"empty size", head(toPost, host, chunked) + "\r\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"bare LF behind the size", head(toPost, host, chunked) + "5\nhello\r\n0\r\n\r\n", "400 closed", ""},
	{"bare CR behind the size", head(toPost, host, chunked) + "5\rhello\r\n0\r\n\r\n", "400 closed", ""},
	{"bare LF behind the data", head(toPost, host, chunked) + "5\r\nhello\n0\r\n\r\n", "400 closed", ""},
	{"no line end behind the data", head(toPost, host, chunked) + "5\r\nhello0\r\n\r\n", "400 closed", ""},
	{"two bytes for the line end", head(toPost, host, chunked) + "5\r\nhelloXX0\r\n\r\n", "400 closed", ""},
	{"bare LF at the end", head(toPost, host, chunked) + "5\r\nhello\r\n0\r\n\n", "400 closed", ""},
	{"trailer", head(toPost, host, chunked) + "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "400 closed", ""},
	{"trailer that names a length", head(toPost, host, chunked) + "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n", "400 closed", ""},
	{"trailer that is announced", head(toPost, host, chunked, "Trailer: X") + "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "400 closed", ""},
}
