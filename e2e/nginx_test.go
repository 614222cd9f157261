package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nginx runs one until the test ends, as somebody sets it up who knows it: HTTP/1.1 and kept connections to the shop,
// the client's Host and address, no second try of what was sent. It has one socket for each shop, in the order of shops.
func nginx(t *testing.T, shops []*recorder) (sockets []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nginx") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var sites strings.Builder
	for i, shop := range shops {
		sockets = append(sockets, fmt.Sprintf("%s/%d.sock", dir, i))
		fmt.Fprintf(&sites, "upstream shop%d { server %s; keepalive 16; }\n", i, shop.address)
		fmt.Fprintf(&sites, "server { listen unix:%s; location / { proxy_pass http://shop%d; } }\n", sockets[i], i)
	}
	text := strings.ReplaceAll(nginxConfig, "DIR", dir) + sites.String() + "}\n"
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("nginx", "-c", file, "-p", dir, "-e", filepath.Join(dir, "error.log"))
	var said journal
	process.Stderr = &said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = process.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	soon(t, "nginx listens", func() bool {
		c, err := net.Dial("unix", sockets[len(sockets)-1])
		if err == nil {
			c.Close()
		}
		select {
		case <-ended:
			t.Fatalf("nginx ended at once: %s", said.String())
		default:
		}
		return err == nil
	})
	return sockets
}

const nginxConfig = `daemon off;
master_process off;
pid DIR/pid;
error_log DIR/error.log;
events { worker_connections 8192; }
http {
access_log off;
client_body_temp_path DIR/body;
proxy_temp_path DIR/proxy;
fastcgi_temp_path DIR/fastcgi;
uwsgi_temp_path DIR/uwsgi;
scgi_temp_path DIR/scgi;
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_set_header Host $host;
proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
proxy_next_upstream off;
`

// nginxVersion is like "nginx 1.22.1"; "" = not installed.
func nginxVersion() string {
	text, err := exec.Command("nginx", "-v").CombinedOutput()
	if err != nil {
		return ""
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(text)), "version: ")
	return strings.Replace(version, "/", " ", 1)
}

// comparison is what nginx did with a request: its answer, and what its shop saw.
type comparison struct{ answer, shop string }

// askNginx plays all chapters to an nginx, some cases at a time, each in front of a shop of its own.
func askNginx(t *testing.T) map[string]comparison {
	t.Helper()
	type play struct {
		wired
		key  string
		ends bool
	}
	var plays []play
	var shops []*recorder
	for _, ch := range chapters {
		for _, c := range ch.cases {
			plays = append(plays, play{c, ch.title + "/" + c.name, ch.ends})
			shops = append(shops, record(t))
		}
	}
	sockets := nginx(t, shops)
	got := make([]comparison, len(plays))
	t.Run("nginx", func(t *testing.T) {
		for i, p := range plays {
			t.Run(p.key, func(t *testing.T) {
				t.Parallel()
				c, err := net.Dial("unix", sockets[i])
				if err = errors.Join(err, c.SetDeadline(time.Now().Add(3*time.Second))); err != nil {
					t.Fatal(err)
				}
				got[i].answer = converse(t, c, p.raw, p.ends)
				got[i].shop = shops[i].took(t)
			})
		}
	})
	all := map[string]comparison{}
	for i, p := range plays {
		all[p.key] = got[i]
	}
	return all
}
