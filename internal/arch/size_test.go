package arch

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// How large parts of the gateway may be. Tests count for columns alone.
const (
	maxPackageFiles = 25
	maxPackageLines = 4000
	maxFuncLines    = 80
	maxTypeMethods  = 25 // of a type that does not state its reason
	maxColumns      = 120
)

// everywhere is where these bounds hold.
var everywhere = []string{"..."}

// source is one Go file.
type source struct {
	path, text string
	test       bool
}

// sources are the Go files of the packages that match one of patterns, by package, for whichever system they are built.
func sources(t *testing.T, patterns []string) map[string][]source {
	t.Helper()
	all := map[string][]source{}
	for _, p := range list(t) {
		if !slices.ContainsFunc(patterns, func(pattern string) bool { return below(p.short(), pattern) }) {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no Go file: %v", p.Dir, err)
		}
		for _, path := range paths {
			all[p.short()] = append(all[p.short()], source{path, read(t, path), strings.HasSuffix(path, "_test.go")})
		}
	}
	if len(all) < len(patterns) {
		t.Fatalf("%q match %d packages", patterns, len(all))
	}
	return all
}

func TestPackages_HaveFewFilesAndLines(t *testing.T) {
	for name, files := range sources(t, everywhere) {
		if count, lines := extent(files); count > maxPackageFiles || lines > maxPackageLines {
			t.Errorf("%s has %d files and %d lines besides its tests, more than %d or %d: split it by idea",
				name, count, lines, maxPackageFiles, maxPackageLines)
		}
	}
}

// extent is how many files and lines there are, without tests.
func extent(files []source) (count, lines int) {
	for _, f := range files {
		if !f.test {
			count, lines = count+1, lines+strings.Count(f.text, "\n")
		}
	}
	return count, lines
}

func TestFunctions_AreShort(t *testing.T) {
	for _, files := range sources(t, everywhere) {
		for _, f := range files {
			if !f.test {
				for _, name := range longFunctions(t, f) {
					t.Errorf("%s: %s has more than %d lines: name its steps", f.path, name, maxFuncLines)
				}
			}
		}
	}
}

// longFunctions are the functions of f, and the function literals outside of functions, that have too many lines.
func longFunctions(t *testing.T, f source) (long []string) {
	t.Helper()
	fset, file := parse(t, f)
	check := func(name string, n ast.Node) {
		if fset.Position(n.End()).Line-fset.Position(n.Pos()).Line >= maxFuncLines {
			long = append(long, name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name.Name, n)
			return false
		case *ast.FuncLit:
			check("a function literal", n)
			return false
		}
		return true
	})
	return long
}

func parse(t *testing.T, f source) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return fset, file
}

func TestTypes_WithManyMethodsStateTheReason(t *testing.T) {
	for name, files := range sources(t, everywhere) {
		for _, typ := range largeTypes(t, files) {
			t.Errorf("%s.%s has more than %d methods: say in its doc comment why it has so many methods, or divide it",
				name, typ, maxTypeMethods)
		}
	}
}

// largeTypes are the types of one package that have too many methods and a doc comment without the word "methods".
func largeTypes(t *testing.T, files []source) (large []string) {
	t.Helper()
	methods, docs := map[string]int{}, map[string]string{}
	for _, f := range files {
		if f.test {
			continue
		}
		_, file := parse(t, f)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[receiver(d)]++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						docs[s.Name.Name] = d.Doc.Text() + s.Doc.Text()
					}
				}
			}
		}
	}
	for name, n := range methods {
		if n > maxTypeMethods && !slices.Contains(strings.Fields(docs[name]), "methods") {
			large = append(large, name)
		}
	}
	slices.Sort(large)
	return large
}

// receiver is the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	for x := d.Recv.List[0].Type; ; {
		switch of := x.(type) {
		case *ast.StarExpr:
			x = of.X
		case *ast.ParenExpr:
			x = of.X
		case *ast.IndexExpr: // of one type parameter
			x = of.X
		case *ast.IndexListExpr:
			x = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

func TestLines_FitTheScreen(t *testing.T) {
	for _, files := range sources(t, everywhere) {
		for _, f := range files {
			for _, n := range wideLines(f.text) {
				t.Errorf("%s:%d: more than %d columns", f.path, n, maxColumns)
			}
		}
	}
}

// wideLines are the numbers of the lines of text that have too many characters. A tab is one of them.
func wideLines(text string) (wide []int) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		if utf8.RuneCount(bytes.TrimSuffix(lines.Bytes(), []byte("\r"))) > maxColumns {
			wide = append(wide, n)
		}
	}
	return wide
}

func TestSizeRules_SeeWhatTheyForbid(t *testing.T) {
	body := func(lines int) string { return strings.Repeat("\t_ = 0\n", lines-2) }
	for _, c := range []struct {
		text string
		want int
	}{
		{"package x\nfunc f() {\n" + body(maxFuncLines) + "}\n", 0},
		{"package x\nfunc f() {\n" + body(maxFuncLines+1) + "}\n", 1},
		{"package x\nvar f = func() {\n" + body(maxFuncLines) + "}\n", 0},
		{"package x\nvar f = func() {\n" + body(maxFuncLines+1) + "}\n", 1},
		{"package x\ntype t struct{}\nfunc (t) f() {\n" + body(maxFuncLines+1) + "}\n", 1},
	} {
		if got := longFunctions(t, source{path: "x.go", text: c.text}); len(got) != c.want {
			t.Errorf("%d lines: %q are too long, want %d", strings.Count(c.text, "\n"), got, c.want)
		}
	}
	many := func(doc string, n int) []source {
		text := "package x\n" + doc + "type T[K any] struct{ k K }\n"
		for range n {
			text += "func (t *T[K]) f() {}\n"
		}
		return []source{{path: "x.go", text: text}}
	}
	const reason = "// T has many methods because it is a test.\n"
	if len(largeTypes(t, many("", maxTypeMethods))) != 0 || len(largeTypes(t, many(reason, maxTypeMethods+1))) != 0 {
		t.Error("a type that is small, or states its reason, is too large")
	}
	if len(largeTypes(t, many("// T is large.\n", maxTypeMethods+1))) != 1 {
		t.Error("a type with too many methods and no reason is not seen")
	}
	wide := strings.Repeat("长", maxColumns)
	if got := wideLines(wide + "\n" + wide + "\r\n" + wide + "\t\n" + wide + "x"); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("lines %v are too wide, want 3 and 4", got)
	}
	files := []source{{text: "a\nb\n"}, {text: "c\n"}, {text: "d\n", test: true}}
	if count, lines := extent(files); count != 2 || lines != 3 {
		t.Errorf("%d files and %d lines, want 2 and 3", count, lines)
	}
}
