package e2e

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Clients that leave by a reset at every step of their way, before a PROXY header and in the midst of it, in a head and
// a body, while they are in the shop, wait for a place or have left HTTP, leave nothing behind: every connection and
// every place is free again.
func TestConnections_ResetReleasesEverything(t *testing.T) {
	t.Parallel()
	const preface = "PROXY TCP4 203.0.113.9 127.0.0.1 4000 80\r\n"
	release := make(chan struct{})
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			<-release
		}
		_, _ = io.WriteString(w, "x")
	})
	g := gate(t, shop.setting(), `stock.source = "off"`, "server.proxy_protocol = true",
		`server.trusted_proxies = ["127.0.0.0/8"]`,
		"limits.connection.max_connections_per_ip = 20", "limits.concurrency.max_in_flight = 2",
		"limits.concurrency.max_queue = 4",
		"limits.concurrency.queue_timeout = \"60s\"",
		"limits.window.max = 4", "limits.window.max_per_sku = 0", "limits.window.max_delay = \"20ms\"", fleetRoute)
	steps := []string{"", "PRO", preface, preface + "GET / HT", preface +
		"POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 9\r\n\r\nhalf",
		preface + "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
		preface + strings.Repeat("GET / HTTP/1.1\r\nHost: s\r\n\r\n", 8), preface +
			"GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		preface + "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"}
	leaves := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	var held []net.Conn
	for range 6 {
		c := dial(t, g.front)
		saying(t, c, preface+"GET /held HTTP/1.1\r\nHost: s\r\n\r\n")
		held = append(held, c)
	}
	soon(t, "two are in the shop, and four wait", func() bool {
		return g.metric("sluice_gated_in_flight") == 2 && g.metric("sluice_queue_length") == 4
	})
	for _, c := range held {
		leaves(c)
	}
	var all sync.WaitGroup
	for range 10 {
		for _, step := range steps {
			all.Go(func() {
				c, err := net.Dial("tcp", g.front)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, step)
				leaves(c)
			})
		}
	}
	all.Wait()
	close(release)
	soon(t, "all have gone", func() bool {
		return g.metric("sluice_connections")+g.metric("sluice_gated_in_flight")+g.metric("sluice_queue_length") == 0
	})
	for range 20 { // this client's connections are free, all of them
		c := dial(t, g.front)
		if !stays(t, prefaced{c, preface}) {
			t.Fatal("a connection of those who left still counts")
		}
	}
	g.wantMetric(20, "sluice_connections")
	g.wantMetric(0, "sluice_gated_in_flight")
}

// prefaced says who is behind a connection with the first that is written to it.
type prefaced struct {
	net.Conn
	preface string
}

func (p prefaced) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(append([]byte(p.preface), b...))
	return max(0, n-len(p.preface)), err
}
