package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// asker is a proxy that asks the gate and forwards by itself, with the configuration of examples/decide.
type asker struct {
	program, dialect, conf string
	listen                 string // the line by which the configuration listens
	settles                bool   // it tells what became of an order
	command                func(dir, conf, front string) *exec.Cmd
}

var askers = []asker{
	{program: "nginx", dialect: "nginx", conf: "nginx.conf", listen: "listen 80;", settles: true,
		command: func(dir, conf, _ string) *exec.Cmd { return exec.Command("nginx", "-p", dir, "-c", conf) }},
	{program: "haproxy", dialect: "haproxy", conf: "haproxy.cfg", listen: "bind :80", settles: true,
		command: func(_, conf, _ string) *exec.Cmd { return exec.Command("haproxy", "-f", conf) }},
	{program: "caddy", dialect: "caddy", conf: "Caddyfile", listen: ":80 {",
		command: func(_, conf, _ string) *exec.Cmd {
			return exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", conf)
		}},
	{program: "traefik", dialect: "traefik", conf: "traefik.yml", listen: "entryPoints.web.address=:80",
		command: func(_, conf, front string) *exec.Cmd {
			return exec.Command("traefik", "--global.checkNewVersion=false", "--entryPoints.web.address="+front,
				"--providers.file.filename="+conf)
		}},
}

// installed skips the test without the proxy, before anything else is started for it.
func (a *asker) installed(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(a.program); err != nil {
		t.Skip(a.program + " is not installed")
	}
}

// run runs the proxy before a shop and a gate. Each change is an old text and a new one.
func (a *asker) run(t *testing.T, shop *shop, g *running, changes ...string) (front string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../examples/decide", a.conf))
	if err != nil {
		t.Fatal(err)
	}
	lua, err := filepath.Abs("../examples/decide/sluice.lua")
	if err != nil {
		t.Fatal(err)
	}
	dir, front := t.TempDir(), testkit.FreeAddress(t)
	if err := os.Chmod(dir, 0o755); err != nil { // for the workers of nginx, which are another user
		t.Fatal(err)
	}
	if !strings.Contains(string(text), a.listen) {
		t.Fatalf("%s has no %q", a.conf, a.listen)
	}
	_, port, _ := strings.Cut(front, ":")
	temporary := fmt.Sprintf("daemon off;\npid %[1]s/pid;\nerror_log %[1]s/log error;\n%[2]sworker_processes 2;", dir,
		nginxUser())
	paths := fmt.Sprintf("http {\naccess_log off;\nclient_body_temp_path %[1]s/b;\nproxy_temp_path %[1]s/p;\n"+
		"fastcgi_temp_path %[1]s/f;\nuwsgi_temp_path %[1]s/u;\nscgi_temp_path %[1]s/s;\n", dir)
	conf := strings.NewReplacer(append([]string{
		a.listen, strings.Replace(a.listen, "80", map[bool]string{true: port, false: front}[a.program == "caddy"], 1),
		"127.0.0.1:9000", strings.TrimPrefix(shop.url, "http://"), "127.0.0.1:8080", g.front,
		"127.0.0.1:8092", g.asked(t), "worker_processes auto;", temporary, "\nhttp {\n", "\n" + paths,
		"lua-load sluice.lua", "lua-load " + lua,
	}, changes...)...).Replace(string(text))
	conf = strings.Replace(conf, "bind :"+front, "bind "+front, 1)
	path := filepath.Join(dir, a.conf)
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	process := a.command(dir, path, front)
	var log testkit.Log
	process.Env = append(os.Environ(), "HOME="+dir)
	process.Stdout, process.Stderr = &log, &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM) // a shell's background has SIGINT ignored
		_ = process.Wait()
		if written, _ := os.ReadFile(filepath.Join(dir, "log")); t.Failed() {
			t.Logf("%s:\n%s%s", a.program, log.String(), written)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: long}
	soon(t, a.program+" forwards", func() bool { // Traefik listens before it has read its file
		resp, err := client.Get("http://" + front + "/.sluice/client.js")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return front
}

// asked is where a gate with one [[decide]] is asked.
func (g *running) asked(t *testing.T) (address string) {
	t.Helper()
	soon(t, "the gate listens for proxies that ask", func() bool {
		for _, line := range g.log.lines() {
			if line.Msg == "listening for proxies that ask" {
				address = line.Address
			}
		}
		return address != ""
	})
	return address
}

func decides(dialect string) string {
	return fmt.Sprintf("[[decide]]\nlisten = \"127.0.0.1:0\"\ndialect = %q\n", dialect)
}

// askedShop is a shop that remembers its orders and tells of them.
type askedShop struct {
	*shop
	mu     sync.Mutex
	orders map[string]string // the SKU, by serial
	lost   []string          // fields that an order came without
}

func openAskedShop(t *testing.T) *askedShop {
	s := &askedShop{orders: map[string]string{}}
	s.shop = open(t, func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if serial, ok := strings.CutPrefix(r.URL.Path, "/orders/"); ok {
			if _, has := s.orders[serial]; !has {
				w.WriteHeader(http.StatusNotFound)
			}
			return
		}
		if r.URL.Path == askedOrder {
			for _, name := range []string{"Idempotency-Key", "Sluice-Sku", "Sluice-Quantity", "Sluice-Deadline"} {
				if r.Header.Get(name) == "" {
					s.lost = append(s.lost, name)
				}
			}
		}
		if serial := r.Header.Get("Idempotency-Key"); serial != "" && r.Method == "POST" {
			s.orders[serial] = r.Header.Get("Sluice-Sku")
			w.WriteHeader(http.StatusCreated)
		}
	})
	return s
}

