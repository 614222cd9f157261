package arch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

const tutorial = "adding-a-limit.md" // in docs

func TestAddingALimit_PatchesApply(t *testing.T) {
	do(t, root, "git", "apply", "--check", filepath.Join("docs", tutorial))
}

// The tutorial is applied to a copy of the tree, as a reader would do it. What it promises is asked of the binary that
// is built there.
func TestAddingALimit_TutorialWorks(t *testing.T) {
	testkit.Nightly(t, "it compiles a changed tree")
	page, err := filepath.Abs(filepath.Join(manual, tutorial))
	if err != nil {
		t.Fatal(err)
	}
	tree := copyOfTree(t)
	do(t, tree, "git", "apply", page)
	do(t, tree, "go", "test", "./config", "-run", "Structs", "-update") // make reference
	do(t, tree, "go", "test", "./proxy/reject", "-run", "Page|Answers", "-update")
	do(t, tree, "go", "test", "./config", "./proxy/reject")
	do(t, tree, "go", "test", "./proxy", "-run", "Checks")
	do(t, tree, "go", "vet", "./config", "./proxy/reject", "./gateway")
	do(t, tree, "go", "build", "-o", "sluice", "./cmd/sluice")
	for file, want := range map[string]string{
		"docs/http.md": "\n| `user_orders` | busy | 429 |", "docs/configuration.md": "## [limits.user_orders]",
		"config.schema.json": `"per_minute"`,
	} {
		if text := read(t, filepath.Join(tree, file)); !strings.Contains(text, want) {
			t.Errorf("%s was written without %q", file, want)
		}
	}
	tryLimit(t, tree)
}

// copyOfTree is a copy of the module, without what is not built and without the tests that do not run here.
func copyOfTree(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name == ".git" || name == "e2e" || name == filepath.Join("docs", "images") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, name), 0o700)
		case !entry.Type().IsRegular() || name == "sluice":
			return nil
		case strings.HasSuffix(name, "_test.go") && !tested(filepath.ToSlash(filepath.Dir(name))):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tested are the packages whose tests write and compare what is generated, or hold the tables of checks.
func tested(pkg string) bool { return pkg == "config" || pkg == "proxy/reject" || pkg == "proxy" }

// do runs a command in dir. Without paths in what it compiles, packages that are as they were come from the cache.
func do(t *testing.T, dir string, command ...string) (out string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), command[0], command[1:]...)
	run.Dir = dir
	run.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false -trimpath -tags=nethttpomithttp2", "CGO_ENABLED=0")
	text, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, text)
	}
	return string(text)
}

// tryLimit runs the tutorial's configuration: 2 orders of a user in a minute.
func tryLimit(t *testing.T, tree string) {
	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer shop.Close()
	text := tomlBlock.FindStringSubmatch(read(t, filepath.Join(manual, tutorial)))[1]
	for _, listener := range []string{"server.listen = [%q]", "ops.listen = %q", "admin.listen = %q"} {
		text = fmt.Sprintf(listener, "127.0.0.1:0") + "\n" + text
	}
	text = "server.shutdown_delay = \"0s\"\n" + strings.Replace(text, "http://127.0.0.1:9000", shop.URL, 1)
	if err := os.WriteFile(filepath.Join(tree, "limit.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(read(t, filepath.Join(manual, tutorial)), "| grep user_orders\n")
	row, _, _ = strings.Cut(row, "$")
	out := do(t, tree, "./sluice", "explain", "--config", "limit.toml", "POST /order/1001", "-H", "Cookie: uid=7")
	if !strings.Contains(out, row) {
		t.Errorf("explain does not list %q:\n%s", row, out)
	}
	if strings.Contains(do(t, tree, "./sluice", "explain", "POST /api/seckill/1/order", "-H", "Cookie: uid=7"),
		"user_orders") {
		t.Error("explain lists the limit with the reference configuration, where it is off")
	}
	g := startSluice(t, tree)
	for i, want := range []string{"200 ", "200 ", "429 user_orders"} {
		if got := g.order(t, "7"); got != want {
			t.Errorf("order %d of a user: %q, want %q", i+1, got, want)
		}
	}
	if got := g.order(t, "8"); got != "200 " {
		t.Errorf("the first order of another user: %q", got)
	}
	g.expect(t, g.ops+"/metrics", `sluice_rejected_requests_total{reason="user_orders",route="order"} 1`)
	g.expect(t, g.admin+"/api/v1/limits", `"name":"user_orders","observe_only":false,`+
		`"numbers":[{"key":"limits.user_orders.per_minute","in_force":2,"configured":2}],"now":[],"reasons":["user_orders"]`)
	do(t, tree, "./sluice", "override", "set", "limits.observe_only[user_orders]", "true", "--for", "10m", "--admin",
		"http://"+g.admin)
	if got := g.order(t, "7"); got != "200 " {
		t.Errorf("an order above a limit that is only observed: %q", got)
	}
	g.expect(t, g.ops+"/metrics", `sluice_observed_rejections_total{reason="user_orders",route="order"} 1`)
	do(t, tree, "./sluice", "override", "set", "limits.observe_only[user_orders]", "false", "--for", "10m", "--admin",
		"http://"+g.admin)
	if got := g.order(t, "7"); got != "429 user_orders" {
		t.Errorf("an order after two reloads: %q; what a user has used is forgotten", got)
	}
	g.stop(t)
	if !strings.Contains(g.log.String(), `"limit":"limits.user_orders: per_minute 2"`) {
		t.Errorf("the access log does not name the limit:\n%s", g.log.String())
	}
}

// sluice is a process of the binary that was built.
type sluice struct {
	front, ops, admin string // host:port
	process           *exec.Cmd
	log               strings.Builder // the access log; read after stop
}

func startSluice(t *testing.T, tree string) *sluice {
	t.Helper()
	g := &sluice{process: exec.CommandContext(t.Context(), filepath.Join(tree, "sluice"), "run", "--config", "limit.toml")}
	g.process.Dir, g.process.Stdout = tree, &g.log
	errors, err := g.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(errors); lines.Scan(); {
		var line struct{ Msg, Key, Address string }
		_ = json.Unmarshal(lines.Bytes(), &line) // what is no JSON has no address
		switch line.Msg + line.Key {
		case "listening for shoppers":
			g.front = line.Address
		case "listening for operatorsops.listen":
			g.ops = line.Address
		case "listening for operatorsadmin.listen":
			g.admin = line.Address
		case "started":
			go func() { _, _ = io.Copy(io.Discard, errors) }() // ends with the process
			return g
		}
	}
	t.Fatalf("sluice ended at once: %v", g.process.Wait())
	return nil
}

func (g *sluice) stop(t *testing.T) {
	t.Helper()
	if err := g.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := g.process.Wait(); err != nil {
		t.Error(err)
	}
}

// order sends an order of a user, and returns status and reason.
func (g *sluice) order(t *testing.T, user string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.front+"/order/1001", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "uid", Value: user})
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return fmt.Sprintf("%d %s", resp.StatusCode, resp.Header.Get("X-Sluice-Reason"))
}

// expect looks for text in what an address says, which may count a moment later.
func (g *sluice) expect(t *testing.T, address, want string) {
	t.Helper()
	testkit.Eventually(t, address+" says "+want, func() bool {
		resp, err := http.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), want)
	})
}
