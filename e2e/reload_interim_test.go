package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The shop sends interim responses before each answer, while the gate reloads again and again: whatever has reached the
// shop is answered, over TCP and over a unix socket.
func TestReload_RequestsWithInterimResponsesAreAnswered(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "ordered")
	})
	socket := filepath.Join(t.TempDir(), "front.sock")
	address, front := fixed(t)
	address = strings.Replace(address, quoted(front), quoted(front, "unix:"+socket), 1)
	g := gate(t, address, shop.setting(), `stock.source = "off"`, unlimited, "limits.concurrency.max_in_flight = 100",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"")
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	var answered atomic.Int64
	for i := range 12 {
		crowd.Go(func() {
			transport := &http.Transport{MaxIdleConnsPerHost: 1}
			if i%3 == 0 {
				transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", socket)
				}
			}
			client := &http.Client{Transport: transport, Timeout: long}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Post("http://"+front+"/", "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Errorf("no answer: %v", err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || string(body) != "ordered" {
					t.Errorf("%d %q, %v", resp.StatusCode, body, err)
				}
				answered.Add(1)
			}
		})
	}
	for i := range 30 {
		g.rewrite(strings.Replace(string(text), "max_in_flight = 100", fmt.Sprint("max_in_flight = ", 101+i), 1), true)
	}
	close(stop)
	crowd.Wait()
	if reached := shop.arrivals.Load(); reached != answered.Load() {
		t.Errorf("%d requests have reached the shop, and %d are answered", reached, answered.Load())
	}
	t.Logf("%d requests", answered.Load())
}