func (s *askedShop) sold() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range s.orders {
		if sku == "1001" {
			n++
		}
	}
	return n
}

// bare names the fields that orders came without.
func (s *askedShop) bare() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lost)
}

func askFront(t *testing.T, client *http.Client, method, url string, fields ...string) answer {
	t.Helper()
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader("note=none")
	}
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	a, err := send(client, r)
	if err != nil {
		t.Error(err)
	}
	return a
}

const askedOrder = "/api/seckill/1001/order"

// rushFront has so many shoppers order through a proxy, every other one in a browser.
func rushFront(t *testing.T, front string, shoppers int) (sum map[string]int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 4 * long}
	defer client.CloseIdleConnections()
	sum = map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan int)
	for range 64 {
		all.Go(func() {
			for i := range next {
				accept := "application/json"
				if i%2 == 0 {
					accept = "text/html"
				}
				h := askFront(t, client, "POST", "http://"+front+askedOrder, "Cookie", "uid="+strconv.Itoa(i), "Accept", accept)
				kind, _, _ := strings.Cut(h.header.Get("Content-Type"), ";")
				mu.Lock()
				if h.reason == "" {
					kind = ""
				}
				sum[strings.TrimSpace(fmt.Sprintf("%d %s %s", h.status, h.reason, kind))]++
				mu.Unlock()
			}
		})
	}
	for i := range shoppers {
		next <- i
	}
	close(next)
	all.Wait()
	return sum
}

const askedCrowd, askedUnits = 2000, 10

