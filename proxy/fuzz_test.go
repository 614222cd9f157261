package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/http1"
)

// A pattern that is accepted takes the path that it spells.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"POST /api/seckill/{sku}/order", "/", "GET shop.example/a/{b}/{c...}", "/{a", "X /", "/a//b", "/a/{b}{c}", "GET /../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePattern(text)
		if err != nil {
			return
		}
		path, method, host := "", p.method, p.host
		for i, s := range p.segments {
			if path += "/"; s.capture {
				path += fmt.Sprint("v", i)
			} else {
				path += s.literal
			}
		}
		if p.subtree || path == "" {
			path += "/"
		}
		var caught captures
		if !p.matches([]byte(method), []byte(host), []byte(path), &caught, false) {
			t.Errorf("%q does not take %s %s %s", text, method, host, path)
		}
		if !p.matches([]byte(method), []byte(host), []byte(strings.ToUpper(path)), &caught, true) && strings.ToUpper(path) == strings.ToTitle(path) && isASCII([]byte(path)) {
			t.Errorf("%q does not take %s in capitals when it folds", text, path)
		}
	})
}

// Every reading of a path is a path, their number is bounded, and one that is plain has no other reading than itself.
func FuzzReadings(f *testing.F) {
	for _, s := range []string{"/a/../b", "//order", "/%2e%2e/a", "/%252e/x", "/a;b=c/d", "/a%2fb", "/a\\b", "/a%3fb", "/%", "/..", "/a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
			return
		}
		r, n := &request{}, 0
		r.eachReading([]byte(path), func(reading []byte, _ int) bool {
			if n++; n > 1<<10 {
				t.Fatalf("%q has readings without end", path)
			}
			if len(reading) == 0 || reading[0] != '/' {
				t.Errorf("%q may be read as %q", path, reading)
			}
			if plainPath([]byte(path)) && string(reading) != path {
				t.Errorf("%q is plain, and may be read as %q", path, reading)
			}
			return true
		})
	})
}

// The client is the rightmost untrusted address: a slow reading says the same.
func FuzzClientAddress(f *testing.F) {
	for _, s := range []string{"1.1.1.1, 6.6.6.6:1234", "10.0.0.1,10.0.0.2", "x, 10.0.0.1", "[2001:db8::1]:80", "::ffff:6.6.6.6", "fe80::1%eth0", ", ,"} {
		f.Add(s)
	}
	p := &Proxy{trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	peer := netip.MustParseAddr("10.9.9.9")
	f.Fuzz(func(t *testing.T, list string) {
		want := peer
		items := strings.Split(list, ",")
		if list == "" {
			items = nil
		}
		for i := len(items) - 1; i >= 0; i-- {
			text := strings.Trim(items[i], " \t")
			addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
			if strings.HasPrefix(text, "[") != strings.HasSuffix(text, "]") {
				err = io.EOF
			}
			if err != nil {
				var ap netip.AddrPort
				ap, err = netip.ParseAddrPort(text)
				addr = ap.Addr()
			}
			if err != nil || len(text) > 64 || strings.Contains(text, "%") {
				break
			}
			want = addr.Unmap()
			if !p.trusted[0].Contains(want) {
				break
			}
		}
		if got := p.rightmostUntrusted([]byte(list), peer); got != want {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	})
}

// Whatever arrives, the shop sees nothing or exactly one canonical request, and the SKU that it would read out of the
// path is the one that was judged.
func FuzzOutgoing(f *testing.F) {
	f.Add([]byte(order))
	f.Add([]byte(browserOrder))
	f.Add([]byte(upgrade))
	f.Add([]byte(strings.Replace(order, "1001", "10%3001", 1)))
	f.Add([]byte(strings.Replace(order, "Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 1)))
	f.Add([]byte("GET /x HTTP/1.1\r\nHost: shop\r\nX-Original-URL: ?x\r\nX-HTTP-Method: PUT\r\n\r\n"))
	f.Add([]byte("GET http://shop/x?y=1 HTTP/1.1\r\nHost: shop\r\nConnection: close, X-A\r\nX-A: 1\r\nX-B: 2\r\nX-B: 3\r\n\r\n"))
	var sent, judged string
	o := options(shopFunc(func(o *Outgoing, resp *fasthttp.Response) Outcome {
		body := o.Body
		if o.BodyStream != nil {
			all, err := io.ReadAll(io.LimitReader(o.BodyStream, 1<<20))
			if err != nil {
				return Broken
			}
			body = all
			if o.BodyLength < 0 {
				body = fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(all), all)
			}
		}
		sent += string(o.Line) + "Host: " + string(o.Host) + "\r\n" + string(o.Fields) + "\r\n" + string(body)
		return Answered
	}))
	o.Windows = windowsFunc(func(_ int64, sku []byte) (wait time.Duration, ok bool) { judged = string(sku); return 0, true })
	p, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}})
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent, judged = "", ""
		c := &Conn{Conn: script{bytes.NewReader(raw)}, server: s, peer: netip.MustParseAddr("203.0.113.9"), shard: p.counts.shard()}
		c.reader = s.guard.Load().NewReader(socket{c})
		x := newExchange()
		x.conn = c
		if c.readHead(&x.asked) != nil {
			return
		}
		p.handle(x)
		if n := c.shard.panics.Swap(0); n > 0 {
			t.Fatalf("%q: a panic was caught", raw)
		}
		if sent == "" {
			return
		}
		in := bufio.NewReader(strings.NewReader(sent))
		req, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("%q became %q: %v", raw, sent, err)
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil || in.Buffered() > 0 {
			t.Fatalf("%q became %q: body %v, %d bytes too many", raw, sent, err, in.Buffered())
		}
		if parts := strings.Split(req.URL.Path, "/"); judged != "" && (len(parts) != 5 || parts[3] != judged) {
			t.Errorf("%q: judged as SKU %q, the shop reads %q", raw, judged, req.URL.Path)
		}
		head, _, _ := strings.Cut(sent, "\r\n\r\n")
		var again http1.Request
		guard := http1.NewGuard(http1.Limits{Header: 32 << 10, Target: maxTarget}).NewReader(strings.NewReader(sent))
		if err := guard.ReadHead(&again); err != nil || string(again.Text()) != head+"\r\n\r\n" {
			t.Errorf("%q became %q, which the gate itself would not let in: %v", raw, sent, err)
		}
	})
}
