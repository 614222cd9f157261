package doctor

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// The dashboard shows findings in Chinese by admin/web/findings.zh.json, whose keys are the formats of findings.
func TestFinding_HasATranslation(t *testing.T) {
	text, err := os.ReadFile("../../admin/web/findings.zh.json")
	if err != nil {
		t.Fatal(err)
	}
	var catalogue map[string]string
	if err := json.Unmarshal(text, &catalogue); err != nil {
		t.Fatal(err)
	}
	verb := regexp.MustCompile(`%(\[\d+\])?[-+#0 ]*\d*[a-zA-Z]`)
	for format, says := range catalogue {
		n := len(verb.FindAllString(format, -1))
		if strings.Contains(says, "%s") {
			t.Errorf("%q is written {1}, not %%s: %s", format, says)
		}
		for _, m := range regexp.MustCompile(`\{=?(\d)\}`).FindAllStringSubmatch(says, -1) {
			if i, _ := strconv.Atoi(m[1]); i < 1 || i > n {
				t.Errorf("%q has no value %s: %s", format, m[0], says)
			}
		}
	}
	formats := findingFormats(t, ".", "../../gateway")
	for _, remedy := range remedies(t, "../../stockgate/redisconn/errors.go", "online.go") {
		formats = append(formats, "%v; "+remedy)
	}
	formats = append(formats, checkNames(t, "../../gateway/readiness.go")...)
	var missing []string
	for _, format := range formats {
		plain := verb.ReplaceAllString(format, "")
		known := catalogue[strings.ReplaceAll(format, "%[2]s", "%s")] != ""
		if !known && strings.ContainsFunc(plain, unicode.IsLetter) {
			missing = append(missing, format)
		}
	}
	if len(formats) < 80 || len(missing) > 0 {
		t.Errorf("%d of %d findings have no translation:\n%s", len(missing), len(formats), strings.Join(missing, "\n"))
	}
}

// checkNames are the formats by which a finding names each check of readiness of this file.
func checkNames(t *testing.T, file string) (formats []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Name: "(\w+)", Probe:`).FindAllStringSubmatch(string(text), -1) {
		if m[1] != "reload" { // it has findings of its own
			formats = append(formats, m[1]+": %s")
		}
	}
	if len(formats) < 7 {
		t.Errorf("%s has the checks %v", file, formats)
	}
	return formats
}

// remedies are what Remedy and evictionRemedy of these files return: they follow the text of Redis.
func remedies(t *testing.T, files ...string) (all []string) {
	t.Helper()
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Remedy" && f.Name.Name != "evictionRemedy" {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if text, ok := constant(r.Results[0]); ok && text != "" {
						all = append(all, text)
					}
				}
				return true
			})
		}
	}
	return all
}

// findingFormats are the formats that the files of these folders give to OK, Warn and Fail, and what checks of
// readiness return.
func findingFormats(t *testing.T, folders ...string) (formats []string) {
	t.Helper()
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if found, ok := n.(*ast.ReturnStmt); ok {
					formats = append(formats, readiness(found)...)
				}
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if ok && isReport(method.X) && slices.Contains([]string{"OK", "Warn", "Fail"}, method.Sel.Name) {
					if format, ok := constant(call.Args[1]); ok {
						formats = append(formats, format)
					}
				}
				return true
			})
		}
	}
	return formats
}

// readiness is the format of what a check returns with its health: a text, or fmt.Sprintf of one.
func readiness(found *ast.ReturnStmt) []string {
	if len(found.Results) != 2 {
		return nil
	}
	health, ok := found.Results[1].(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Healthy", "Degraded", "Unready"}, health.Sel.Name) {
		return nil
	}
	text := found.Results[0]
	if call, ok := text.(*ast.CallExpr); ok && len(call.Args) > 0 {
		text = call.Args[0]
	}
	if format, ok := constant(text); ok {
		return []string{format}
	}
	return nil
}

// isReport reports the name that a Report has in these packages.
func isReport(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "o"
}

// constant is the text of a string literal, or of a sum of them.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, ok := constant(e.X)
		y, also := constant(e.Y)
		return x + y, ok && also
	}
	return "", false
}
