package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Connection can take a field away on the way to the shop; what the shop then says is for that client alone.
func TestCache_ConnectionFieldChangesNoPageOfOthers(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Language")
		fmt.Fprintf(w, "in %q", r.Header.Get("Accept-Language"))
	})
	g := gate(t, shop.setting(), unlimited, cachedRoutes)
	g.ask("GET", "/p", "Accept-Language: zh", "Connection: keep-alive, Accept-Language")
	if body := g.ask("GET", "/p", "Accept-Language: zh").body; body != `in "zh"` {
		t.Errorf("another has made the page %s", body)
	}
}

// A shop that answers by the client's address says so by X-Forwarded-For, which the gate writes.
func TestCache_PageThatVariesByAddressIsOneClients(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "X-Forwarded-For")
		fmt.Fprintf(w, "for %s", r.Header.Get("X-Forwarded-For"))
	})
	g := gate(t, shop.setting(), unlimited, cachedRoutes)
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		g.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network,
			addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		}}}
		if body := g.ask("GET", "/p").body; body != "for "+from {
			t.Errorf("%s gets the page %s", from, body)
		}
		g.client.CloseIdleConnections()
	}
}

// One request that the shop does not like, or gives a cookie, does not open the way to the shop for the crowd.
func TestCache_OddRequestDoesNotSendTheCrowdToTheShop(t *testing.T) {
	t.Parallel()
	for odd, answer := range map[string]func(w http.ResponseWriter){
		"rejected":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) },
		"forbidden": func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"cookie":    func(w http.ResponseWriter) { http.SetCookie(w, &http.Cookie{Name: "sid", Value: "1"}) },
	} {
		t.Run(odd, func(t *testing.T) {
			t.Parallel()
			shop := open(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Odd") != "" {
					answer(w)
				}
				fmt.Fprint(w, "page")
			})
			g := gate(t, shop.setting(), unlimited, strings.ReplaceAll(cachedRoutes, `"30s"`, `"1s"`))
			g.ask("GET", "/p")
			time.Sleep(1100 * time.Millisecond) // nothing but time makes it stale: the odd one comes first then
			g.ask("GET", "/p", "X-Odd: 1")
			arrived := shop.arrivals.Load()
			var crowd sync.WaitGroup
			begin := time.Now()
			end := begin.Add(1500 * time.Millisecond)
			for range 8 {
				crowd.Go(func() {
					for time.Now().Before(end) {
						if body := g.ask("GET", "/p").body; body != "page" {
							t.Errorf("%q", body)
							return
						}
					}
				})
			}
			crowd.Wait()
			took := time.Since(begin)
			if n := shop.arrivals.Load() - arrived; n > 2+int64(took/time.Second) {
				t.Errorf("%d requests came to the shop in %v", n, took)
			}
		})
	}
}
