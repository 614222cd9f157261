//go:build linux

package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/testkit"
)

// throng opens n connections from as many addresses as the default limit of one asks for; fewer where this process may
// not open so many files.
func throng(t *testing.T, address string, n int) []net.Conn {
	t.Helper()
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	n = min(n, int(files.Cur/2))
	all := make([]net.Conn, n)
	for i := range all {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/150))}, Timeout: long}
		c, err := from.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		all[i] = c
	}
	return all
}

// An idle keep-alive connection costs little beyond what the kernel keeps.
func TestMemory_IdleConnectionsAreCheap(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	shop := open(t, nil)
	// A new connection may wait so long for its first request: 10,000 are opened before the first one asks.
	g := gate(t, shop.setting(), unlogged, `stock.source = "off"`,
		"server.read_timeout = \"4m\"",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	all := throng(t, g.front, 10_000)
	for _, c := range all {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // until all of them wait
	most := 20<<10 + 80<<10*len(all)/10_000
	got := g.resident()
	t.Logf("%d idle connections: %d KiB in all", len(all), got)
	if got > most {
		t.Errorf("%d idle connections: %d KiB, want at most %d", len(all), got, most)
	}
}

// A length is only announced: memory follows what arrives.
func TestMemory_AnnouncedBodiesCostWhatHasArrived(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	shop := open(t, nil)
	g := gate(t, shop.setting(), `stock.source = "off"`, "limits.concurrency.max_in_flight = 100000",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"")
	all := throng(t, g.front, 5_000)
	for _, c := range all {
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 204800\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // until what was sent has arrived
	got := g.resident()
	t.Logf("%d announced bodies of 200 KiB: %d KiB in all", len(all), got)
	if got > 120<<10 {
		t.Errorf("%d announced bodies: %d KiB, want at most %d", len(all), got, 120<<10)
	}
	if n := shop.arrivals.Load(); n != 0 {
		t.Errorf("%d of them reached the shop", n)
	}
}
