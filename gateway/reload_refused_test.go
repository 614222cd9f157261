package gateway

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/accesslog"
	"sluice/admin"
	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// oneRoute is a configuration of one route, with a rate of one burst for each client.
func oneRoute(t *testing.T, target, redis, gate string, burst int, lines string) *config.Config {
	t.Helper()
	return parsed(t, fmt.Sprintf(`name = "shop"
upstream.targets = [%q]
stock.source = "redis"
stock.redis.addresses = [%q]
stock.redis.timeout = "1s"
%s
[[limits.rate]]
name = "one"
key = "$remote_addr"
rate = "1/h"
burst = %d
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = %q
sku = "$path_sku"
[stock.reserve]
confirm_on = ["2xx"]
`, target, redis, lines, burst, gate))
}

// served is a gateway of c that listens, and how it answers an order.
func served(t *testing.T, c *config.Config) (g *Gateway, order func() (status int)) {
	t.Helper()
	g = gatewayOf(t, c)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.Listen([]net.Listener{ln}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { g.Drain(time.Minute) })
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return g, func() int {
		resp, err := client.Post("http://"+ln.Addr().String()+"/order/1", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
}

// countingShops are two shops that count their orders.
func countingShops(t *testing.T) (shops [2]*httptest.Server, orders *[2]atomic.Int64) {
	orders = new([2]atomic.Int64)
	for i := range shops {
		shops[i] = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { orders[i].Add(1) }))
		t.Cleanup(shops[i].Close)
	}
	return shops, orders
}

// A file that Redis makes unfit was never in force: no order goes to its target, and what is remembered of requests and
// of the target stays.
func TestApply_RefusedFileIsNeverInForce(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	shops, at := countingShops(t)
	g, order := served(t, oneRoute(t, shops[0].URL, redis.Addr, "limit", 1_000_000, ""))
	if code := order(); code != 200 {
		t.Fatal(code)
	}
	target := g.shop.Targets()[0]
	refused := make(chan error)
	next := oneRoute(t, shops[1].URL, redis.Addr, "reserve", 1_000_000, `access_log.buffer_size = "0B"`)
	go func() {
		defer close(refused)
		for range 3 { // as the watcher tries it again
			refused <- g.Apply(next)
		}
	}()
	for open := true; open; {
		select {
		case err, ok := <-refused:
			if open = ok; ok && (err == nil || !strings.Contains(err.Error(), "noeviction")) {
				t.Errorf("%v; want that Redis is unfit", err)
			}
		default:
			order()
		}
	}
	if n := at[1].Load(); n != 0 {
		t.Errorf("%d orders went to the target of a file that was refused", n)
	}
	if now := g.shop.Targets()[0]; now.Target != target.Target || now.Open < target.Open {
		t.Errorf("%+v, want the target and the connections of before: %+v", now, target)
	}
	for range 9 { // how many were sent while the files were rejected is up to the machine
		order()
	}
	testkit.Eventually(t, "nine requests are remembered", func() bool {
		return len(g.access.Find(accesslog.Question{SKU: "1"}, 9).Lines) == 9
	})
}

