package e2e

import (
	"os"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

const shopSetting = "upstream.targets = [\"http://127.0.0.1:9000\"]\n"

// A mistake in a file is told with its place, its cause and the way out, whichever part of the gateway finds it.
func TestMistakes_InTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string // "%" is the file's name
	}{
		"wrong key": {"[upstream]\ntarget = \"http://127.0.0.1:9000\"\n" + routes,
			[]string{`%:2: upstream.target: unknown key; did you mean "targets"?`}},
		"route name twice": {shopSetting + routes + routes,
			[]string{`%:16: route[3].name: "order" stands at route[1].name too; change or drop one`,
				"%:17: route[3].match: can never match"}},
		"shadowed route": {shopSetting + "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n" + routes,
			[]string{`.match: can never match: route "all" before it takes every such request; write the narrow route first`}},
		"several places": {shopSetting + strings.Replace(routes, "$path_sku", "$path_id", 1) +
			"[[limits.rate]]\nname = \"each\"\nkey = \"$binary_remote_addr\"\nrate = \"10/s\"\nburst = 1\n",
			[]string{".sku: ", "$path_id: the pattern has no {id}", "limits.rate[1].key: "}},
		"no certificate": {shopSetting + "[server.tls]\ncert_file = \"none.crt\"\nkey_file = \"none.key\"\n" + routes,
			[]string{"%:2: server.tls: "}},
		"CA for plain HTTP": {shopSetting + "upstream.tls.ca_file = \"ca.pem\"\n" + routes,
			[]string{"upstream.tls.ca_file: no target of upstream.targets begins with https://", "open "}},
	} {
		path := file(t, c.text)
		got := run(t, "", "check", path)
		if got.code != 1 {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.complaint)
		}
		for _, want := range c.want {
			if want = strings.ReplaceAll(want, "%", path); !strings.Contains(got.complaint, want) {
				t.Errorf("%s: %q\nlacks %q", name, got.complaint, want)
			}
		}
	}
}

// What a running gate tells of its file: it is gone, it is broken, a key of it needs a restart.
func TestMistakes_WithTheFileOfARunningGate(t *testing.T) {
	t.Parallel()
	admin := testkit.FreeAddress(t)
	g := gate(t, `server.listen = ["127.0.0.1:0"]`, `ops.listen = "127.0.0.1:0"`, "admin.listen = "+quotedText(admin),
		open(t, nil).setting(), `stock.source = "memory"`)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) { put(t, g.file, text) }
	write(strings.Replace(string(text), "[[route]]", "[[route]\n", 1))
	g.logs(t, "configuration not reloaded")
	got := run(t, "", "status", "--config", g.file)
	wants(t, got.out, "reload    rejected")
	wants(t, got.complaint, "is broken; a running gateway keeps the configuration before. Asking it at")

	write("ops.metrics_max_skus = 7\nlimits.window.size = \"20ms\"\n" + string(text))
	g.logs(t, "ops.metrics_max_skus: changes only with a restart")
	printed := ok(t, "config", "print", "--admin", g.admin)
	wants(t, printed, `limits.window.size = "10ms"`, `ops.metrics_max_skus = 100`)

	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	soon(t, "the deleted file is told", func() bool {
		return strings.Contains(g.log.String(), "no such file; restore it: sluice config print --admin 127.0.0.1:8090")
	})
	wants(t, run(t, "", "status", "--admin", g.admin).out, "reload    rejected", "no such file")
	g.measures(t, "sluice_config_last_reload_successful 0")
	write(string(text))
	soon(t, "the file is back", func() bool {
		_, metrics := g.peek("/metrics")
		return strings.Contains(metrics, "sluice_config_last_reload_successful 1")
	})
}

func quotedText(text string) string { return `"` + text + `"` }
