package proxy

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// rejectionForms are the forms in which a rejection may be answered.
var rejectionForms = []struct {
	name, contentType string // contentType is how the type begins, at least
	set               func(*reject.Options)
	whole             func(body string) bool
}{
	{"page", "text/html;", func(o *reject.Options) { o.Format = reject.HTML }, wholePage},
	{"problem", "application/", func(o *reject.Options) { o.Format = reject.Problem }, wholeJSON},
	{"envelope", "application/json;", func(o *reject.Options) { o.Format = reject.Envelope }, wholeJSON},
	{"redirect", "", func(o *reject.Options) {
		o.Format = reject.HTML
		for class, answer := range o.Answers {
			answer.Redirect = "/sorry"
			o.Answers[class] = answer
		}
	}, func(body string) bool { return body == "" || wholePage(body) }},
	{"envelope without a body", "application/json;", func(o *reject.Options) {
		o.Format, o.EnvelopeStatus = reject.Envelope, http.StatusNoContent
	}, func(body string) bool { return body == "" || wholeJSON(body) }},
}

func wholePage(body string) bool { return strings.HasSuffix(strings.TrimSpace(body), "</html>") }
func wholeJSON(body string) bool { return json.Valid([]byte(body)) }

// Whatever the reason, the form and the method, a rejection is one complete response: a client reads it to its last
// byte, and the next response on the connection begins behind it.
func TestRejection_IsACompleteResponse(t *testing.T) {
	for _, form := range rejectionForms {
		t.Run(form.name, func(t *testing.T) {
			var reason atomic.Int64
			to := &recorder{}
			o := options(to)
			o.Routes = []Route{{Name: "x", Match: "/", Gate: route.Limit}}
			o.Concurrency = slotFunc(func() reject.Reason { return reject.Reason(reason.Load()) })
			form.set(&o.Responses)
			addr, _ := gateway(t, o)
			rejected := &rejectedClient{t: t, addr: addr}
			for why := reject.Admitted + 1; why < reject.NumReasons; why++ {
				reason.Store(int64(why))
				get, page := rejected.ask("GET", why)
				if !form.whole(page) || !strings.HasPrefix(get.Header.Get("Content-Type"), form.contentType) {
					t.Errorf("%v: %v %q", why, get.Header, page)
				}
				head, body := rejected.ask("HEAD", why)
				if body != "" || !maps.EqualFunc(steady(head), steady(get), slices.Equal) {
					t.Errorf("%v: to HEAD %q %q, to GET %q", why, head.Header, body, get.Header)
				}
				for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PURGE"} {
					if resp, body := rejected.ask(method, why); resp.StatusCode != get.StatusCode || !form.whole(body) {
						t.Errorf("%v: to %s %d %q", why, method, resp.StatusCode, body)
					}
				}
			}
			if saw := to.all(); len(saw) != 0 {
				t.Errorf("the upstream saw %q", saw)
			}
		})
	}
}

// steady are the fields of a rejection, but for those that differ from one response to the next.
func steady(resp *http.Response) http.Header {
	h := resp.Header.Clone()
	h.Del("Date")
	h.Del("X-Request-Id")
	return h
}

// rejectedClient keeps its connection as long as the server does.
type rejectedClient struct {
	t    *testing.T
	addr string
	conn *clientConn // nil = the last one has ended
}

// ask sends a request, and checks what the responses to all rejections have in common.
func (r *rejectedClient) ask(method string, why reject.Reason) (*http.Response, string) {
	r.t.Helper()
	if r.conn == nil {
		r.conn = connect(r.t, r.addr)
	}
	r.conn.send(method + " /x HTTP/1.1\r\nHost: shop\r\nOrigin: https://shop.example\r\nContent-Length: 2\r\n\r\nhi")
	resp, body := r.conn.receive(method)
	if reasonOrStatus(resp) != why.String() || resp.Close != why.ClosesConnection() {
		r.t.Errorf("%s, %v: reason %s, closes %v", method, why, reasonOrStatus(resp), resp.Close)
	}
	if method != "HEAD" && !announced(resp, body) {
		r.t.Errorf("%s, %v: %d %v %q", method, why, resp.StatusCode, resp.Header, body)
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil || time.Since(date).Abs() > time.Minute {
		r.t.Errorf("%s, %v: Date %q", method, why, resp.Header.Get("Date"))
	}
	if resp.Header.Get("Cache-Control") != "no-store" || len(resp.Header.Get("X-Request-Id")) != 32 ||
		resp.Header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		r.t.Errorf("%s, %v: %v", method, why, resp.Header)
	}
	for field, values := range resp.Header {
		if len(values) != 1 {
			r.t.Errorf("%s, %v: %s stands there %d times", method, why, field, len(values))
		}
	}
	if resp.Close {
		if rest := r.conn.rest(); rest != "" {
			r.t.Errorf("%s, %v: behind the last response came %q", method, why, rest)
		}
		r.conn = nil
	}
	return resp, body
}

// announced reports that the length of a body stands in the head, but where the status has none.
func announced(resp *http.Response, body string) bool {
	length := resp.Header.Get("Content-Length")
	if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		return length == "" && body == ""
	}
	return length == strconv.Itoa(len(body))
}

