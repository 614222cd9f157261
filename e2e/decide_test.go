package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	command                func(dir, conf string) *exec.Cmd
}

var askers = []asker{
	{program: "nginx", dialect: "nginx", conf: "nginx.conf", listen: "listen 80;", settles: true,
		command: func(dir, conf string) *exec.Cmd { return exec.Command("nginx", "-p", dir, "-c", conf) }},
	{program: "haproxy", dialect: "haproxy", conf: "haproxy.cfg", listen: "bind :80", settles: true,
		command: func(_, conf string) *exec.Cmd { return exec.Command("haproxy", "-f", conf) }},
	{program: "caddy", dialect: "caddy", conf: "Caddyfile", listen: ":80 {",
		command: func(_, conf string) *exec.Cmd {
			return exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", conf)
		}},
}

// run runs the proxy before a shop and a gate. Each change is an old text and a new one.
func (a *asker) run(t *testing.T, shop *shop, g *running, changes ...string) (front string) {
	t.Helper()
	if _, err := exec.LookPath(a.program); err != nil {
		t.Skip(a.program + " is not installed")
	}
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
		"127.0.0.1:8092", g.asked(t), "worker_processes auto;", temporary, "http {\n", paths,
		"lua-load sluice.lua", "lua-load " + lua,
	}, changes...)...).Replace(string(text))
	conf = strings.Replace(conf, "bind :"+front, "bind "+front, 1)
	path := filepath.Join(dir, a.conf)
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	process := a.command(dir, path)
	var log testkit.Log
	process.Env = append(os.Environ(), "HOME="+dir)
	process.Stdout, process.Stderr = &log, &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(os.Interrupt)
		_ = process.Wait()
		if written, _ := os.ReadFile(filepath.Join(dir, "log")); t.Failed() {
			t.Logf("%s:\n%s%s", a.program, log.String(), written)
		}
	})
	soon(t, a.program+" listens", func() bool {
		c, err := net.Dial("tcp", front)
		if err == nil {
			c.Close()
		}
		return err == nil
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

// frontAnswer is what one client heard.
type frontAnswer struct {
	status             int
	reason, kind, body string
	header             http.Header
}

func askFront(t *testing.T, client *http.Client, method, url string, fields ...string) (h frontAnswer) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return h
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return frontAnswer{resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), resp.Header.Get("Content-Type"), string(body),
		resp.Header}
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
				kind, _, _ := strings.Cut(h.kind, ";")
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

const askedCrowd, askedUnits = 5000, 10

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
					h := askFront(t, client, "POST", "http://"+front+askedOrder, "Cookie", "uid=last", "Accept", accept,
						// forged: they say that this is a page
						"X-Original-Method", "GET", "X-Original-URI", "/", "X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/")
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

// Windows and slots hold where another proxy forwards. A proxy that does not settle blocks a slot for upstream.timeout.
func TestDecide_WindowsAndSlotsHold(t *testing.T) {
	t.Parallel()
	for _, a := range askers {
		t.Run(a.program, func(t *testing.T) {
			shop := openAskedShop(t)
			g := gate(t, shop.setting(), unlimited, "limits.connection.max_connections_per_ip = 1000",
				`upstream.timeout = "1s"`, `upstream.response_header_timeout = "1s"`, "limits.window.max = 1",
				`limits.window.max_delay = "0s"`, "limits.window.max_per_sku = 0", "limits.concurrency.max_in_flight = 1000",
				decides(a.dialect),
				"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n")
			front := a.run(t, shop.shop, g)
			begun := time.Now()
			sum := rushFront(t, front, 1000)
			windows := int(time.Since(begun)/(10*time.Millisecond)) + 2
			if n := sum["200"]; n == 0 || n > windows || int(shop.arrivals.Load()) != n {
				t.Errorf("%d admitted in %d windows, the shop has seen %d: %v", n, windows, shop.arrivals.Load(), sum)
			}
			if sum["200"]+sum["429 window text/html"]+sum["429 window application/problem+json"] != 1000 {
				t.Errorf("%v", sum)
			}
			soon(t, "all slots are free", func() bool { return g.metric("sluice_decisions_open") == 0 })
			ended := g.metric("sluice_decisions_ended_total", `how="settled"`)
			if a.settles && int(ended) != sum["200"] || !a.settles && ended != 0 {
				t.Errorf("%v of %d were settled", ended, sum["200"])
			}
		})
	}
}
