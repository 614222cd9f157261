package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice/internal/load"
)

// env is what a scenario plays with: a shop, and the servers in front of it that it starts. All of them listen on
// loopback and end with the scenario.
type env struct {
	short  bool
	shop   *shop
	binary string // of sluice
	dir    string
	peers  []*peer
}

func newEnv(binary string, short bool) (*env, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sluice-attack-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // nginx, started by root, works as another user
		return nil, err
	}
	e := &env{short: short, binary: path, dir: dir}
	if e.shop, err = openShop(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return e, nil
}

func (e *env) close() {
	for _, p := range e.peers {
		p.stop()
	}
	e.shop.close()
	_ = os.RemoveAll(e.dir)
}

// connections is how many connections a scenario may open that wants n: half of the open files that are allowed but
// some, since clients and shop, which are this process, may each need one.
func connections(n int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < 1024 {
		return min(n, 256)
	}
	return min(n, int(files.Cur/2)-200)
}

// dial opens a connection to a peer from the i-th address of the attackers: one address has 200 connections.
func dial(ctx context.Context, i int, address string) (net.Conn, error) {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/150/250), byte(1+i/150%250))}}
	return from.DialContext(ctx, "tcp", address)
}

// shop is the upstream: an HTTP server that reads each body to its end and answers.
type shop struct {
	url    string
	server *http.Server
}

func openShop() (*shop, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shop{url: "http://" + ln.Addr().String()}
	s.server = &http.Server{Handler: s, IdleTimeout: time.Minute}
	go func() { _ = s.server.Serve(ln) }() // ends with close
	return s, nil
}

func (s *shop) close() { _ = s.server.Close() }

// peer is a server under attack: a process, with its children.
type peer struct {
	*load.Process
	address string  // host:port for clients
	ops     string  // host:port for health and metrics; "" = none
	allowed float64 // MiB of memory that "sluice check" foretells at the worst; 0 = not known
	most    float64 // MiB of PSS that it had, once it is stopped
	unwatch func() float64
}

// sluice starts the binary. The settings are TOML; listeners and upstream are added in front of them.
func (e *env) sluice(ctx context.Context, settings string) (*peer, error) {
	front, err := load.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(settings, "max_connections =") {
		// so that the memory foretold is not that of 50,000
		settings = "limits.connection.max_connections = 5000\n" + settings
	}
	text := fmt.Sprintf("server.listen = [%q]\nops.listen = %q\nadmin.listen = %q\n"+
		"server.shutdown_delay = \"0s\"\nserver.shutdown_timeout = \"1s\"\nupstream.targets = [%q]\n%s",
		front[0], front[1], front[2], e.shop.url, settings)
	path := filepath.Join(e.dir, fmt.Sprintf("sluice-%d.toml", len(e.peers)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := e.start(ctx, front[0], e.binary, "run", "--config", path)
	if err != nil {
		return nil, err
	}
	p.ops = front[1]
	if err := p.Listens(ctx, p.ops); err != nil { // it opens behind that for clients
		return nil, err
	}
	p.allowed, err = foretold(e.binary, path)
	return p, err
}

// foretold is the memory in MiB that "sluice check" says a configuration needs at the worst.
func foretold(binary, config string) (mib float64, err error) {
	text, err := exec.Command(binary, "check", "-v", config).CombinedOutput()
	_, after, ok := strings.Cut(string(text), "memory    at most ")
	if !ok {
		return 0, fmt.Errorf("sluice check says nothing of memory: %v\n%s", err, text)
	}
	_, err = fmt.Sscan(after, &mib)
	return mib, err
}

// nginxConfig is nginx with its own defaults, but for what Sluice has by default too: the number of connections, the
// time for a request, and connections to the upstream that are kept.
const nginxConfig = `daemon off; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
worker_processes 2; worker_rlimit_nofile %[4]d;
events { worker_connections %[5]d; }
http {
	access_log off; client_max_body_size 1g; client_body_timeout 10s; keepalive_requests 100000;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u;
	scgi_temp_path %[1]s/s;
	upstream shop { server %[3]s; keepalive 512; }
	server {
		listen %[2]s backlog=4096;
		location / { proxy_pass http://shop; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}
`

// nginx starts nginx in front of the shop.
func (e *env) nginx(ctx context.Context) (*peer, error) {
	front, err := load.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(e.dir, fmt.Sprintf("nginx-%d", len(e.peers)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	files := 2 * connections(1<<20)
	text := fmt.Sprintf(nginxConfig, dir, front[0], strings.TrimPrefix(e.shop.url, "http://"), files, files)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return e.start(ctx, front[0], "nginx", "-p", dir, "-c", path)
}

// start runs a server and waits until it listens.
func (e *env) start(ctx context.Context, address string, command ...string) (*peer, error) {
	c, err := load.StartProcess(ctx, e.dir, "peer", command...)
	if err != nil {
		return nil, err
	}
	p := &peer{Process: c, address: address}
	p.unwatch = p.watchMemory()
	e.peers = append(e.peers, p)
	return p, c.Listens(ctx, address)
}

// stop ends the process and waits for it.
func (p *peer) stop() {
	p.most = p.unwatch()
	p.Stop()
}
