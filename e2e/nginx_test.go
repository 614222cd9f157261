package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"sluice/internal/testkit"
)

// nginxExamples are the pages whose lines for nginx people copy.
var nginxExamples = []string{"README.md", "README.zh-CN.md", "docs/in-front-of.md", "examples/nginx-front/nginx.conf"}

var nginxBlock = regexp.MustCompile("(?s)```nginx\n(.*?)```")

// nginxSnippets are the pieces of a page that hold lines for nginx.
func nginxSnippets(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(page, ".conf") {
		return []string{string(text)}
	}
	for _, m := range nginxBlock.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}

// nginxInFront runs nginx with the lines of a page, whose gate is at address: "host:port" or "unix:/path".
func nginxInFront(t *testing.T, snippet, address string) (front string) {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	i := strings.Index(snippet, "location ")
	if i < 0 || !strings.Contains(snippet[:i], "upstream ") {
		t.Fatalf("no upstream { } and location { } in\n%s", snippet)
	}
	server := regexp.MustCompile(`(?m)^\s*server [^;{]+;`)
	if n := len(server.FindAllString(snippet[:i], -1)); n != 1 {
		t.Fatalf("%d servers in\n%s", n, snippet)
	}
	upstream := server.ReplaceAllString(snippet[:i], "server "+address+";")
	dir, front := t.TempDir(), testkit.FreeAddress(t)
	if err := os.Chmod(dir, 0o755); err != nil { // for the workers, which are another user
		t.Fatal(err)
	}
	conf := fmt.Sprintf("daemon off;\nworker_processes 1;\npid %[1]s/pid;\nerror_log %[1]s/log error;\n%[2]s"+
		"events { worker_connections 512; }\nhttp {\naccess_log off;\nclient_body_temp_path %[1]s/body;\n"+
		"proxy_temp_path %[1]s/proxy;\nfastcgi_temp_path %[1]s/f;\nuwsgi_temp_path %[1]s/u;\nscgi_temp_path %[1]s/s;\n"+
		"%[3]s\nserver {\nlisten %[4]s;\n%[5]s\n}\n}\n", dir, nginxUser(), upstream, front, snippet[i:])
	path := file(t, conf)
	process := exec.Command(nginx, "-p", dir, "-c", path)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(os.Interrupt)
		_ = process.Wait()
		if log, _ := os.ReadFile(filepath.Join(dir, "log")); t.Failed() {
			t.Logf("nginx:\n%s", log)
		}
	})
	soon(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", front)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return front
}

// nginxUser has the workers run as another user, as installed: root alone may choose.
func nginxUser() string {
	if _, err := user.LookupGroup("www-data"); err != nil || os.Getuid() != 0 {
		return ""
	}
	return "user www-data;\n"
}

// relay forwards connections to address, and counts them.
func relay(t *testing.T, address string) (at string, count *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	count = new(atomic.Int64)
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			to, err := net.Dial("tcp", address)
			if err != nil {
				from.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, from); to.Close() }()
			go func() { _, _ = io.Copy(from, to); from.Close() }()
		}
	}()
	return ln.Addr().String(), count
}

// orders sends n orders over one connection, and returns how many got the status.
func orders(t *testing.T, front string, n, status int) (got int) {
	t.Helper()
	for i := range n {
		if s, said := bought(t, "http://"+front, i); s == status {
			got++
		} else if got == i {
			t.Logf("order %d: %d %s", i, s, said)
		}
	}
	return got
}

func TestNginx_LinesOfTheDocsKeepConnections(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ordered") })
	const all = "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n"
	gate := gate(t, shop.setting(), `server.trusted_proxies = ["127.0.0.1/32"]`, all)
	tried := 0
	for _, page := range nginxExamples {
		for _, snippet := range nginxSnippets(t, page) {
			if strings.Contains(snippet, "server unix:") {
				continue // there is no port to run out of; the next test has it
			}
			tried++
			at, connections := relay(t, gate.front)
			front := nginxInFront(t, snippet, at)
			if got := orders(t, front, 100, http.StatusOK); got != 100 {
				t.Errorf("%s: %d of 100 orders were served", page, got)
			}
			if n := connections.Load(); n > 3 {
				t.Errorf("%s: nginx opened %d connections for 100 requests:\n%s", page, n, snippet)
			}
		}
	}
	if tried != len(nginxExamples) {
		t.Errorf("%d snippets on %d pages", tried, len(nginxExamples))
	}
}

// nginx runs as a user of its own: the socket must be of its group, and no other user may connect.
func TestNginx_ConnectsByAUnixSocketOfItsGroup(t *testing.T) {
	t.Parallel()
	group, err := user.LookupGroup("www-data")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root and the group www-data: the gate gives its socket away")
	}
	var snippet string
	for _, s := range nginxSnippets(t, "docs/in-front-of.md") {
		if strings.Contains(s, "server unix:") {
			snippet = s
		}
	}
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	})
	dir, err := os.MkdirTemp("", "sluice-socket-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "gate.sock")
	gate(t, shop.setting(), "ops.listen = \"127.0.0.1:0\"", "admin.listen = \"127.0.0.1:0\"",
		fmt.Sprintf("server.listen = [\"unix:%s\"]", path), `server.socket_group = "www-data"`,
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || groupOf(info) != group.Gid {
		t.Errorf("the socket: %v of group %s, want 0660 of %s; %v", info.Mode(), groupOf(info), group.Gid, err)
	}
	if got := orders(t, nginxInFront(t, snippet, "unix:"+path), 20, http.StatusOK); got != 20 {
		t.Errorf("%d of 20 orders were served", got)
	}
	if err := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		"curl", "-s", "--unix-socket", path, "http://gate/").Run(); err == nil {
		t.Error("a user of another group can connect")
	}
}
