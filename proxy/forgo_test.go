package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Many clients send head and body in two packets: a short body that is still on its way costs no connection, and its
// bytes are no request, whatever they say.
func TestBodyBehindARefusalIsPassedOver(t *testing.T) {
	const inside = "GET /inside HTTP/1.1\r\nHost: s\r\n\r\n"
	shop := &seen{}
	o := options(shop)
	o.Stock.(*shelf).closed["1001"] = SoldOut
	addr, _ := gate(t, o)
	for name, c := range map[string]struct {
		length int
		more   string
		keeps  bool
	}{
		"short":          {len(inside), "", true},
		"long":           {shortBody + 1, "", false},
		"expected":       {len(inside), "Expect: 100-continue\r\n", false},
		"the last":       {len(inside), "Connection: close\r\n", false},
		"none announced": {0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c0, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c0.Close()
			in := bufio.NewReader(c0)
			for range 2 {
				fmt.Fprintf(c0, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\n%sContent-Length: %d\r\n\r\n", c.more, c.length)
				resp, err := http.ReadResponse(in, nil)
				if err != nil || resp.StatusCode != 409 || resp.Close == c.keeps {
					t.Fatalf("answered %+v, %v; want 409 and the connection kept: %v", resp, err, c.keeps)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				if !c.keeps {
					return
				}
				io.WriteString(c0, strings.Repeat(inside, c.length/len(inside)))
			}
			io.WriteString(c0, "GET /after HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
			if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
				t.Errorf("the request behind it: %+v, %v", resp, err)
			}
		})
	}
	for _, r := range shop.all() {
		if !strings.HasPrefix(r, "GET /after ") {
			t.Errorf("the shop got %q", r)
		}
	}
}

// A body that never comes ends the connection, without an answer that nobody waits for.
func TestForgoneBodyThatNeverComesEndsTheConnection(t *testing.T) {
	o := options(&seen{})
	o.Stock.(*shelf).closed["1001"] = SoldOut
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", serve(t, p, ServerOptions{ReadTimeout: 50 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\nContent-Length: 5\r\n\r\nhel")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 409 {
		t.Fatalf("answered %+v, %v", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
}
