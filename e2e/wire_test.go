package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// wired is a raw request and what must become of it. The lists stand in the files wire_*_test.go.
type wired struct {
	name string
	raw  string
	gate string // the answer, and whether the connection is good for another request: "200 kept", "400 closed"
	shop string // what the shop saw, as told writes it
}

// chapter is a list of requests that try the same thing.
type chapter struct {
	title string
	cases []wired
	ends  bool // the client ends its half of the connection behind the request
}

var chapters = []chapter{
	{title: "Length and coding", cases: framing}, {title: "Two requests or one", cases: smuggling}, {title: "Chunks", cases: chunks},
	{title: "Lines and names", cases: lines}, {title: "Host and target", cases: targets},
	{title: "Methods, versions, Connection", cases: exchanges}, {title: "Never finished", cases: unfinished, ends: true},
}

// What a client sends after each request, to learn whether its connection is still good.
const probe = "GET /probe HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"

// anybody may order: whoever it is, nobody asks.
const anybody = `
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

func TestRequestThatCanBeReadTwiceNeverReachesTheShop(t *testing.T) {
	shop := record(t)
	g := stocked(t, "upstream.targets = "+quoted("http://"+shop.address), unlimited, anybody)
	for _, ch := range chapters {
		for _, c := range ch.cases {
			t.Run(ch.title+"/"+c.name, func(t *testing.T) {
				answer := converse(t, dial(t, g.front), c.raw, ch.ends)
				if took := shop.took(t); answer != c.gate || took != c.shop {
					t.Errorf("%q\nanswered %q, want %q\nthe shop saw %q, want %q", c.raw, answer, c.gate, took, c.shop)
				}
			})
		}
	}
}

// half is a connection of which one direction can be ended.
type half interface {
	net.Conn
	CloseWrite() error
}

// converse sends a request on a connection of its own, and says what was answered and whether the connection is still
// good: "200 kept", "400 closed". It is "silent" when that does not become clear within the connection's deadline.
func converse(t *testing.T, c net.Conn, raw string, ends bool) string {
	t.Helper()
	defer c.Close()
	_, _ = io.WriteString(c, raw) // it may be refused before all of it was sent
	if ends {
		_ = c.(half).CloseWrite()
	}
	method, _, _ := strings.Cut(raw, " ")
	in := bufio.NewReader(c)
	statuses, err := next(in, method)
	if err == nil && !ends {
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
