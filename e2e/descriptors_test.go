//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/testkit"
)

// dialFrom opens a connection from one of many addresses of this machine; nil = it was not accepted.
func dialFrom(i int, addr string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i%200))}, Timeout: long}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	return c
}

// heard asks for a page on a connection of its own: the status, "closed", or what else happened.
func heard(c net.Conn, path string) string {
	_ = c.SetDeadline(time.Now().Add(long))
	_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	switch {
	case err == nil:
		return fmt.Sprint(resp.StatusCode)
	case os.IsTimeout(err):
		return "hangs"
	}
	return "closed"
}

// withFiles is a gate that may have so many files open.
func withFiles(t *testing.T, files int, settings ...string) *running {
	t.Helper()
	text := listeners + "server.shutdown_delay = \"0s\"\n" + strings.Join(settings, "\n") + "\n" + routes
	path := file(t, text)
	return start(t, path, exec.Command("prlimit", fmt.Sprintf("--nofile=%d:%d", files, files), binary, "run", "--config",
		path))
}

// A client that opens as many connections as it can leaves health, operators and the gate's own connections their
// descriptors.
func TestDescriptors_HealthIsAnsweredWhileAClientTakesAll(t *testing.T) {
	testkit.Nightly(t, "it measures descriptors")
	t.Parallel()
	const files, tried = 512, 900
	g := withFiles(t, files, open(t, nil).setting(), "upstream.max_conns = 64", "server.read_timeout = \"10m\"")
	g.logs(t, "limits.connection.max_connections is lowered", `"max_connections":50000`, `"allowed":512`, "LimitNOFILE")
	g.client.Transport.(*http.Transport).DisableKeepAlives = true
	var all []net.Conn
	for i := range tried {
		if c := dialFrom(i, g.front); c != nil {
			all = append(all, c)
			t.Cleanup(func() { c.Close() })
		}
		if i%10 == 0 {
			if status, text := g.peek("/livez"); status != http.StatusOK {
				t.Fatalf("after %d connections /livez: %d %s", i, status, text)
			}
			if c := dialFrom(i, g.admin); c == nil {
				t.Fatalf("after %d connections the control API cannot be reached", i)
			} else if got := heard(c, "/api/v1/status"); got != "200" && got != "403" {
				t.Fatalf("after %d connections the control API: %s", i, got)
			}
		}
	}
	said := map[string]int{}
	for i := range 20 {
		c := dialFrom(i, g.front)
		if c == nil {
			t.Fatal("a new client is not accepted")
		}
		said[heard(c, "/page")]++
		c.Close()
	}
	if said["429"]+said["closed"] != 20 {
		t.Errorf("new clients heard %v, want 429 or a close", said)
	}
	if got := heard(all[0], "/page"); got != "200" {
		t.Errorf("a client within the limit heard %s: there is no descriptor for the upstream", got)
	}
	soon(t, "there is a reserve of descriptors", func() bool { return openFiles(t, g) <= files-2*32+2 })
	for _, c := range all {
		c.Close()
	}
	soon(t, "a new client is served", func() bool {
		c := dialFrom(0, g.front)
		defer c.Close()
		return heard(c, "/page") == "200"
	})
}

func openFiles(t *testing.T, g *running) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// With no descriptor left at all a new client is still accepted and closed, and none waits in the kernel's queue.
func TestDescriptors_NewClientsNeverHangWithoutAny(t *testing.T) {
	testkit.Nightly(t, "it measures descriptors")
	t.Parallel()
	g := gate(t, open(t, nil).setting())
	g.client.CloseIdleConnections()
	held := dial(t, g.front)
	if got := stays(t, held); !got {
		t.Fatal("the first client is not served")
	}
	pid := g.process.Process.Pid
	before := unix.Rlimit{}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	takeAll := func() {
		none := unix.Rlimit{Cur: uint64(lowestFree(pid)), Max: before.Max}
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
			t.Fatal(err)
		}
	}
	takeAll()
	served := 0
	for i := range 200 {
		c := dialFrom(i, g.front)
		if c == nil {
			t.Fatalf("client %d is not accepted", i)
		}
		switch got := heard(c, "/page"); got {
		case "429", "closed":
		case "200": // a connection to operators or to the upstream has ended meanwhile
			served++
			takeAll()
		default:
			t.Fatalf("client %d: %s", i, got)
		}
		c.Close()
	}
	if served > 20 {
		t.Errorf("%d of 200 clients were served: the descriptors were not all taken", served)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	soon(t, "a new client is served", func() bool {
		c := dialFrom(0, g.front)
		defer c.Close()
		return heard(c, "/page") == "200"
	})
}

// lowestFree is the number that the next descriptor of a process gets.
func lowestFree(pid int) int {
	for fd := 0; ; fd++ {
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil {
			return fd
		}
	}
}
