package arch

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"testing"
)

// A package-level variable is a constant that Go cannot write as one: an error, a table, a pattern. Two
// gates in one process (a test, the demo, a reload) must not meet in it.
func TestState_NoPackageKeepsState(t *testing.T) {
	packages := list(t, "-export", "-deps")
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, path := range p.paths(p.GoFiles) {
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		for _, complaint := range stateKept(t, fset, p.ImportPath, files, exports) {
			t.Errorf("%s: a package keeps no state; give it to a value that has an owner", complaint)
		}
	}
}

// stateKept type-checks one package and names each place where a package-level variable changes, or is made to.
func stateKept(t *testing.T, fset *token.FileSet, path string, files []*ast.File, exports map[string]string) []string {
	t.Helper()
	compiled := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", compiled)}
	info := &types.Info{
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	if _, err := conf.Check(path, fset, files, info); err != nil {
		t.Fatalf("check types of %s: %v", path, err)
	}
	s := search{fset: fset, info: info}
	for _, f := range files {
		ast.Inspect(f, s.look)
	}
	return s.found
}

// search collects the places where a package-level variable changes.
type search struct {
	fset  *token.FileSet
	info  *types.Info
	found []string
}

func (s *search) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for _, name := range n.Names {
			s.declared(name)
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, to := range n.Lhs {
				s.changed(to)
			}
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			s.changed(n.Key)
			s.changed(n.Value)
		}
	case *ast.IncDecStmt:
		s.changed(n.X)
	case *ast.SendStmt:
		s.changed(n.Chan)
	case *ast.UnaryExpr:
		if _, whole := ast.Unparen(n.X).(*ast.Ident); n.Op == token.AND && whole {
			s.changed(n.X)
		}
	case *ast.SelectorExpr:
		s.called(n)
	case *ast.CallExpr:
		s.emptied(n)
	}
	return true
}

// declared complains of a package-level variable that is made for being changed.
func (s *search) declared(name *ast.Ident) {
	v, ok := s.info.Defs[name].(*types.Var)
	if !ok || !packageLevel(v) || isPool(v.Type()) {
		return
	}
	if _, ok := v.Type().Underlying().(*types.Chan); ok {
		s.complain(name, v, "is a channel")
	}
	if named, ok := v.Type().(*types.Named); ok && named.Obj().Pkg() != nil {
		if from := named.Obj().Pkg().Path(); from == "sync" || from == "sync/atomic" {
			s.complain(name, v, "is a "+named.String())
		}
	}
}

func (s *search) changed(x ast.Expr) {
	if v := s.root(x); v != nil && packageLevel(v) {
		s.complain(x, v, "changes")
	}
}

// called complains of a method that may write through the address of a package-level variable.
func (s *search) called(x *ast.SelectorExpr) {
	sel, ok := s.info.Selections[x]
	if !ok || sel.Kind() != types.MethodVal || isPool(sel.Recv()) {
		return
	}
	if _, already := sel.Recv().Underlying().(*types.Pointer); already {
		return
	}
	if _, byAddress := sel.Obj().Type().(*types.Signature).Recv().Type().(*types.Pointer); byAddress {
		s.changed(x.X)
	}
}

// emptied complains of the built-in functions that write to their first argument.
func (s *search) emptied(x *ast.CallExpr) {
	name, ok := ast.Unparen(x.Fun).(*ast.Ident)
	if !ok || len(x.Args) == 0 {
		return
	}
	if _, builtin := s.info.Uses[name].(*types.Builtin); !builtin {
		return
	}
	switch name.Name {
	case "delete", "clear", "copy":
		s.changed(x.Args[0])
	}
}

// root is the variable that x is a part of; nil if there is none, as in f().x.
func (s *search) root(x ast.Expr) *types.Var {
	for {
		switch e := x.(type) {
		case *ast.Ident:
			v, _ := s.info.Uses[e].(*types.Var)
			return v
		case *ast.SelectorExpr:
			if s.info.Selections[e] == nil { // another package's
				v, _ := s.info.Uses[e.Sel].(*types.Var)
				return v
			}
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.ParenExpr:
			x = e.X
		default:
			return nil
		}
	}
}

func (s *search) complain(at ast.Node, v *types.Var, what string) {
	s.found = append(s.found, fmt.Sprintf("%s: the variable %s of package %s %s", s.fset.Position(at.Pos()), v.Name(),
		v.Pkg().Name(), what))
}

func packageLevel(v *types.Var) bool {
	return v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

// isPool: a sync.Pool keeps nothing that anybody would miss.
func isPool(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "sync" && named.Obj().Name() == "Pool"
}

func TestState_IsSeenWhereItIsKept(t *testing.T) {
	exports := map[string]string{}
	for _, p := range list(t, "-export", "-deps", "sync", "sync/atomic", "errors") {
		exports[p.ImportPath] = p.Export
	}
	const head = `package x
import ("errors"; "sync"; "sync/atomic")
type box struct{ n int }
func (b *box) fill() { b.n++ }
func (b box) look() int { return b.n }
var _, _ = errors.New, atomic.AddInt64
var pool sync.Pool
var gone = errors.New("gone")
var table = [2]box{{1}, {2}}
`
	for _, c := range []struct {
		code string
		want int
	}{
		{`func f() int { e := &table[1]; pool.Put(e); n := table[0].look(); n++; return n }`, 0},
		{`func f() error { table := []int{1}; table[0] = 2; return gone }`, 0},
		{`var n int; func f() { n = 1 }`, 1},
		{`var n int; func f() { n++ }`, 1},
		{`var n int64; func f() { atomic.AddInt64(&n, 1) }`, 1},
		{`func f() { table[0].n = 7 }`, 1},
		{`func f() { table[0].fill() }`, 1},
		{`var b = &box{}; func f() { b.n = 1 }`, 1},
		{`var m = map[string]int{}; func f() { m["a"] = 1; delete(m, "a") }`, 2},
		{`var mu sync.Mutex`, 1},
		{`var count atomic.Int64`, 1},
		{`var c = make(chan int)`, 1},
		{`func f() { for table[0].n = range 3 {} }`, 1},
		{`func f() { copy(table[:], []box{}) }`, 1},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", head+c.code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := stateKept(t, fset, "x", []*ast.File{f}, exports); len(got) != c.want {
			t.Errorf("%s: %d complaints %v, want %d", c.code, len(got), got, c.want)
		}
	}
}
