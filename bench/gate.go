package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/load"
)

//go:embed peers sluice
var configurations embed.FS

// readyPath is asked until it is answered.
const readyPath = "/item/ready"

// kind is one of those who are measured: how it is configured and started.
type kind struct {
	name    string
	title   string
	needs   string   // a command that has to be there; "" = none
	files   []string // its configuration, rendered into the folder of the run
	command func(f *field, dir string, s settings) []string
	ready   func(s settings) string // the URL that says that it serves
	tells   string                  // of its requests: "logged", "traced", or "" = nothing
}

func (k kind) label() string { return k.name }

// bound tells that it is no gate, but what one built on fasthttp can reach.
func (k kind) bound() bool { return k.name == "bare" || k.name == "naive" }

// settings are what a configuration is rendered with.
type settings struct {
	Front, Ops, Shop     string // host:port
	Decide               string // likewise: where other proxies ask Sluice
	RedisHost, RedisPort string
	Cores, Files         int
	Dir                  string
	Modules              []string // of nginx
	Lua                  bool
	OneAPerson           string // "true", "false"
	Config               string // the file that Sluice is to read
	Routes               []int  // that take orders; this and the next are of scale.toml
	Keys                 int    // that a rate has room for
	Tells                string // as the kind does
}

// gateKinds are all of them, the peers first.
func gateKinds() []kind {
	front := func(s settings) string { return "http://" + s.Front + readyPath }
	self := func(how string) func(*field, string, settings) []string {
		return func(f *field, _ string, s settings) []string { return []string{f.self, "serve", how, s.Front, s.Shop} }
	}
	sluice := kind{name: "sluice", title: "Sluice", files: []string{"sluice/sluice.toml"},
		ready: func(s settings) string { return "http://" + s.Ops + "/readyz" },
		command: func(f *field, dir string, s settings) []string {
			return []string{f.binary, "run", "--config", filepath.Join(dir, s.Config)}
		}}
	asked := sluice
	asked.name, asked.title = "decide", "Sluice, asked by a proxy"
	return []kind{
		{name: "nginx", title: "nginx + Lua", needs: "nginx", files: []string{"peers/nginx.conf", "peers/gate.lua"},
			ready: front,
			command: func(_ *field, dir string, _ settings) []string {
				return []string{"nginx", "-p", dir, "-e", filepath.Join(dir, "nginx.log"), "-c", filepath.Join(dir, "nginx.conf")}
			}},
		{name: "haproxy", title: "HAProxy", needs: "haproxy", files: []string{"peers/haproxy.cfg"}, ready: front,
			command: func(_ *field, dir string, _ settings) []string {
				return []string{"haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg")}
			}},
		sluice,
		asked,
		{name: "bare", title: "fasthttp, answers at once", ready: front, command: self("bare")},
		{name: "naive", title: "fasthttp, naive forwarder", ready: front, command: self("naive")},
	}
}

// gate is one that runs.
type gate struct {
	*load.Process
	front string        // host:port
	asked bool          // requests are not sent there: a question about each is
	file  string        // its configuration
	took  time.Duration // from the start of the process to the first answer
}

// open starts a gate of a kind in front of the shop.
func (f *field) open(ctx context.Context, k kind, oneAPerson bool) (*gate, error) {
	s, err := f.settings(oneAPerson)
	if err == nil {
		s.Tells = k.tells
		err = k.render(f.dir, s)
	}
	if err != nil {
		return nil, err
	}
	return f.launch(ctx, k, f.dir, s)
}

// launch starts a gate whose configuration is in dir.
func (f *field) launch(ctx context.Context, k kind, dir string, s settings) (*gate, error) {
	begin := time.Now()
	c, err := load.StartProcess(ctx, f.dir, k.name, k.command(f, dir, s)...)
	if err != nil {
		return nil, err
	}
	took, err := c.Answers(ctx, begin, k.ready(s))
	if err != nil {
		c.Stop()
		return nil, err
	}
	g := &gate{Process: c, front: s.Front, took: took}
	if k.name == "decide" {
		g.front, g.asked = s.Decide, true
	}
	if len(k.files) > 0 {
		g.file = filepath.Join(dir, filepath.Base(k.files[0]))
	}
	return g, nil
}

// settings are those of the next gate, with addresses of its own.
func (f *field) settings(oneAPerson bool) (s settings, err error) {
	s = settings{Shop: f.shopAddress, Cores: runtime.NumCPU(), Files: f.files, Dir: f.dir, Modules: f.modules,
		Lua: len(f.modules) > 0, Config: "sluice.toml", OneAPerson: strconv.FormatBool(oneAPerson)}
	if s.RedisHost, s.RedisPort, err = net.SplitHostPort(f.redis.address); err != nil {
		return s, err
	}
	free, err := load.FreeAddresses(3)
	if err == nil {
		s.Front, s.Ops, s.Decide = free[0], free[1], free[2]
	}
	return s, err
}

// render writes the configuration of a kind into dir.
func (k kind) render(dir string, s settings) error {
	for _, name := range k.files {
		t, err := template.ParseFS(configurations, name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, s); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), out.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// luaModules are the files that make nginx speak Lua; none where they are not installed.
func luaModules() []string {
	for _, dir := range []string{"/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/local/nginx/modules"} {
		kit, lua := filepath.Join(dir, "ndk_http_module.so"), filepath.Join(dir, "ngx_http_lua_module.so")
		if _, err := os.Stat(lua); err == nil {
			return []string{kit, lua}
		}
	}
	return nil
}

// build compiles sluice as it is delivered, in the module above this one.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "sluice")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "nethttpomithttp2",
		"-ldflags", "-s -w", "-o", path, "./cmd/sluice")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sluice: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return path, nil
}

// What fasthttp costs by itself: the least that a gate built upon it can cost.

// serve runs a bare server until ctx ends: "bare" answers at once, "naive" forwards whatever comes.
func serve(ctx context.Context, kind, front, shop string) error {
	handlers := map[string]fasthttp.RequestHandler{"bare": rejectAll, "naive": forwarder(shop)}
	handler := handlers[kind]
	if handler == nil {
		return fmt.Errorf("serve %q: it is bare or naive", kind)
	}
	l, err := net.Listen("tcp", front)
	if err != nil {
		return err
	}
	s := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.ShutdownWithContext(ctx) // a connection that stays open ends with the process
		return nil
	}
}

// reject answers as a gate does that limits, or has sold out; to the first look, that it is there.
func rejectAll(ctx *fasthttp.RequestCtx) {
	if string(ctx.Path()) == readyPath {
		return
	}
	status := fasthttp.StatusTooManyRequests
	if ctx.IsPost() {
		status = fasthttp.StatusConflict
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/problem+json")
	ctx.SetBodyString(`{"type":"about:blank","title":"Too Many Requests","status":429}`)
}

// forwarder hands every request to the shop, and its answer back, without a question.
func forwarder(shop string) fasthttp.RequestHandler {
	client := &fasthttp.HostClient{Addr: shop, MaxConns: 4096, MaxIdleConnDuration: 60 * time.Second,
		NoDefaultUserAgentHeader: true}
	return func(ctx *fasthttp.RequestCtx) {
		if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	}
}
