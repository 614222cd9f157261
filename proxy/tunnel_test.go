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
