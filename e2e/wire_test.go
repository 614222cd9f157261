package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// wired is a raw request and what must become of it. Package proxy/server tests each rule of HTTP/1.1; these sample
// that the built binary applies them.
type wired struct {
	name     string
	raw      string
	gate     string // the answer, and whether the connection is good for another request: "200 kept", "400 closed"
	shop     string // what the shop received, as told writes it
	halfOpen bool   // the client ends its half of the connection behind the request
}

// head makes a request's head of its lines.
func head(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

const (
	toPost   = "POST /a HTTP/1.1"
	toGet    = "GET /a HTTP/1.1"
	host     = "Host: shop"
	chunked  = "Transfer-Encoding: chunked"
	hello    = "5\r\nhello\r\n0\r\n\r\n"
	smuggled = "GET /admin HTTP/1.1\r\nHost: shop\r\nX: y\r\n\r\n" // 41 bytes
	length41 = "Content-Length: 41"
	noBody   = "Content-Length: 0"
)

// hostile are requests that two servers may read differently, or that look like two requests.
var hostile = []wired{
	{name: "CL.TE", raw: head(toPost, host, "Content-Length: 6", chunked) + "0\r\n\r\nG", gate: "400 closed"},
	{name: "TE.CL", raw: head(toPost, host, chunked, "Content-Length: 4") + "29\r\n" + smuggled + "\r\n0\r\n\r\n",
		gate: "400 closed"},
	{name: "chunked on HTTP/1.0", raw: head("POST /a HTTP/1.0", host, chunked) + hello, gate: "400 closed"},
	{name: "chunked with a parameter", raw: head(toPost, host, "Transfer-Encoding: chunked;q=1") + hello,
		gate: "400 closed"},
	{name: "coding with an underscore",
		raw:  head(toPost, host, "Transfer_Encoding: chunked", "Content-Length: 5") + "hello",
		gate: "400 closed"},
	{name: "two lengths", raw: head(toPost, host, "Content-Length: 5", "Content-Length: 0") + "hello",
		gate: "400 closed"},
	{name: "length with a plus", raw: head(toPost, host, "Content-Length: +5") + "hello", gate: "400 closed"},
	{name: "space before the colon", raw: head(toGet, host, "Content-Length : 41") + smuggled, gate: "400 closed"},
	{name: "chunk extension", raw: head(toPost, host, chunked) + "2;\nxx\r\n29\r\n" + smuggled + "\r\n0\r\n\r\n",
		gate: "400 closed"},
	{name: "size of a chunk with 0x", raw: head(toPost, host, chunked) + "0x5\r\nhello\r\n0\r\n\r\n",
		gate: "400 closed"},
	{name: "bare LF behind a chunk", raw: head(toPost, host, chunked) + "5\r\nhello\n0\r\n\r\n", gate: "400 closed"},
	{name: "trailer with a length", raw: head(toPost, host, chunked) + "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
		gate: "400 closed"},
	{name: "bare LF in a value", raw: head(toGet, host, "X: y\nZ: w"), gate: "400 closed"},
	{name: "bare CR in a value", raw: head(toPost, host, "X: y\r"+chunked, "Content-Length: 5") + "hello",
		gate: "400 closed"},
	{name: "folded line", raw: head(toGet, host, "X: y", " z"), gate: "400 closed"},
	{name: "NUL in a name", raw: head(toGet, host, "X\x00: y"), gate: "400 closed"},
	{name: "two hosts", raw: head(toGet, host, "Host: other"), gate: "400 closed"},
	{name: "absolute form of another host", raw: head("GET http://other/a HTTP/1.1", host), gate: "400 closed"},
	{name: "escaped line end", raw: head("GET /a%0d%0aX:%20y HTTP/1.1", host), gate: "400 closed"},
	{name: "Connection names Cookie", raw: head(toGet, host, "Connection: Cookie", "Cookie: a=b"), gate: "400 closed"},
	{name: "preface of HTTP/2", raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", gate: "505 closed"},
	{name: "CONNECT", raw: head("CONNECT shop:443 HTTP/1.1", host), gate: "501 closed"},
	{name: "TRACE", raw: head("TRACE /a HTTP/1.1", host), gate: "405 closed"},
	{name: "header over its limit", raw: head(toGet, host, "X: "+strings.Repeat("y", 40_000)), gate: "431 closed"},
	{name: "target over its limit", raw: head("GET /"+strings.Repeat("a", 10_000)+" HTTP/1.1", host),
		gate: "414 closed"},
	{name: "TLS on a plain port", raw: "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
		gate: "400 closed", halfOpen: true},
	{name: "chunks cut short", raw: head(toPost, host, chunked) + "5\r\nhel", gate: "400 closed", halfOpen: true},

	{name: "a good request, then a bad one", raw: head(toGet, host) + head("GET /b HTTP/1.1"), gate: "200 400 closed",
		shop: "GET /a"},
	{name: "a body that is a request", raw: head(toPost, host, length41) + smuggled,
		gate: "200 kept", shop: "POST /a 41"},
	{name: "a rejected order whose body is a request",
		raw: head("POST /api/seckill/404/order HTTP/1.1", host, length41) + smuggled, gate: "404 kept"},
	{name: "order by an escaped slash", raw: head("POST /api/seckill/1001%2forder HTTP/1.1", host, noBody),
		gate: "400 kept"},
	{name: "order by dots", raw: head("POST /x/../api/seckill/1001/order HTTP/1.1", host, noBody), gate: "400 kept"},
	{name: "order behind two slashes", raw: head("POST //api/seckill/1001/order HTTP/1.1", host, noBody),
		gate: "400 kept"},
	{name: "order by another method",
		raw:  head("GET /api/seckill/1001/order HTTP/1.1", host, "X-HTTP-Method-Override: POST"),
		gate: "400 kept"},
	{name: "Upgrade of an order",
		raw:  head("POST /api/seckill/1001/order HTTP/1.1", host, "Connection: Upgrade", "Upgrade: websocket", noBody),
		gate: "400 kept"},

	// Legal, and forwarded as received.
	{name: "two requests in one piece", raw: head(toGet, host) + head("GET /b HTTP/1.1", host), gate: "200 200 kept",
		shop: "GET /a, GET /b"},
	{name: "chunks", raw: head(toPost, host, chunked) + hello, gate: "200 kept", shop: "POST /a 5"},
	{name: "HTTP/1.0 without Host", raw: head("GET /a HTTP/1.0"), gate: "200 closed", shop: "GET /a"},
	{name: "method of an extension", raw: head("PROPFIND /a HTTP/1.1", host), gate: "200 kept", shop: "PROPFIND /a"},
	{name: "odd path and query", raw: head(`GET //x/../a\b%2Fc?y=100% HTTP/1.1`, host), gate: "200 kept",
		shop: `GET //x/../a\b%2Fc?y=100%`},
	{name: "absolute form of a page", raw: head("GET http://shop/a HTTP/1.1", host), gate: "200 kept",
		shop: "GET http://shop/a"},
	{name: "absolute form of an order", raw: head("POST http://shop/api/seckill/1001/order HTTP/1.1", host, noBody),
		gate: "200 kept", shop: "POST /api/seckill/1001/order"},
	{name: "field that imitates one of a proxy", raw: head(toGet, host, "X_Forwarded_For: 203.0.113.9"),
		gate: "200 kept",
		shop: "GET /a"},
}

// What a client sends after each request, to learn whether its connection is still good.
const probe = "GET /probe HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"

// anonymous orders name no user.
const anonymous = `
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "check"
sku = "$path_sku"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// One request of a client is one request at the shop, byte for byte, or none.
func TestWire_AmbiguousRequestsNeverReachTheShop(t *testing.T) {
	t.Parallel()
	shop := record(t)
	g := stocked(t, "upstream.targets = "+quoted("http://"+shop.address), unlimited, anonymous)
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			answer := converse(t, dial(t, g.front), c)
			if received := shop.took(t); answer != c.gate || received != c.shop {
				t.Errorf("%q\nanswered %q, want %q\nthe shop received %q, want %q", c.raw, answer, c.gate, received,
					c.shop)
			}
		})
	}
}

// converse sends a request on a connection of its own, and says what was answered and whether the connection is still
// good: "200 kept", "400 closed". It is "silent" when that does not become clear within the connection's deadline.
func converse(t *testing.T, c net.Conn, w wired) string {
	t.Helper()
	defer c.Close()
	_, _ = io.WriteString(c, w.raw) // it may be rejected before all of it was sent
	if w.halfOpen {
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}
	method, _, _ := strings.Cut(w.raw, " ")
	in := bufio.NewReader(c)
	statuses, err := next(in, method)
	if err == nil && !w.halfOpen {
		_, _ = io.WriteString(c, probe)
	}
	end := " closed"
	for err == nil {
		var more string
		if more, err = next(in, "GET"); more == "probe" {
			end = " kept"
			break
		}
		statuses += more
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		end = " silent"
	}
	return strings.TrimSpace(strings.TrimSpace(statuses) + end)
}

// next reads one answer, with the interim ones before it.
func next(in *bufio.Reader, method string) (statuses string, err error) {
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			if strings.HasPrefix(err.Error(), "malformed") {
				return "headless ", io.EOF
			}
			return statuses, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return statuses + "cut ", err
		}
		if resp.Header.Get("Served") == "GET /probe" {
			return "probe", nil
		}
		statuses += fmt.Sprintf("%d ", resp.StatusCode)
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return statuses, nil
		}
	}
}

// pipelined are cases of the corpora that hold more than one good request, openly and whole: as many may arrive. Their
// judge calls all of the input broken when what comes behind those requests is.
var pipelined = []string{
	"Server Bugs#48", // two requests, each with a plain Content-Length; the bytes behind them are answered 400
}

// corpora are raw requests of others: a folder with cases.jsonl and replay.py, which plays each case to the gate and
// judges what arrives at a shop of its own. It is no part of this repository.
func corpora(t *testing.T) (folder string) {
	t.Helper()
	folder = os.Getenv("SLUICE_CONFORMANCE")
	if _, err := os.Stat(filepath.Join(folder, "replay.py")); err != nil {
		t.Skipf("SLUICE_CONFORMANCE names no folder with cases.jsonl and replay.py: %v", err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	return folder
}

// What is not valid HTTP/1.1 ends its connection. "OPTIONS *" is valid, and no route takes it: 404.
func TestWire_CorporaArriveCanonicalOrNotAtAll(t *testing.T) {
	testkit.Nightly(t, "it needs python3 and corpora of other projects")
	t.Parallel()
	folder := corpora(t)
	shop := testkit.FreeAddress(t) // replay.py listens there
	g := gate(t, "upstream.targets = "+quoted("http://"+shop),
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	results := filepath.Join(t.TempDir(), "results.jsonl")
	_, port, _ := net.SplitHostPort(shop)
	replay := exec.CommandContext(t.Context(), "python3", filepath.Join(folder, "replay.py"), g.front, port,
		filepath.Join(folder, "cases.jsonl"), "--out", results)
	if text, err := replay.CombinedOutput(); err != nil {
		t.Fatalf("replay: %v\n%s", err, text)
	}
	verdicts := map[string]int{}
	for _, r := range replayed(t, results) {
		verdicts[r.Verdict]++
		switch {
		case r.Verdict == "DIRTY":
			t.Errorf("%s %s: %v", r.Source, r.ID, r.Violations)
		case r.Verdict == "MULTI" && !slices.Contains(pipelined, r.ID):
			t.Errorf("%s %s: arrived as %d requests", r.Source, r.ID, r.Arrived)
		case r.Verdict == "reject" && r.Client != "closed" && !slices.Contains(r.Statuses, http.StatusNotFound):
			t.Errorf("%s %s: rejected with %v, but the connection stays open: %q", r.Source, r.ID, r.Statuses, r.Client)
		}
	}
	t.Logf("%v", verdicts)
	if verdicts["clean"] == 0 || verdicts["reject"] == 0 {
		t.Error("nothing was tried")
	}
}

// verdict is a line of what replay.py wrote.
type verdict struct {
	Source, ID, Verdict, Client string
	Statuses                    []int
	Violations                  []string
	Arrived                     int `json:"origin_msgs"`
}

func replayed(t *testing.T, path string) (all []verdict) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var v verdict
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if in.Err() != nil {
		t.Fatal(in.Err())
	}
	return all
}