// A crowd through the real proxies: the units are sold, and no more; the books are equal, whether the proxy tells what
// became of each order or the resolver has to ask.
func TestDecide_CrowdThroughRealProxies(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		for _, settles := range []bool{true, false} {
			if settles && !a.settles || !settles && a.program == "haproxy" {
				continue
			}
			t.Run(fmt.Sprintf("%s, settles %v", a.program, settles), func(t *testing.T) {
				a.installed(t)
				redis, shop := redistest.Start(t), openAskedShop(t)
				g := reserves(t, redis, askedUnits, shop.setting(), `upstream.timeout = "3s"`,
					`upstream.response_header_timeout = "3s"`,
					fmt.Sprintf("stock.reserve.status_url = %q", shop.url+"/orders/{serial}"), decides(a.dialect))
				var changes []string
				if !settles {
					changes = []string{"post_action /_sluice/settle;", ""}
				}
				front := a.run(t, shop.shop, g, changes...)
				sum := rushFront(t, front, askedCrowd)
				if n := sum["201"]; n != askedUnits || shop.sold() != askedUnits {
					t.Errorf("%d have bought, the shop has %d orders of %d units: %v", n, shop.sold(), askedUnits, sum)
				}
				left := askedCrowd - askedUnits
				for kind := range sum {
					if strings.Contains(kind, "409 sold_out") || strings.Contains(kind, "undecided") {
						left -= sum[kind]
					}
				}
				// Without settlement the units are undecided while the crowd is there.
				soldOut := sum["409 sold_out text/html"] > 0 && sum["409 sold_out application/problem+json"] > 0
				if left != 0 || settles && !soldOut {
					t.Errorf("not all others heard sold out: %v", sum)
				}
				soon(t, "the books are equal", func() bool {
					return ledgerOf(t, redis, "1001") == account{total: askedUnits, sold: askedUnits}
				})
				client := &http.Client{Timeout: long}
				for accept, part := range map[string]string{"text/html": "<html", "application/json": `"reason":"sold_out"`} {
					var h answer
					soon(t, "the gate knows that the last unit is sold, too", func() bool {
						h = askFront(t, client, "POST", "http://"+front+askedOrder, "Cookie", "uid=last", "Accept", accept,
							// forged: they say that this is a page
							"X-Original-Method", "GET", "X-Original-URI", "/", "X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/")
						return h.reason != "undecided"
					})
					if h.status != 409 || h.reason != "sold_out" || !strings.Contains(h.body, part) {
						t.Errorf("%s: %d %s %s", accept, h.status, h.reason, h.body)
					}
				}
				h := askFront(t, client, "GET", "http://"+front+"/page", "Sluice-Sku", "1001", "Sluice-Serial", "x")
				if h.status != 200 {
					t.Errorf("a page: %d %s %s", h.status, h.reason, h.body)
				}
				if h := askFront(t, client, "GET", "http://"+front+"/.sluice/client.js"); h.status != 200 {
					t.Errorf("what Sluice answers itself: %d %s", h.status, h.body)
				}
				if sold := shop.sold(); sold != askedUnits {
					t.Errorf("the shop has %d orders of %d units", sold, askedUnits)
				}
			})
		}
	}
}

// What a shopper writes into a request settles no order and takes no field of the gate away.
func TestDecide_ShoppersCannotSettleNorStripFields(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			redis, shop := redistest.Start(t), openAskedShop(t)
			g := reserves(t, redis, askedUnits, shop.setting(), `upstream.timeout = "2s"`,
				`upstream.response_header_timeout = "2s"`,
				fmt.Sprintf("stock.reserve.status_url = %q", shop.url+"/orders/{serial}"), decides(a.dialect))
			front := a.run(t, shop.shop, g)
			client := &http.Client{Transport: &http.Transport{}, Timeout: long}
			defer client.CloseIdleConnections()
			shoppers := 0
			order := func(fields ...string) int {
				shoppers++
				cookie := "uid=" + strconv.Itoa(shoppers)
				h := askFront(t, client, "POST", "http://"+front+askedOrder, append(fields, "Cookie", cookie)...)
				return h.status
			}
			for _, fields := range [][]string{
				{"Sluice-Order", "released"},
				{"Sluice-Order", "released", "Sluice-Status", "400", "Idempotency-Key", "x"},
				{"Idempotency-Key", "x&status=400"}, // settles itself alone
				{"Idempotency-Key", "x&sku=1001&status=400"},
			} {
				if status := order(fields...); status != http.StatusCreated {
					t.Errorf("%q: %d", fields, status)
				}
			}
			sold := shop.sold()
			if sold != shoppers {
				t.Errorf("the shop has %d orders of %d shoppers", sold, shoppers)
			}
			for _, list := range []string{"Sluice-Sku, Idempotency-Key, keep-alive", "close, sluice-sku", "IDEMPOTENCY-KEY",
				"Sluice-Quantity,Sluice-Deadline,Sluice-Signature,Sluice-Serial", "Cookie, Sluice-Sku"} {
				status, before := order("Connection", list), sold
				if sold = shop.sold(); status != http.StatusBadRequest && (status != http.StatusCreated || sold != before+1) {
					t.Errorf("Connection: %s: %d, and the shop has %d orders more", list, status, sold-before)
				}
				if len(shop.bare()) > 0 {
					t.Errorf("Connection: %s: the shop got an order without %v", list, shop.bare())
				}
			}
			soon(t, "every order is sold", func() bool {
				return ledgerOf(t, redis, "1001") == account{total: askedUnits, sold: sold}
			})
			h := askFront(t, client, "POST", "http://"+front+"/note", "Idempotency-Key", "own")
			if h.status != http.StatusCreated || shop.sold() != sold {
				t.Errorf("without a reservation the shopper's own key got lost: %d", h.status)
			}
			if n := g.metric("sluice_decisions_ended_total", `how="settled"`); a.settles != (n > 0) {
				t.Errorf("%v decisions were settled", n)
			}
		})
	}
}

