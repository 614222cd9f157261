package arch

import (
	"slices"
	"strings"
	"testing"
)

// Any package may import any other as long as no cycle arises, which Go itself forbids. These are the exceptions.

// tools are packages that only tests, and one another, import.
var tools = []string{"internal/arch", "internal/dbtest", "internal/redistest", "internal/storetest", "internal/testkit",
	"proxy/param/paramtest"}

// importBans lists what a package must not import. "proxy/..." stands for proxy and all packages below it.
var importBans = []struct{ from, to, why string }{
	{"proxy/eventloop", "proxy/...", "it serves connections and knows no protocol"},
	{"proxy/server", "proxy", "it speaks HTTP and knows neither limits nor routes"},
	{"proxy/server", "proxy/route", "it speaks HTTP and knows neither limits nor routes"},
	{"proxy/server", "proxy/reject", "it speaks HTTP and knows neither limits nor routes"},
	{"proxy/server", "proxy/param", "it speaks HTTP and knows neither limits nor routes"},
	{"proxy/route", "proxy", "proxy is the root that uses it"},
	{"proxy/reject", "proxy", "proxy is the root that uses it"},
	{"proxy/param", "proxy", "proxy is the root that uses it"},
	{"proxy/auth", "proxy", "proxy is the root that uses it"},
	{"proxy/metrics", "proxy", "proxy is the root that uses it"},
	{"upstream", "proxy/...", "it sends requests and does not know why they were admitted"},
	{"settle", "proxy/...", "it serves no requests"},
	{"stockgate/ledger", "proxy/...", "a request's path uses it"},
	{"limiter", "...", "a limiter decides about numbers alone"},
	{"gateway/stores", "gateway", "gateway uses it"},
	{"internal/doctor", "gateway", "gateway asks it before a sale"},
	{"internal/adminclient", "gateway", "it speaks the API of gateways that run elsewhere"},
	{"internal/load", "gateway", "its shoppers know only what stands at the front"},
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
	packages := list(t)
	for _, p := range packages {
		for _, to := range p.Imports {
			to, ours := strings.CutPrefix(to, module+"/")
			if why := importBanned(p.short(), to); ours && why != "" {
				t.Errorf("%s imports %s: %s", p.short(), to, why)
			}
		}
	}
	// A ban on a package that was renamed forbids nothing.
	for _, ban := range importBans {
		for _, pattern := range []string{ban.from, ban.to} {
			if !slices.ContainsFunc(packages, func(p listed) bool { return below(p.short(), pattern) }) {
				t.Errorf("%s must not import %s: %s does not exist", ban.from, ban.to, pattern)
			}
		}
	}
}
