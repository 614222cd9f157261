package proxy

import (
	"fmt"
	"strconv"
	"strings"
)

// legalRequest is one request that an upstream may get today, in its own words.
type legalRequest struct{ name, raw string }

// legalRequests are requests that are unusual, and that HTTP/1.1 allows or that servers accept all the same.
func legalRequests() (all []legalRequest) {
	add := func(name, raw string) { all = append(all, legalRequest{name, raw}) }
	for _, method := range unusualMethods {
		for _, path := range []string{"/page", "/limit/page", "/check/1001", "/reserve/1001"} {
			add(method+" "+path, head(method, path, ""))
		}
	}
	for _, target := range unusualTargets {
		add("GET "+clip(target), head("GET", target, ""))
	}
	for _, target := range unusualTargetsOfGates {
		add("POST "+target, head("POST", target, "Content-Length: 2\r\nCookie: uid=7\r\n")+"hi")
	}
	for _, fields := range unusualFields {
		for _, path := range []string{"/page", "/check/1001"} {
			add(path+" with "+clip(fields), head("GET", path, fields))
		}
	}
	for _, host := range unusualHosts {
		add("host "+host, strings.Replace(head("GET", "/page", ""), "Host: shop", "Host: "+host, 1))
	}
	for name, body := range unusualBodies {
		for _, start := range []string{"POST /page", "GET /page", "DELETE /limit/page", "POST /check/1001",
			"POST /reserve/1001"} {
			method, path, _ := strings.Cut(start, " ")
			add(start+" with "+name, head(method, path, body.fields)+body.text)
		}
	}
	old := strings.NewReplacer(" HTTP/1.1\r\n", " HTTP/1.0\r\n", "Host: shop\r\n", "")
	add("HTTP/1.0 without Host", old.Replace(head("GET", "/page", "")))
	add("HTTP/1.0 POST without Host", old.Replace(head("POST", "/limit/page", "Content-Length: 2\r\n")+"hi"))
	add("HTTP/1.0 with Host", strings.Replace(head("GET", "/page", ""), "HTTP/1.1", "HTTP/1.0", 1))
	add("HTTP/1.0 to stay", old.Replace(head("GET", "/check/1001", "Connection: keep-alive\r\n")))
	add("an empty line before", "\r\n"+head("GET", "/page", ""))
	add("absolute form", head("GET", "http://shop/a//b?c", ""))
	add("absolute form without a path", head("GET", "http://shop", ""))
	add("absolute form with a query alone", head("GET", "http://shop?x=1", ""))
	add("absolute form in capitals", head("GET", "HTTP://SHOP/x", ""))
	add("absolute form of https", head("GET", "https://shop/limit/x", ""))
	add("absolute form of an order", head("POST", "http://shop/check/1001?a=b", "Content-Length: 2\r\n")+"hi")
	add("absolute form of OPTIONS *", head("OPTIONS", "http://shop", ""))
	add("OPTIONS *", head("OPTIONS", "*", ""))
	preflight := "Origin: https://a\r\nAccess-Control-Request-Method: POST\r\n"
	add("CORS preflight", head("OPTIONS", "/check/1001", preflight))
	return all
}

// head is the head of a request.
func head(method, target, fields string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: shop\r\n" + fields + "\r\n"
}

func clip(s string) string {
	return fmt.Sprintf("%.60q", strings.TrimSpace(s))
}

var unusualMethods = []string{
	"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "PROPFIND", "M-SEARCH", "REPORT", "MKCALENDAR",
	"BASELINE-CONTROL", "UPDATEREDIRECTREF", "get", "Post", "X", "!#$%&'*+-.^_`|~09",
}

var unusualTargets = []string{
	"/", "//", "//products", "///a//b///", "/a%2Fb", "/a%2fb%2F", "/a%5cb", "/a\\b", "/\\\\host\\x", "/?y=100%",
	"/?y=%zz", "/%", "/%a", "/%zz%", "/;x=1", "/a;jsessionid=1;b?c;d", "/.", "/..", "/../a", "/a/./b", "/a/../../b",
	"/%2e%2e/a", "/.%2e/a", "/%252e%252e/a", "/?", "/a?", "/a??b", "/a?b?c", "/?a=/../b//", "/~u/-_.!", "/a|b",
	"/a{b}", "/a^b`", "/\"q\"", "/a<b>", "/[x]?a[]=1&a[]=2", "/a,b:d@e!f$g&h'i(j)k*l+m=n", "/index.php/buy",
	"/buy.json", "/%61%64min", "/a+b?c+d", "/%E4%B8%AD", "/?q=%E4%B8%AD&q=%ff", "/?&&=&", "/?_method=DELETE",
	"/%7Euser", "/%41%c1", "/?x=http://a/b?c", "/a%3Fb%23c", "/" + strings.Repeat("p", 6<<10),
	"/?" + strings.Repeat("q=%20&", 1000), strings.Repeat("/", 500), "/" + strings.Repeat("%41", 2000), "/limit//x",
	"/limit/../check/1001", "/LIMIT/x", "/limit/%2e/x", "/limit/?" + strings.Repeat("a&", 500),
}

// unusualTargetsOfGates are read by some server as an order; enforcing mode answers them with 400.
var unusualTargetsOfGates = []string{
	"/check//1001", "//check/1001", "/CHECK/1001", "/check/1001/", "/check/1001;x=1", "/check/./1001",
	"/a/../check/1001", "/check%2F1001", "/%63heck/1001", "/check\\1001", "/check/10%2001", "/check/10%252001",
	"/check/1001%3f", "/check/" + strings.Repeat("1", 300), "/check/%zz", "/check/1001?sku=1&sku=2", "/reserve//1001",
	"/reserve/%31001", "/reserve/100%", "/reserve/1001?qty=%", "/check/",
}