// While a file waits for Redis, the one before is in force, its counts count for the next, and it can be asked how the
// gateway is.
func TestApply_NothingChangesAndNothingIsLostWhileItWaitsForRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	shops, at := countingShops(t)
	g, order := served(t, oneRoute(t, shops[0].URL, redis.Addr, "limit", 5, ""))
	orders := func(n int) (admitted int) {
		for range n {
			if order() == 200 {
				admitted++
			}
		}
		return admitted
	}
	if n := orders(2); n != 2 {
		t.Fatalf("%d admitted, want 2", n)
	}
	redis.Client.Do(t.Context(), "client", "pause", time.Minute.Milliseconds())
	done := make(chan error, 1)
	next := oneRoute(t, shops[1].URL, redis.Addr, "limit", 6, "")
	next.Routes = append(next.Routes, oneRoute(t, shops[1].URL, redis.Addr, "reserve", 6, "").Routes...)
	next.Routes[1].Name, next.Routes[1].Match = "other", "POST /other/{sku}"
	go func() { done <- g.Apply(next) }()
	testkit.Eventually(t, "the change waits", func() bool {
		if g.controller.changing.TryLock() {
			g.controller.changing.Unlock()
			return false
		}
		return true
	})
	if n := orders(2); n != 2 || at[1].Load() != 0 {
		t.Errorf("%d admitted, want 2; %d by the file that is not in force", n, at[1].Load())
	}
	g.Status()
	select {
	case err := <-done:
		t.Fatalf("%v: the change did not wait for Redis, or was waited for", err)
	default:
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := orders(9); n != 2 || at[1].Load() != 2 {
		t.Errorf("%d more admitted, %d by the next target; want 2 of a burst of 6", n, at[1].Load())
	}
}

// The secret that orders were signed by changes only with a restart, also where its file keeps its name.
func TestReload_OtherSecretInTheSameFileRejectsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	secret := file("secret", "0123456789abcdef")
	path := file("config.toml", steered+"[stock.reserve]\nsecret_file = \"secret\"\n")
	load := func() (*config.Config, error) { return config.Load(path, os.LookupEnv, Validate) }
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	g := gatewayOf(t, c)
	g.controller.load, g.controller.files = load, &configFiles{}
	file(filepath.Base(secret), "another, of another shop")
	_, err = g.controller.Reload(t.Context(), false)
	if bad := (*admin.BadFile)(nil); !errors.As(err, &bad) || bad.Problems[0].Key != "stock.reserve.secret_file" {
		t.Errorf("%v; want that the secret needs a restart", err)
	}
	file(filepath.Base(secret), "0123456789abcdef")
	if _, err := g.controller.Reload(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// A reload that has instances share the first thing asks whose the name is, as a start does.
func TestApply_FirstSharedLimitAsksWhoseTheNameIs(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	shops, _ := countingShops(t)
	with := func(scope string) *config.Config {
		return parsed(t, fmt.Sprintf("name = \"shop\"\nupstream.targets = [%q]\nstock.source = \"off\"\n"+
			"stock.redis.addresses = [%q]\n[limits.window]\nscope = %q\n"+
			"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n", shops[0].URL, redis.Addr, scope))
	}
	g, _ := served(t, with("instance"))
	fleetCheck := func() bool {
		for _, c := range g.Checks() {
			if c.Name == "fleet" {
				return true
			}
		}
		return false
	}
	redis.Client.Set(t.Context(), "sluice:shop:claim", "of another shop", 0)
	err := g.Apply(with("fleet"))
	if err == nil || !strings.Contains(err.Error(), "belongs to another shop") || fleetCheck() {
		t.Errorf("%v; want that the name is another shop's", err)
	}
	redis.Client.Del(t.Context(), "sluice:shop:claim")
	if err := g.Apply(with("fleet")); err != nil || !fleetCheck() {
		t.Errorf("%v; want a fleet, and its condition of readiness", err)
	}
}

func TestApply_ClosedGatewayChangesNothing(t *testing.T) {
	t.Parallel()
	g, _ := steer(t)
	before := g.running.Load()
	g.controller.stopChanges()
	if err := g.Apply(before); err == nil || err.Error() != errClosed.Error() {
		t.Errorf("%v, want %v", err, errClosed)
	}
}

// With memory the layout of the shop's keys is not used: a file that changes it says something that nothing does.
func TestApply_LayoutOfAStockInMemoryIsRejected(t *testing.T) {
	t.Parallel()
	g, _ := steer(t)
	next := parsed(t, steered+"[stock.layout]\nkey = \"other:$sku\"\n")
	if err := g.Apply(next); err == nil || !strings.Contains(err.Error(), "stock.layout") {
		t.Errorf("%v, want that it is not used", err)
	}
}

// The shop's stock and the ledger are two stocks, whatever the other gate is.
func TestOtherStock_IsThatOfReserveOrOfTheShop(t *testing.T) {
	route := func(gate string) *config.Config {
		return &config.Config{Routes: []config.Route{{Name: "r", Gate: gate}}}
	}
	const ledger, shop = "route r sells from the ledger now: sluice stock set SKU UNITS",
		"route r sells from the shop's stock now: set it to what is left"
	for gates, want := range map[[2]string]string{
		{"check", "reserve"}: ledger, {"reserve", "check"}: shop, {"limit", "reserve"}: ledger, {"reserve", "pass"}: shop,
		{"check", "limit"}: "", {"reserve", "reserve"}: "",
	} {
		if got := strings.Join(otherStock(route(gates[0]), route(gates[1])), "|"); got != want {
			t.Errorf("%v: %q, want %q", gates, got, want)
		}
	}
}

// oneFile are configuration files of one, at path, which has been read, and what writes it.
func oneFile(t *testing.T, path string) (s *configFiles, write func(text string)) {
	write = func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	s = new(configFiles)
	s.set([]string{path}, false)
	s.changed()
	return s, write
}

// A file that is written in two steps is read when it is whole.
func TestConfigFiles_HalfWrittenFileIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	synctest.Test(t, func(t *testing.T) {
		s, write := oneFile(t, path)
		var read []string
		end := s.follow(func() bool { return true }, nil, slog.New(slog.DiscardHandler), func(bool) {
			text, _ := os.ReadFile(path)
			read = append(read, string(text))
		})
		write("sec")
		time.Sleep(lookEveryFile + lookAgain/2) // of synctest
		write("second")
		time.Sleep(3 * lookAgain) // of synctest
		end()
		if len(read) != 1 || read[0] != "second" {
			t.Errorf("read %q, want the whole once", read)
		}
	})
}

