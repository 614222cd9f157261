package arch

import (
	"slices"
	"strings"
	"testing"
)

// Any package may import any other as long as no cycle arises, which Go itself forbids. These are the exceptions.

// tools are packages that only tests, and one another, import.
var tools = []string{"internal/apitest", "internal/arch", "internal/dbtest", "internal/openapi", "internal/redistest",
	"internal/testkit"}

// importBans lists what a package must not import. "proxy/..." stands for proxy and all packages below it.
var importBans = []struct{ from, to, why string }{
	{"proxy/http1", "proxy/...", "it speaks HTTP and knows neither limits nor routes"},
	{"proxy/route", "proxy", "proxy is the root that uses it"},
	{"proxy/reject", "proxy", "proxy is the root that uses it"},
	{"proxy/param", "proxy", "proxy is the root that uses it"},
	{"proxy/auth", "proxy", "proxy is the root that uses it"},
	{"proxy/metrics", "proxy", "proxy is the root that uses it"},
	{"upstream", "proxy/...", "it sends requests and does not know why they were admitted"},
	{"internal/app", "settle/...", "the gate never opens the database"},
	{"internal/app", "internal/settler", "the gate never opens the database"},
	{"internal/app/orders", "settle/...", "the gate never opens the database"},
	{"internal/app/orders", "internal/settler", "the gate never opens the database"},
	{"internal/doctor", "settle/...", "the gate runs it before a sale, and never opens the database"},
	{"internal/doctor", "internal/settler", "the gate runs it before a sale, and never opens the database"},
	{"settle", "proxy/...", "it serves no requests"},
	{"limiter", "...", "a limiter decides about numbers alone"},
	{"internal/app/stores", "internal/app", "internal/app uses it"},
	{"internal/doctor", "internal/app", "internal/app asks it before a sale"},
	{"internal/adminclient", "internal/app", "it speaks the API of gateways that run elsewhere"},
	{"internal/crowd", "internal/app", "its shoppers know only what stands at the front"},
	{"internal/loadtest", "internal/app", "it loads whatever gateway it is given; its sandbox starts one"},
	{"internal/demo", "internal/app", "its shop and its crowd have no part of the gateway"},
}

// importBanned is why from must not import to; "" = it may. Both are import paths without the module's name.
func importBanned(from, to string) string {
	switch {
	case below(to, "cmd/..."):
		return "nothing imports cmd"
	case slices.Contains(tools, to) && !slices.Contains(tools, from):
		return "only tests import it"
	}
	for _, ban := range importBans {
		if from == ban.from && below(to, ban.to) && !below(to, from+"/...") {
			return ban.why
		}
	}
	return ""
}

// below reports whether path is what pattern names: itself, or with "/..." at its end itself and all below it.
func below(path, pattern string) bool {
	root, all := strings.CutSuffix(pattern, "...")
	if !all {
		return path == pattern
	}
	root = strings.TrimSuffix(root, "/")
	return root == "" || path == root || strings.HasPrefix(path, root+"/")
}

func TestImports_KeepTheRules(t *testing.T) {
	for _, p := range list(t) {
		for _, to := range p.Imports {
			to, ours := strings.CutPrefix(to, module+"/")
			if why := importBanned(p.short(), to); ours && why != "" {
				t.Errorf("%s imports %s: %s", p.short(), to, why)
			}
		}
	}
}

// A ban on a package that was renamed would forbid nothing.
func TestImports_BansNamePackagesThatExist(t *testing.T) {
	var all []string
	for _, p := range list(t) {
		all = append(all, p.short())
	}
	for _, ban := range importBans {
		if !slices.Contains(all, ban.from) || !slices.ContainsFunc(all, func(p string) bool { return below(p, ban.to) }) {
			t.Errorf("%s must not import %s: one of them does not exist", ban.from, ban.to)
		}
	}
	for _, tool := range tools {
		if !slices.Contains(all, tool) {
			t.Errorf("only tests import %s: it does not exist", tool)
		}
	}
}

func TestImportBanned_TellsRulesFromFreedoms(t *testing.T) {
	for _, c := range []struct {
		from, to string
		banned   bool
	}{
		{"cmd/sluice", "limiter", false},
		{"cmd/sluice", "stockgate/layout", false},
		{"cmd/sluice", "internal/redistest", true},
		{"internal/demo/demosale", "cmd/sluice", true},
		{"internal/app", "internal/doctor", false},
		{"internal/doctor", "internal/app", true},
		{"internal/doctor", "internal/app/stores", false},
		{"proxy", "proxy/http1", false},
		{"proxy", "upstream", false},
		{"proxy", "internal/octets", false},
		{"proxy/http1", "proxy/http1/eventloop", false},
		{"proxy/http1", "internal/octets", false},
		{"proxy/http1", "proxy/reject", true},
		{"proxy/http1", "proxy/route", true},
		{"proxy/http1", "proxy/param", true},
		{"proxy/http1", "proxy/metrics", true},
		{"proxy/http1", "proxy", true},
		{"proxy/route", "proxy/reject", false},
		{"proxy/route", "proxy", true},
		{"proxy/reject", "proxy", true},
		{"proxy/param", "proxy", true},
		{"proxy/auth", "proxy", true},
		{"proxy/metrics", "upstream", false},
		{"proxy/metrics", "proxy", true},
		{"upstream", "internal/octets", false},
		{"upstream", "proxy", true},
		{"upstream", "proxy/http1", true},
		{"limiter", "histogram", true},
		{"limiter", "internal/octets", true},
		{"cache", "upstream", false},
		{"tracing", "proxy/route", false},
		{"accesslog", "proxy/metrics", false},
	} {
		if why := importBanned(c.from, c.to); (why != "") != c.banned {
			t.Errorf("%s imports %s: %q, want banned %v", c.from, c.to, why, c.banned)
		}
	}
}
