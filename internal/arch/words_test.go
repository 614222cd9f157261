package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// avoided are words for which docs/glossary.md has a standard term.
var avoided = []string{"desk", "glance", "haste", "latch", "nobody", "refuse", "roster", "somebody", "stranger",
	"whoever"}

// avoidedForms are their other forms.
var avoidedForms = map[string]string{
	"refused": "refuse", "refuses": "refuse", "refusing": "refuse", "refusal": "refuse",
	"refusals": "refuse", "desks": "desk", "latched": "latch", "latches": "latch", "glances": "glance", "hasty": "haste",
	"strangers": "stranger",
}

// keepWords are packages in which the names follow keys of the ledger.
var keepWords = []string{"stockgate/ledger/..."}

// word finds the words of a name in mixed caps.
var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// letters finds the words of a text.
var letters = regexp.MustCompile(`[A-Za-z]+`)

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

// asItIs are texts in which an avoided word is a term of another system, or an old key.
var asItIs = []string{"refused", "access_log.refused_every", "access_log.refused_first",
	"is now before_start; \"refuse\" is \"reject\""}

func TestMessagesAndComments_AvoidWordsWithAStandardTerm(t *testing.T) {
	for _, files := range sources(t, []string{"..."}) {
		for _, f := range files {
			if f.test {
				continue
			}
			for _, text := range avoidedTexts(t, f) {
				t.Errorf("%s: %s: use the term of the glossary", f.path, text)
			}
		}
	}
	for _, path := range []string{"words.en.json", "words.zh.json", "findings.zh.json"} {
		for line := range strings.Lines(read(t, "../../admin/web/"+path)) {
			if hasAvoidedWord(line) {
				t.Errorf("%s: %s: use the term of the glossary", path, line)
			}
		}
	}
}

// avoidedTexts are the comments and the string literals that hold an avoided word.
func avoidedTexts(t *testing.T, f source) (found []string) {
	t.Helper()
	_, file := parse(t, f)
	for _, group := range file.Comments {
		for _, c := range group.List {
			if hasAvoidedWord(c.Text) {
				found = append(found, c.Text)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(asItIs, text) && hasAvoidedWord(text) {
			found = append(found, lit.Value)
		}
		return true
	})
	return found
}

func hasAvoidedWord(text string) bool {
	for _, w := range letters.FindAllString(text, -1) {
		lower := strings.ToLower(w)
		identifier := w[1:] != lower[1:] // such as NoBody
		if !identifier && (avoidedForms[lower] != "" || slices.Contains(avoided, lower)) {
			return true
		}
	}
	return false
}

func TestAvoidedTexts_AreFoundAsWords(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"package x\n// f turns Nobody away.\nfunc f() {}\n", 1},
		{"package x\nconst a, b, c = \"it is refused\", \"refused\", `whoever asks`\n", 2},
		{"package x\n// http.NoBody and desktops are fine.\nconst a = \"reject\"\n", 0},
	} {
		if got := avoidedTexts(t, source{path: "x.go", text: c.text}); len(got) != c.want {
			t.Errorf("%q: %q, want %d texts", c.text, got, c.want)
		}
	}
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
