package arch

import (
	"strings"
	"testing"
)

// Who may know whom. cmd wires and knows all; a package knows its own wings; the packages that the
// proxy calls know the value types that the proxy defines for them; demo knows what it starts.
// Everybody else stands alone, so that each can be read, tested and replaced alone.
func mayImport(from, to string) bool {
	top, other := firstElement(from), firstElement(to)
	switch {
	case top == "internal", other == "cmd":
		return false
	case other == "internal":
		return false // for tests alone
	case top == "cmd", top == other, top == "demo":
		return true
	case other == "histogram":
		return top != "config" && top != "limiter" // a measure, and no neighbour
	case top == "upstream", top == "stockgate", top == "admin", top == "accesslog", top == "tracing", top == "cache":
		return to == "proxy"
	}
	return false
}

func firstElement(path string) string {
	top, _, _ := strings.Cut(path, "/")
	return top
}

func TestPackagesKnowOnlyWhomTheyMay(t *testing.T) {
	for _, p := range list(t) {
		for _, to := range p.Imports {
			to, ours := strings.CutPrefix(to, module+"/")
			if ours && !mayImport(p.short(), to) {
				t.Errorf("%s imports %s: cmd wires; see the import rule in ARCHITECTURE.md", p.short(), to)
			}
		}
	}
}

func TestImportRule(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/sluice", "limiter", true},
		{"cmd/sluice", "stockgate/layout", true},
		{"cmd/sluice", "internal/redistest", false},
		{"proxy", "proxy/wire", true},
		{"stockgate", "stockgate/layout", true},
		{"upstream", "proxy", true},
		{"upstream", "proxy/wire", false},
		{"stockgate", "proxy", true},
		{"stockgate", "upstream", false},
		{"admin", "proxy", true},
		{"admin", "stockgate", false},
		{"accesslog", "proxy", true},
		{"accesslog", "config", false},
		{"tracing", "proxy", true},
		{"tracing", "config", false},
		{"cache", "proxy", true},
		{"cache", "upstream", false},
		{"demo", "upstream", true},
		{"demo", "cmd/sluice", false},
		{"proxy", "limiter", false},
		{"proxy", "stockgate", false},
		{"limiter", "proxy", false},
		{"upstream", "histogram", true},
		{"histogram", "proxy", false},
		{"config", "proxy", false},
		{"bench", "proxy", false},
		{"internal/redistest", "stockgate", false},
	} {
		if got := mayImport(c.from, c.to); got != c.want {
			t.Errorf("%s imports %s: allowed %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
