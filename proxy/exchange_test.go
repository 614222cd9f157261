package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
)

// converse sends raw on a connection of its own, and returns all that comes until the gate ends it.
func converse(t *testing.T, addr, raw string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, raw)
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// Of what stands twice, and is looked up by its name, the first is meant, as proxies in front of the gate set it.
func TestFirstOfTwoFieldsIsTheOneThatIsLookedUp(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	o.Trusted = prefixes("127.0.0.0/8")
	addr, _ := gate(t, o)
	resp, _ := talk(t, addr, "GET / HTTP/1.1\r\nHost: s\r\nx-request-ID: first\r\nX-Request-Id: second\r\nx-forwarded-proto: https\r\nX-Forwarded-Proto: http\r\n"+
		"X-Forwarded-Host: a\r\nX-Forwarded-Host: b\r\n\r\n")
	saw := strings.Join(shop.all(), "")
	for _, line := range []string{"X-Request-Id: first\r\n", "X-Forwarded-Proto: https\r\n", "X-Forwarded-Host: a\r\n"} {
		name, _, _ := strings.Cut(line, ":")
		if strings.Count(saw, name) != 1 || !strings.Contains(saw, line) {
			t.Errorf("shop saw %q, want one %q", saw, line)
		}
	}
	if id := resp.Header.Get("X-Request-Id"); id != "first" {
		t.Errorf("request id %q", id)
	}
}