// A request that the shop has not answered settles nothing, and holds no slot for upstream.timeout. One that was never
// sent takes no unit.
func TestDecide_RequestsWithoutAnAnswerAreToldOf(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		if !a.settles {
			continue
		}
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			shop := open(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			redis := redistest.Start(t)
			g := reserves(t, redis, askedUnits, shop.setting(), `upstream.timeout = "1h"`, decides(a.dialect))
			front := a.run(t, shop, g)
			h := askFront(t, &http.Client{Timeout: long}, "POST", "http://"+front+askedOrder, "Cookie", "uid=1")
			if h.status != http.StatusBadGateway || h.reason != "" {
				t.Errorf("%d %s %s", h.status, h.reason, h.body)
			}
			soon(t, "the proxy has told of its own answer", func() bool {
				return g.metric("sluice_decisions_ended_total", `how="settled"`) == 1 && g.metric("sluice_decisions_open") == 0
			})
			if got := ledgerOf(t, redis, "1001"); got.sold > 0 {
				t.Errorf("%+v", got)
			}
			if a.program != "nginx" { // others send what has come, and tell nothing of a client that breaks off
				return
			}
			held := ledgerOf(t, redis, "1001")
			c, err := net.Dial("tcp", front)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: shop\r\nCookie: uid=2\r\nContent-Length: 50\r\n\r\nhalf", askedOrder)
			soon(t, "a unit is reserved", func() bool { return g.metric("sluice_decisions_open") == 1 })
			c.Close()
			soon(t, "it is free again", func() bool {
				return g.metric("sluice_decisions_open") == 0 && ledgerOf(t, redis, "1001") == held
			})
		})
	}
}

// Many clients send an order and leave at once, as when a page is reloaded. Each order is sent, or was never admitted.
func TestDecide_ClientThatLeavesLeavesNoUnitHeld(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		if !a.settles {
			continue
		}
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			shop, redis := open(t, nil), redistest.Start(t)
			const orders = 120
			g := reserves(t, redis, orders, shop.setting(), `upstream.timeout = "1h"`, decides(a.dialect))
			front := a.run(t, shop, g)
			for i := range orders {
				c, err := net.Dial("tcp", front)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: shop\r\nCookie: uid=%d\r\nContent-Length: 0\r\n\r\n", askedOrder, i)
				if i%3 > 0 {
					time.Sleep(time.Duration(i%3) * time.Millisecond) // the fault: it leaves while it is asked about
				}
				c.Close()
			}
			h := askFront(t, &http.Client{Timeout: long}, "POST", "http://"+front+askedOrder, "Cookie", "uid=last")
			if h.status != http.StatusOK && h.status != http.StatusConflict && h.reason != "undecided" {
				t.Errorf("the last one: %d %s %s", h.status, h.reason, h.body)
			}
			soon(t, "all that was admitted has come to the shop", func() bool {
				got := ledgerOf(t, redis, "1001")
				return g.metric("sluice_decisions_open") == 0 && got.held == 0 && got.sold == int(shop.arrivals.Load())
			})
		})
	}
}

