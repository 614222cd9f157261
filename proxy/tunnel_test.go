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

	"github.com/valyala/fasthttp"
)

const upgrade = "GET /chat HTTP/1.1\r\nHost: s\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo/1\r\n\r\n"

// echoing is a shop that switches to a protocol which says everything again.
type echoing struct {
	*testing.T
	seen
}

func (t *echoing) Upgrade(o *Outgoing, resp *fasthttp.Response) (net.Conn, Outcome) {
	if !strings.Contains(string(o.Fields), "Connection: Upgrade\r\nUpgrade: echo/1\r\n") {
		t.Errorf("shop was asked %q", o.Fields)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil, NotSent
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Error(err)
		return nil, NotSent
	}
	shop, err := ln.Accept()
	if err != nil {
		t.Error(err)
		return nil, NotSent
	}
	go func() {
		io.Copy(shop, shop)
		shop.Close()
	}()
	resp.SetStatusCode(101)
	resp.Header.Set("Connection", "Upgrade")
	resp.Header.Set("Upgrade", "echo/1")
	return c, Answered
}

func TestUpgradeTunnelsBothWaysUntilBothEnd(t *testing.T) {
	addr, _ := gate(t, options(&echoing{T: t}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, upgrade+"GET / HTTP/1.1\nnot judged")
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo/1" {
		t.Fatalf("%v, %v", resp, err)
	}
	fmt.Fprint(c, " more")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(br)
	if err != nil || string(all) != "GET / HTTP/1.1\nnot judged more" {
		t.Errorf("%q, %v", all, err)
	}
}

func TestUpgradeOnAGatedRouteIsRefused(t *testing.T) {
	shop := &seen{}
	addr, _ := gate(t, options(shop))
	resp, _ := talk(t, addr, strings.Replace(upgrade, "/chat", "/search/x", 1))
	if resp.StatusCode != 400 || len(shop.all()) != 0 {
		t.Errorf("%d, shop saw %q", resp.StatusCode, shop.all())
	}
}

func TestH2CIsIgnored(t *testing.T) {
	shop := &seen{}
	addr, _ := gate(t, options(shop))
	resp, _ := talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 0\r\n\r\n")
	if saw := strings.Join(shop.all(), ""); resp.StatusCode != 200 || strings.Contains(saw, "ttp2") || strings.Contains(saw, "pgrade") {
		t.Errorf("%d, shop saw %q", resp.StatusCode, saw)
	}
}

// closing counts how often the shop's end of a tunnel was closed.
type closing struct {
	net.Conn
	closed chan struct{}
}

func (c closing) Close() error {
	c.closed <- struct{}{}
	return c.Conn.Close()
}

// switching is a shop that leaves HTTP once it is told to go on.
type switching struct {
	seen
	asked, goOn, closed chan struct{}
}

func (s *switching) Upgrade(_ *Outgoing, resp *fasthttp.Response) (net.Conn, Outcome) {
	s.asked <- struct{}{}
	<-s.goOn
	resp.SetStatusCode(101)
	near, _ := net.Pipe()
	return closing{near, s.closed}, Answered
}

func TestShopsConnectionIsClosedWhenTheClientLeftBeforeItsTunnel(t *testing.T) {
	shop := &switching{asked: make(chan struct{}), goOn: make(chan struct{}), closed: make(chan struct{}, 10)}
	addr, _ := gate(t, options(shop))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, upgrade)
	<-shop.asked
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close() // a reset: the answer cannot be written
	shop.goOn <- struct{}{}
	<-shop.closed
}

func TestUpgradeOnAConnectionThatEndsIsIgnored(t *testing.T) {
	for _, raw := range []string{
		strings.Replace(upgrade, "Connection: keep-alive, Upgrade", "Connection: Upgrade\r\nConnection: close", 1),
		strings.Replace(upgrade, "Connection: keep-alive, Upgrade", "Connection: close, Upgrade", 1),
	} {
		shop := &seen{}
		addr, _ := gate(t, options(shop))
		resp, _ := talk(t, addr, raw)
		if saw := strings.Join(shop.all(), ""); resp.StatusCode != 200 || !strings.Contains(saw, "GET /chat") || strings.Contains(saw, "pgrade") {
			t.Errorf("%q: %d, shop saw %q", raw, resp.StatusCode, saw)
		}
	}
}

// deaf is a shop that neither hears nor says anything in its tunnel.
type deaf struct {
	seen
	closed chan struct{}
}

// telling tells when it is closed.
type telling struct {
	*net.TCPConn
	other  net.Listener // stays open as long as this end does
	closed chan struct{}
}

func (c telling) Close() error {
	c.closed <- struct{}{}
	return c.TCPConn.Close()
}

func (s *deaf) Upgrade(_ *Outgoing, resp *fasthttp.Response) (net.Conn, Outcome) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // whose queue is as far as the connection comes
	if err != nil {
		return nil, NotSent
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, NotSent
	}
	resp.SetStatusCode(101)
	return telling{c.(*net.TCPConn), ln, s.closed}, Answered
}

func TestFaultOnOneSideOfATunnelEndsBoth(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Hour} { // no time-out would end it
		shop := &deaf{closed: make(chan struct{}, 10)}
		c, err := net.Dial("tcp", serve(t, newProxy(t, options(shop)), ServerOptions{IdleTimeout: idle}))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, upgrade)
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 101 {
			t.Fatalf("%v, %v", resp, err)
		}
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
		select {
		case <-shop.closed:
		case <-time.After(10 * time.Second):
			t.Fatalf("idle time-out %s: the tunnel lasts", idle)
		}
	}
}
