package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoided are words for which ARCHITECTURE.md has a standard term.
var avoided = []string{"desk", "glance", "haste", "latch", "nobody", "refuse", "roster", "somebody", "stranger",
	"whoever"}

// avoidedForms are their other forms.
var avoidedForms = map[string]string{
	"refused": "refuse", "refuses": "refuse", "refusing": "refuse", "refusal": "refuse",
	"refusals": "refuse", "desks": "desk", "latched": "latch", "latches": "latch", "glances": "glance", "hasty": "haste",
	"strangers": "stranger",
}

// keepWords are packages in which the names follow keys of the configuration or of the ledger.
var keepWords = []string{"config", "stockgate/ledger/..."}

// word finds the words of a name in mixed caps.
var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func TestNames_AvoidWordsWithAStandardTerm(t *testing.T) {
	for name, files := range sources(t, []string{"..."}) {
		if slices.ContainsFunc(keepWords, func(pattern string) bool { return below(name, pattern) }) {
			continue
		}
		for _, f := range files {
			for _, complaint := range avoidedNames(t, f) {
				t.Errorf("%s: %s: use the term of the glossary", f.path, complaint)
			}
		}
	}
}

// avoidedNames are the functions, types, fields, constants and variables outside of functions whose names hold an
// avoided word.
func avoidedNames(t *testing.T, f source) (found []string) {
	t.Helper()
	_, file := parse(t, f)
	check := func(id *ast.Ident) {
		for _, w := range word.FindAllString(id.Name, -1) {
			w = strings.ToLower(w)
			if avoidedForms[w] != "" || slices.Contains(avoided, w) {
				found = append(found, id.Name)
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Name)
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false
				case *ast.TypeSpec:
					check(n.Name)
				case *ast.ValueSpec:
					for _, id := range n.Names {
						check(id)
					}
				case *ast.Field:
					for _, id := range n.Names {
						check(id)
					}
				}
				return true
			})
		}
	}
	return found
}

func TestAvoidedNames_AreFoundAsWords(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"package x\nfunc openDesk() {}\n", 1},
		{"package x\ntype roster struct{ Refused int }\n", 2},
		{"package x\nconst noBody, desktop, Helmet = 1, 2, 3\n", 0},
		{"package x\nfunc TestNobodyWaits() {}\n", 1},
	} {
		if got := avoidedNames(t, source{path: "x.go", text: c.text}); len(got) != c.want {
			t.Errorf("%q: %q, want %d names", c.text, got, c.want)
		}
	}
}
