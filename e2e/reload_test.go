package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"sluice/config"
	"sluice/internal/redistest"
)

// rewrite changes the configuration of a running gate, and waits until it has been read: good or bad.
func (g *running) rewrite(text string, good bool) {
	g.t.Helper()
	want := 0.0
	if good {
		want = 1
	}
	before := len(g.log.lines())
	put(g.t, g.file, text) // the gate looks at its file also by itself
	if err := g.process.Process.Signal(syscall.SIGHUP); err != nil {
		g.t.Fatal(err)
	}
	said, version := "configuration not reloaded", ""
	if good {
		c, err := config.Parse(g.file, []byte(text), os.LookupEnv)
		if err != nil {
			g.t.Fatal(err)
		}
		said, version = "configuration reloaded", c.Version()
	}
	// A line of the file before may still be on its way: a good file is told by its version.
	soon(g.t, said, func() bool {
		for _, l := range g.log.lines()[before:] {
			if strings.HasPrefix(l.Msg, said) && (!good || l.Config == version) {
				return true
			}
		}
		return false
	})
	g.wantMetric(want, "sluice_config_last_reload_successful")
}

// What a reload changes is obeyed by the next request, on a connection that was open before; what needs a restart is
// told.
func TestReload_AppliesAtOnce(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), `mode = "enforce"`)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	g.order("7777").must(t, 404, "unknown_sku")
	observing := strings.Replace(string(text), `mode = "enforce"`, `mode = "observe"`, 1)
	g.rewrite(observing, true)
	g.order("7777").must(t, 200, "")
	g.rewrite(observing+"\n[stock.reserve]\nhold = \"1ms\"\n", false)
	g.order("7777").must(t, 200, "")
	g.rewrite(string(text), true)
	g.order("7777").must(t, 404, "unknown_sku")
}

// A file that changes a key which only a restart changes is rejected as a whole, and names each such key.
func TestReload_KeyThatNeedsARestartRejectsTheWholeFile(t *testing.T) {
	t.Parallel()
	g := stocked(t, open(t, nil).setting(), `mode = "enforce"`)
	before := g.change(`mode = "enforce"`, `mode = "enforce"`)
	g.rewrite(g.change(`mode = "enforce"`, "mode = \"observe\"\nops.metrics_max_skus = 7\n"+
		"stock.reserve.stream_keep_unread = true"), false)
	g.order("7777").must(t, 404, "unknown_sku")
	g.logs(t, "configuration not reloaded", "ops.metrics_max_skus: changes only with a restart",
		"stock.reserve.stream_keep_unread: changes only")
	if status, text := g.peek("/readyz"); status != 200 || !strings.HasPrefix(text, "degraded; reload: the file was rejected") {
		t.Errorf("/readyz: %d %q", status, text)
	}
	wants(t, run(t, "", "status", "--admin", "http://"+g.admin).out, "ops.metrics_max_skus: changes only with a restart")
	g.rewrite(before, true)
	if _, text := g.peek("/readyz"); text != "ready\n" {
		t.Errorf("/readyz after the file went back: %q", text)
	}
}

// What the shop's stock is read by changes with the file. What names another Redis rejects the whole file.
func TestReload_StockIsReadAsTheNewFileSays(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	r.Client.Set(t.Context(), "old:1001", 0, 0)
	r.Client.Set(t.Context(), "new:1001", 5, 0)
	shop := open(t, nil)
	const before = "stock.layout.key = \"old:$sku\""
	g := gate(t, shop.setting(), redisAt(r), before, routes)
	g.order("1001").must(t, 409, "sold_out")
	g.order("7777").must(t, 404, "unknown_sku")
	text := g.change(before, "stock.layout.key = \"new:$sku\"\nstock.unknown_sku = \"allow\"")
	g.rewrite(text, true)
	g.order("1001").must(t, 200, "")
	g.order("7777").must(t, 200, "")
	other := strings.Replace(text, "new:$sku", "old:$sku", 1)
	g.rewrite(strings.Replace(other, `stock.redis.timeout = "1s"`, `stock.redis.timeout = "2s"`, 1), false)
	g.logs(t, "configuration not reloaded", "stock.redis.timeout: changes only with a restart")
	g.order("1001").must(t, 200, "")
}