// What the proxy answers itself ends the connection, or keeps it, as the request wants.
func TestResponse_OfTheProxyItselfFollowsTheRequest(t *testing.T) {
	o := options(&recorder{})
	closedFor(reject.SoldOut)(&o)
	addr, _ := gateway(t, o)
	old := orderWith("HTTP/1.1", "HTTP/1.0")
	const script = "GET /.sluice/client.js HTTP/1.1\r\nHost: shop\r\n"
	for _, c := range []struct {
		raw          string
		closes, body bool
	}{
		{order, false, true},
		{orderWith("Cookie", "Connection: close\r\nCookie"), true, true},
		{strings.Replace(old, "Cookie", "Connection: keep-alive\r\nCookie", 1), false, true},
		{old, true, true},
		{strings.Replace(script, "GET", "HEAD", 1) + "\r\n", false, false},
		{script + "If-None-Match: *\r\n\r\n", false, false},
		{script + "Connection: close\r\n\r\n", true, true},
		{strings.Replace(script, "HTTP/1.1", "HTTP/1.0", 1) + "\r\n", true, true},
		{script + "\r\n", false, true},
	} {
		conn := connect(t, addr)
		method, _, _ := strings.Cut(c.raw, " ")
		for turn := range 2 {
			conn.send(c.raw)
			resp, body := conn.receive(method)
			if resp.Close != c.closes || c.body != (body != "") {
				t.Errorf("%q: closes %v, body %q", c.raw, resp.Close, body)
			}
			asked := strings.Contains(c.raw, "HTTP/1.0\r\n") && !c.closes
			if stays := resp.Header.Get("Connection") == "keep-alive"; stays != asked {
				t.Errorf("%q: Connection %q", c.raw, resp.Header.Get("Connection"))
			}
			if length := resp.Header.Get("Content-Length"); (length == "") != (resp.StatusCode == http.StatusNotModified) {
				t.Errorf("%q: status %d with length %q", c.raw, resp.StatusCode, length)
			}
			if c.closes {
				if rest := conn.rest(); rest != "" || turn > 0 {
					t.Errorf("%q: behind the last response came %q", c.raw, rest)
				}
				break
			}
		}
	}
}

// rawUpstream is an upstream that answers each request with the same text, on a connection of its own.
func rawUpstream(t *testing.T, text string) *upstream.Pool {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, text)
		c.Close()
	}))
	t.Cleanup(server.Close)
	pool, err := upstream.New(upstream.Options{
		Targets: []string{server.URL}, Policy: "first", MaxConns: 16, ConnectTimeout: time.Minute,
		ResponseTimeout: time.Minute, Timeout: time.Minute, IdleConnTimeout: time.Minute, Retry: "off",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// Fields of one name arrive in their order, and none is lost, whether the response is handed on as it comes or is read
// whole before.
func TestResponse_FieldsOfOneNameArriveInOrder(t *testing.T) {
	want := map[string][]string{
		"Set-Cookie":       {"b=2; Path=/", "a=1", "b=3"},
		"Vary":             {"Accept", "Cookie"},
		"X-One":            {"2", "1", "2"},
		"Www-Authenticate": {"Basic", "Bearer"},
		"X-Request-Id":     {"of the upstream", "another"},
		"Server":           {"shop"},
	}
	const fields = "Set-Cookie: b=2; Path=/\r\nX-One: 2\r\nVary: Accept\r\nWWW-Authenticate: Basic\r\nx-one: 1\r\n" +
		"set-cookie: a=1\r\nServer: shop\r\nX-Request-Id: of the upstream\r\nWWW-Authenticate: Bearer\r\n" +
		"Set-Cookie: b=3\r\nVary: Cookie\r\nX-One: 2\r\nX-Request-Id: another\r\nConnection: close\r\n"
	for _, framing := range []string{
		"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		o, _ := reserving(rawUpstream(t, "HTTP/1.1 200 OK\r\n"+fields+framing))
		o.Routes = slices.Concat(o.Routes[:1], []Route{
			{Name: "limit", Match: "/limit", Gate: route.Limit},
			{Name: "check", Match: "/check/{sku}", Gate: route.Check, SKU: "$path_sku"},
		}, o.Routes[1:])
		addr, _ := gateway(t, o)
		for _, raw := range []string{
			buying, "GET /limit HTTP/1.1\r\nHost: shop\r\n\r\n", "GET /check/1001 HTTP/1.1\r\nHost: shop\r\n\r\n",
			"GET /page HTTP/1.1\r\nHost: shop\r\n\r\n",
		} {
			resp, body := talk(t, addr, raw)
			if resp.StatusCode != 200 || body != "hello" || resp.Close {
				t.Errorf("%q: %d %q, closes %v", raw, resp.StatusCode, body, resp.Close)
			}
			resp.Header.Del("Content-Length")
			resp.Header.Del("Date") // is added, as the upstream sends none
			if !maps.EqualFunc(resp.Header, want, slices.Equal) {
				t.Errorf("%q:\n%q, want\n%q", raw, resp.Header, want)
			}
		}
	}
}