// With watch_config = false a file is read at SIGHUP alone.
func TestConfigFiles_FileThatIsNotWatchedIsReadAtSIGHUP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	synctest.Test(t, func(t *testing.T) {
		s, write := oneFile(t, path)
		hangup, read := make(chan os.Signal, 1), 0
		end := s.follow(func() bool { return false }, hangup, slog.New(slog.DiscardHandler), func(bool) { read++ })
		write("second")
		time.Sleep(5 * lookEveryFile) // of synctest
		synctest.Wait()
		if read != 0 {
			t.Errorf("read %d times before SIGHUP", read)
		}
		hangup <- syscall.SIGHUP
		synctest.Wait()
		end()
		if read != 1 {
			t.Errorf("read %d times, want once at SIGHUP", read)
		}
	})
}

// A file that is written back at once after a reload by the API is read once more: the gate runs what the file says.
func TestConfigFiles_FileThatIsWrittenBackAfterAReloadIsRead(t *testing.T) {
	g, _ := steer(t)
	h, path := g.controller, filepath.Join(t.TempDir(), "config.toml")
	h.load = func() (*config.Config, error) { return config.Load(path, config.NoEnvironment, Validate) }
	synctest.Test(t, func(t *testing.T) {
		s, write := oneFile(t, path)
		h.files = s
		write(steered)
		if _, err := h.Reload(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		end := s.follow(func() bool { return true }, nil, slog.New(slog.DiscardHandler), h.reloadUnasked)
		time.Sleep(2 * lookEveryFile) // of synctest
		write("mode = \"observe\"\n" + steered)
		if _, err := h.Reload(t.Context(), false); err != nil || h.config().Mode != "observe" {
			t.Fatalf("%v, %s", err, h.config().Mode)
		}
		write(steered)
		time.Sleep(2 * lookEveryFile) // of synctest
		end()
		if h.config().Mode != "enforce" {
			t.Errorf("the file says enforce, the gate runs %s", h.config().Mode)
		}
	})
}