var unusualFields = []string{
	"X-A: 1\r\nX-A: 2\r\nX-B: 3\r\nX-A: 1\r\n", "x-a: 1\r\nX-A: 2\r\nx-A: 3\r\n", "X-Empty:\r\nX-Empty-Too: \r\n",
	"X-Spaces:   a  b   \r\nX-Tab:\ta\tb\t\r\nX-None:a\r\n",
	"Accept: a/b\r\nAccept: c/d;q=0.1,,\r\nAccept-Encoding: br;q=0, *\r\n", "Cookie: a\r\n",
	"Cookie: a=b; a=c;a=d\r\n", "Cookie: ;;=;\r\n", "Cookie: a=\"b c\", d; uid=7\r\n",
	"Cookie: a=b\r\nCookie: c=d\r\n", "cookie: $Version=1; uid=7; uid=8\r\nCOOKIE: UID=9\r\n",
	"Cookie: \xe4\xb8\xad=\xff\r\n", "Cookie:\r\n", "Cookie: uid=" + strings.Repeat("x", 7000) + "\r\n",
	"X-Text: \x80\xff\xe4\xb8\xad\r\n", "X_Custom: 1\r\nX.Dot: 2\r\nX-Custom: 3\r\n", "!#$%&'*+-.^_`|~: 1\r\n",
	"User-Agent:\r\n", "User-Agent: curl/8.0 (a; b) \"c\"\r\n", "Range: bytes=0-1,-5\r\nIf-Range: \"x\"\r\n",
	"If-None-Match: *\r\n", "If-Modified-Since: yesterday\r\n", "Authorization: Basic dTpw\r\n",
	"Authorization: Bearer\r\n", "Referer: \r\nOrigin: null\r\n", "Content-Type: strange/; x\r\n",
	"Content-Encoding: gzip\r\n", "Date: x\r\nFrom: a@b\r\n", "Max-Forwards: 3\r\nPragma: no-cache\r\n",
	"Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Mode: cors\r\nDNT: 1\r\n", "Sec-WebSocket-Key: x\r\n",
	"TE: trailers, deflate\r\n", "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", "Connection: close\r\n",
	"connection: Close , X-Hop\r\nX-Hop: 1\r\nX-Stays: 2\r\n",
	"Connection: ,, keep-alive,\r\nConnection: x-hop\r\nx-hop: 1\r\n", "Proxy-Connection: keep-alive\r\n",
	"X-HTTP-Method-Override: PUT\r\n", "X-Original-URL: /check/1001\r\n", "X-Rewrite-URL: /x\r\n",
	"Idempotency-Key: a\r\nIdempotency-Key: b\r\n", "Idempotency-Key: \"quoted\"\r\n",
	"traceparent: x\r\nTracestate: y\r\n", "b3: 0\r\n", "X-Request-ID: my-own.1\r\n", "Early-Data: 1\r\n",
	"Cdn-Loop: a\r\n", "X-User: 7\r\nx-user: 8\r\n", "Expect: 100-continue\r\n", "Content-Length: 0\r\n",
	"Priority: u=1, i\r\n", "X-Long: " + strings.Repeat("v", 30<<10) + "\r\n",
	strings.Repeat("X-Many: "+strings.Repeat("v", 90)+"\r\n", 300), "X-" + strings.Repeat("n", 1000) + ": 1\r\n",
	"Via: 1.0 a, 1.1 b (c)\r\nX-After: 1\r\nVia: 1.1 d\r\n",
	"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n",
}

var unusualHosts = []string{
	"SHOP", "shop:80", "shop.", "127.0.0.1:8080", "[::1]:8080", "a_b.example", "xn--fiq228c.example", "a..b", "-",
}

// unusualBody is a body, and the fields that go with it.
type unusualBody struct{ fields, text string }

// sized is a body with its length.
func sized(fields, text string) unusualBody {
	return unusualBody{fields + "Content-Length: " + strconv.Itoa(len(text)) + "\r\n", text}
}

var unusualBodies = map[string]unusualBody{
	"no body at all": sized("", ""),
	"one byte":       sized("", "\x00"),
	"JSON":           sized("Content-Type: application/json\r\n", `{"user":"7","user":"8","qty":1}`),
	"broken JSON":    sized("Content-Type: application/json\r\n", `{"a":`),
	"a form":         sized("Content-Type: application/x-www-form-urlencoded\r\n", "a=%&a=%zz&&=;b&user=7"),
	"text like HTTP": sized("", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	"40 KiB":         sized("", strings.Repeat("0123456789abcdef", 2560)),
	"300 KiB":        sized("", strings.Repeat("0123456789abcdef", 19200)),
	"an empty chunk": {"Transfer-Encoding: chunked\r\n", "0\r\n\r\n"},
	"chunks of 300 KiB": {"Transfer-Encoding: chunked\r\n",
		strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 300) + "0\r\n\r\n"},
	"chunks": {"transfer-encoding: CHUNKED\r\n",
		"5\r\nhello\r\n00A\r\n0123456789\r\n1\r\n\r\r\n000\r\n\r\n"},
	"a body that waits": sized("Expect: 100-Continue\r\n", "hi"),
	"a gzip body":       sized("Content-Encoding: gzip\r\n", "\x1f\x8b"),
}
