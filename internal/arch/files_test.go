package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The most lines of a file. Past the first a file holds more than one idea; tests may list cases for longer.
const (
	maxLines     = 400
	maxTestLines = 600
)

// Names that say nothing of what is inside.
var hollow = []string{"base", "common", "helper", "helpers", "misc", "types", "util", "utils"}

func TestArch_FilesAreSmall(t *testing.T) {
	for _, p := range list(t) {
		for _, path := range p.paths(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			most := maxLines
			if strings.HasSuffix(path, "_test.go") {
				most = maxTestLines
			}
			if n := bytes.Count(text, []byte("\n")); n > most {
				t.Errorf("%s has %d lines, more than %d: split it by idea", path, n, most)
			}
		}
	}
}

func TestArch_FilesAndPackagesAreNamedForIdeas(t *testing.T) {
	for _, p := range list(t) {
		for _, path := range p.paths(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			if name := strings.TrimSuffix(filepath.Base(path), ".go"); saysNothing(name) {
				t.Errorf("%s: the name does not tell what is inside", path)
			}
		}
		if saysNothing(p.Name) {
			t.Errorf("%s: the package's name does not tell what is inside", p.ImportPath)
		}
	}
}

func saysNothing(name string) bool {
	return slices.Contains(hollow, strings.TrimSuffix(name, "_test"))
}

func TestArch_PackagesSayWhatTheyPromise(t *testing.T) {
	for _, p := range list(t) {
		files := p.paths(p.GoFiles)
		if len(files) == 0 {
			files = p.paths(p.TestGoFiles, p.XTestGoFiles)
		}
		var doc string
		for _, path := range files {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			doc += f.Doc.Text()
		}
		if !promises(p.Name, doc) {
			t.Errorf("%s has no package comment: say what it promises, then what it does not do", p.ImportPath)
		}
	}
}

// promises tells whether doc is the comment of a package of that name; a command's is free in form.
func promises(name, doc string) bool {
	if name == "main" {
		return strings.TrimSpace(doc) != ""
	}
	return strings.HasPrefix(doc, "Package "+name+" ")
}

func TestArch_NoInit(t *testing.T) {
	for _, p := range list(t) {
		for _, path := range p.paths(p.GoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if hasInit(f) {
				t.Errorf("%s has an init function: nothing happens before main says so", path)
			}
		}
	}
}

func hasInit(f *ast.File) bool {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			return true
		}
	}
	return false
}

func TestArch_FileRulesSeeWhatTheyForbid(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc init() {}\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if !hasInit(f) {
		t.Error("an init function is not seen")
	}
	if !saysNothing("utils") || !saysNothing("types_test") || saysNothing("window") {
		t.Error("hollow names are not told from names")
	}
	if promises("limiter", "") || promises("main", "\n") || !promises("limiter", "Package limiter answers.\n") {
		t.Error("a package without a comment is not told from one with")
	}
}
