package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bannedWords are the words that no exported name has: docs/glossary.md has a standard term for each.
var bannedWords = strings.Fields(`
	board books crew deed desk dismiss door doubt doubted doubts fate glance halted haste helm journal ladder latch
	nobody oracle pace patience refusal refusals refuse refused roster rung sampler shadow somebody standing stranger
	trail whoever wonder`)

func TestExportedNames_HaveNoBannedWords(t *testing.T) {
	for name, files := range sources(t, []string{"..."}) {
		var wrong []string
		for _, f := range files {
			if !f.test {
				_, file := parse(t, f)
				wrong = append(wrong, bannedNames(file)...)
			}
		}
		if len(wrong) > 0 {
			t.Errorf("%s exports %q: use the terms of docs/glossary.md", name, wrong)
		}
	}
}

// bannedNames are the exported names of a file that have a banned word: of declarations, fields and methods.
func bannedNames(file *ast.File) (wrong []string) {
	check := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() && slices.ContainsFunc(wordsOf(name.Name), isBanned) {
				wrong = append(wrong, name.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
			return false
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.ValueSpec:
			check(n.Names...)
		case *ast.Field: // of a struct or an interface
			check(n.Names...)
		}
		return true
	})
	return wrong
}

func isBanned(word string) bool { return slices.Contains(bannedWords, word) }

var exportedWord = regexp.MustCompile(`[A-Z]+[a-z0-9]*`)

// wordsOf are the words of an exported name, in lower case.
func wordsOf(name string) []string {
	words := exportedWord.FindAllString(name, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}

func TestBannedWords_AreSeenInEveryKindOfName(t *testing.T) {
	const text = `package x

type Desk struct{ LatchOpen, Dashboard int }
type T interface{ Glance() }
func (t *U) OpenLatch() { type door struct{ Door int } }
func NewHelm() {}
const DefaultPatience, journal = 1, 2
`
	_, file := parse(t, source{path: "x.go", text: text})
	want := []string{"Desk", "LatchOpen", "Glance", "OpenLatch", "NewHelm", "DefaultPatience"}
	if got := bannedNames(file); !slices.Equal(got, want) {
		t.Errorf("banned are %q, want %q", got, want)
	}
}