// HAProxy 2.6 crashed where the example asked with as many fields as HAProxy itself takes.
func TestDecide_RequestWithManyFieldsIsAnswered(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			shop, redis := open(t, nil), redistest.Start(t)
			front := a.run(t, shop, reserves(t, redis, askedUnits, shop.setting(), decides(a.dialect)))
			for _, n := range []int{80, 96, 99, 300} {
				c, err := net.Dial("tcp", front)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(c, "GET /page HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n%s\r\n", strings.Repeat("X-n: a\r\n", n))
				if _, err = http.ReadResponse(bufio.NewReader(c), nil); err != nil {
					t.Errorf("%d fields: %v", n, err)
				}
				c.Close()
			}
		})
	}
}

// Proxies clean, decode and encode targets each in its own way. What a shop could read as an order has its unit, and
// fields of a client do not choose the request that is asked about.
func TestDecide_OrderHasItsUnitHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	targets := []string{askedOrder, "/" + askedOrder, "/api//seckill/1001/order", "/x/../api/seckill/1001/order",
		"/x/%2e%2e/api/seckill/1001/order", "/.sluice/../api/seckill/1001/order", "/.sluice/%2e%2e" + askedOrder,
		"/api/seckill%2f1001/order", "/api/seckill/1001/orde%72", askedOrder + "/", askedOrder + ";a=1", askedOrder + "%00",
		"/API/seckill/1001/order", askedOrder + "?a=1;b=2", askedOrder + "?a=%zz", "http://other" + askedOrder}
	fields := []string{"X-Forwarded-Uri: /page\r\nX-Forwarded-Method: GET", "X-Original-URL: /page",
		"X-Original-URI: /page\r\nX-Original-Method: GET", "X-Rewrite-URL: /page", "X_Forwarded_Uri: /page",
		"Connection: X-Forwarded-Uri, Sluice-Sku"}
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			var bare sync.Map
			shop := open(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.EqualFold(path.Clean(r.URL.Path), askedOrder) && r.Header.Get("Sluice-Sku") != "1001" {
					bare.Store(r.RequestURI, r.Header)
				}
			})
			front := a.run(t, shop, reserves(t, redistest.Start(t), 1000, shop.setting(), decides(a.dialect)))
			shoppers := 0
			send := func(target, field string) int {
				c, err := net.Dial("tcp", front)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				shoppers++
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: shop\r\nCookie: uid=%d\r\n%s\r\nContent-Length: 0\r\n\r\n",
					target, shoppers, field)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(target, field, err)
				}
				return resp.StatusCode
			}
			for _, target := range targets {
				send(target, "Accept: text/html")
			}
			for _, field := range fields {
				send(askedOrder, field)
			}
			bare.Range(func(target, header any) bool {
				t.Errorf("the shop got %s without a unit: %v", target, header)
				return true
			})
			if status := send(askedOrder, "Accept: text/html"); status != http.StatusOK {
				t.Errorf("an order: %d", status)
			}
		})
	}
}

// Traefik behind a balancer names the clients, and not the balancer. Clients choose no request there either.
func TestDecide_TraefikBehindABalancerNamesTheClient(t *testing.T) {
	t.Parallel()
	a := askers[slices.IndexFunc(askers, func(a asker) bool { return a.program == "traefik" })]
	a.installed(t)
	direct := a.command
	a.command = func(dir, conf, front string) *exec.Cmd {
		c := direct(dir, conf, front)
		c.Args = append(c.Args, "--entryPoints.web.forwardedHeaders.trustedIPs=127.0.0.0/8")
		return c
	}
	shop := openAskedShop(t)
	g := reserves(t, redistest.Start(t), askedUnits, shop.setting(), decides(a.dialect),
		"[[limits.rate]]\nname = \"ip\"\nkey = \"$remote_addr\"\nrate = \"1/m\"\nburst = 1\n")
	front := a.run(t, shop.shop, g, "trustForwardHeader: false", "trustForwardHeader: true")
	for shopper := range 6 {
		client := shopper / 2
		h := askFront(t, &http.Client{Timeout: long}, "POST", "http://"+front+askedOrder, "Cookie", fmt.Sprint("uid=", shopper),
			"X-Forwarded-For", fmt.Sprintf("192.0.2.9, 203.0.113.%d", client),
			"X-Forwarded-Uri", "/page", "X-Forwarded-Method", "GET", "X-Forwarded-Host", "other")
		if want := []int{http.StatusCreated, http.StatusTooManyRequests}[shopper%2]; h.status != want {
			t.Errorf("shopper %d of client %d: %d %s, want %d", shopper, client, h.status, h.reason, want)
		}
	}
	if sold, lost := shop.sold(), shop.bare(); sold != 3 || len(lost) > 0 {
		t.Errorf("the shop has %d orders, want 3; without %v", sold, lost)
	}
}

