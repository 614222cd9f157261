package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// What the gate says itself is a whole answer, as the field, the method and the version of the request want it.
func TestRepliesAreWholeAnswers(t *testing.T) {
	o := options(shopFunc(answering))
	o.Stock.(*shelf).closed["1001"] = SoldOut
	addr, _ := gate(t, o)
	order := "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 0\r\n"
	for _, c := range []struct {
		raw        string
		connection string
		closes     bool
		body       bool
	}{
		{order + "\r\n", "", false, true},
		{order + "Connection: close\r\n\r\n", "close", true, true},
		{strings.Replace(order, "1.1", "1.0", 1) + "Connection: keep-alive\r\n\r\n", "keep-alive", false, true},
		{strings.Replace(order, "1.1", "1.0", 1) + "\r\n", "close", true, true},
		{"HEAD /.sluice/client.js HTTP/1.1\r\nHost: shop\r\n\r\n", "", false, false},
		{"GET /.sluice/client.js HTTP/1.1\r\nHost: shop\r\nIf-None-Match: *\r\n\r\n", "", false, false},
		{"GET /.sluice/client.js HTTP/1.1\r\nHost: shop\r\n\r\n", "", false, true},
	} {
		resp, body := talk(t, addr, c.raw)
		if got := resp.Header.Get("Connection"); resp.Close != c.closes || !c.closes && got != c.connection {
			t.Errorf("%q: Connection %q, closes %v; want %q, %v", c.raw, got, resp.Close, c.connection, c.closes)
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err != nil || time.Since(date) > time.Minute {
			t.Errorf("%q: Date %q", c.raw, resp.Header.Get("Date"))
		}
		if length := resp.Header.Get("Content-Length"); length == "" != (resp.StatusCode == http.StatusNotModified) {
			t.Errorf("%q: status %d with length %q", c.raw, resp.StatusCode, length)
		}
		if c.body != (body != "") {
			t.Errorf("%q: body %q", c.raw, body)
		}
	}
}

// Who has waited for the shop in vain is told the time at which that was over: the text of the second in which he came may be of any
// later one by then.
func TestReplyAfterTheShopTellsTheTimeOfThen(t *testing.T) {
	var now atomic.Int64
	o := options(shopFunc(func(*Outgoing, *fasthttp.Response) Outcome {
		now.Store(int64(200 * time.Second))
		return TimedOut
	}))
	o.Now = now.Load
	now.Store(int64(100 * time.Second))
	addr, p := gate(t, o)
	if resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\n\r\n"); resp.StatusCode != http.StatusGatewayTimeout {
		t.Fatal(resp.StatusCode)
	}
	if told := p.dates.now.Load(); told.second != 200 {
		t.Errorf("the time of second %d", told.second)
	}
}