// A slot is free again after upstream.timeout. A proxy that waited longer for the shop would have more requests there
// than the limits allow.
func TestDecide_NoProxyWaitsForeverForTheShop(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			hung := make(chan struct{})
			shop := open(t, func(http.ResponseWriter, *http.Request) { <-hung })
			t.Cleanup(func() { close(hung) })
			g := gate(t, shop.setting(), decides(a.dialect), "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n")
			front := a.run(t, shop, g, "10s", "1s")
			h := askFront(t, &http.Client{Timeout: long}, "GET", "http://"+front+"/page")
			if h.status != http.StatusGatewayTimeout || shop.arrivals.Load() != 1 {
				t.Errorf("%d %s, and the shop has seen %d requests", h.status, h.body, shop.arrivals.Load())
			}
		})
	}
}

// Windows admit as many through another proxy as they say: no crowd at it gets more into one.
func TestDecide_WindowsHoldThroughRealProxies(t *testing.T) {
	t.Parallel()
	const inWindow, shoppers = 3, 300
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			shop := open(t, func(http.ResponseWriter, *http.Request) {})
			g := gate(t, shop.setting(), fmt.Sprintf("limits.window = {size = \"1s\", max = %d, max_per_sku = 0}", inWindow),
				decides(a.dialect), "[[route]]\nname = \"orders\"\nmatch = \"/api/\"\ngate = \"limit\"\n")
			front := a.run(t, shop, g)
			began := time.Now()
			sum := rushFront(t, front, shoppers)
			windows := int(time.Since(began)/time.Second) + 2
			admitted := sum["200"]
			if seen := int(shop.arrivals.Load()); admitted < inWindow || admitted > windows*inWindow || admitted != seen {
				t.Errorf("%d were admitted within %d windows, the shop has seen %d: %v", admitted, windows, seen, sum)
			}
			rejected := sum["429 window application/problem+json"] + sum["429 window text/html"]
			if admitted+rejected != shoppers {
				t.Errorf("not all others heard of the window: %v", sum)
			}
		})
	}
}

// Behind an upgrade to HTTP/2 any number of requests would reach the shop, and none of them would be asked about.
func TestDecide_NoTunnelOpensPastTheGate(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			a.installed(t)
			shop := open(t, func(w http.ResponseWriter, r *http.Request) {
				if protocol := r.Header.Get("Upgrade"); protocol != "" {
					w.Header().Set("Connection", "Upgrade")
					w.Header().Set("Upgrade", protocol)
					w.WriteHeader(http.StatusSwitchingProtocols)
				}
			})
			g := gate(t, shop.setting(), decides(a.dialect), "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n")
			front := a.run(t, shop, g)
			for _, fields := range []string{"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c",
				"Connection: Upgrade\r\nUpgrade: h2c", "Connection: upgrade\r\nUpgrade: websocket, H2C"} {
				c, err := net.Dial("tcp", front)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(c, "GET /page HTTP/1.1\r\nHost: shop\r\n%s\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", fields)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
					t.Errorf("%s: %v %v", fields, resp, err)
				}
				c.Close()
			}
		})
	}
}
