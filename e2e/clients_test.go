package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// foreign is a client that others wrote, and the script of e2e/clients that lets it try a gate. The script gets
// the gate's address as {} and prints lines: "version V", "ok CHECK", "FAIL CHECK: WHY".
type foreign struct {
	name    string
	needs   string // the command without which it is left out
	command string
	fast    bool // it makes load: nothing is limited for it
}

var foreigners = []foreign{
	{"curl", "curl", "sh clients/curl.sh {}", false},
	{"undici, fetch and axios on Node", "node", "node clients/node.mjs {}", false},
	{"http.client and requests on Python", "python3", "python3 clients/python.py {}", false},
	{"HttpClient and HttpURLConnection on Java", "javac", "java -Xmx1g clients/Client.java {}", false},
	{"curl and streams on PHP", "php", "php -d memory_limit=1G clients/client.php {}", false},
	{"ab", "ab", "sh clients/load.sh {} ab", true},
	{"wrk", "wrk", "sh clients/load.sh {} wrk", true},
	{"h2load --h1", "h2load", "sh clients/load.sh {} h2load", true},
}

// packages are what the scripts for Node import.
const packages = "undici@6 axios@1 ws@8"

func TestClients_ForeignClientsUnderstandTheGate(t *testing.T) {
	testkit.Nightly(t, "it needs npm, and clients of others")
	modules := installed(t, packages)
	shop := open(t, services())
	slow := stocked(t, shop.setting(), "limits.connection.request_rate = \"1/m\"\nlimits.connection.request_burst = 40",
		`server.read_timeout = "2m"`, anonymous)
	fast := stocked(t, shop.setting(), boundless, anonymous)
	for _, g := range []*running{slow, fast} {
		ok(t, "stock", "set", "2002", "0", "--admin", "http://"+g.admin)
	}
	var rows strings.Builder
	for _, f := range foreigners {
		t.Run(f.name, func(t *testing.T) {
			if _, err := exec.LookPath(f.needs); err != nil {
				t.Skipf("%s is not installed", f.needs)
			}
			front := slow.front
			if f.fast {
				front = fast.front
			}
			f.judge(t, &rows, modules, front)
		})
	}
	t.Run("WebSocket", func(t *testing.T) {
		if modules == "" {
			t.Skip("npm's ws is not installed")
		}
		ws := foreign{name: "ws on Node, through a tunnel", command: "node clients/ws.mjs {}"}
		g := stocked(t, "upstream.targets = "+quoted("http://127.0.0.1:"+echo(t, modules)), boundless,
			strings.Replace(anonymous, `"POST /api`, `"/api`, 1))
		ws.judge(t, &rows, modules, g.front)
	})
	if *update {
		write(t, "clients", "| client | version | checks passed | failed |\n| --- | --- | --- | --- |\n"+rows.String())
	}
}

// judge runs a script and reads its checks.
func (f foreign) judge(t *testing.T, rows *strings.Builder, modules, front string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := script(ctx, strings.ReplaceAll(f.command, "{}", "http://"+front), modules).CombinedOutput()
	version, passed := "unknown", 0
	var failed []string
	for line := range strings.Lines(string(out)) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "version":
			version = rest
		case "ok":
			passed++
		case "FAIL":
			failed = append(failed, rest)
			t.Error(rest)
		}
	}
	if err != nil || passed == 0 {
		failed = append(failed, "the script itself")
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s: %d checks passed, %d failed", version, passed, len(failed))
	fmt.Fprintf(rows, "| %s | %s | %d | %d |\n", f.name, version, passed, len(failed))
}

// script is a command in the folder of the npm packages, its files named from here.
func script(ctx context.Context, command, modules string) *exec.Cmd {
	here, _ := os.Getwd()
	words := strings.Fields(strings.ReplaceAll(command, "clients/", filepath.Join(here, "clients")+"/"))
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir = modules
	return c
}

// installed is a folder with the npm packages; "" = there is none, and the log says why.
func installed(t *testing.T, packages string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"install", "--silent", "--no-audit", "--no-fund", "--prefix", dir},
		strings.Fields(packages)...)
	if text, err := exec.CommandContext(t.Context(), "npm", args...).CombinedOutput(); err != nil {
		t.Logf("npm packages are not installed: %v: %s", err, text)
		return ""
	}
	return dir
}

// echo runs the WebSocket server and returns its port.
func echo(t *testing.T, modules string) (port string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server := script(ctx, "node clients/ws.mjs serve", modules)
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// services is what the scripts ask of the shop.
func services() http.HandlerFunc {
	more := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"page"`)
		if r.Header.Get("If-None-Match") == `"page"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "page")
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		if err == nil {
			fmt.Fprintf(w, "%d %x", n, h.Sum(nil))
		}
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.FormValue("n"), 10, 64)
		h := sha256.New()
		_, _ = io.Copy(h, &pattern{size: n})
		w.Header().Set("X-Sha256", fmt.Sprintf("%x", h.Sum(nil)))
		if !r.Form.Has("chunked") {
			w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		}
		_, _ = io.Copy(w, &pattern{size: n})
	})
	// The second event comes only when a client that has seen the first one asks for it.
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-more:
			_, _ = io.WriteString(w, "data: 2\n\n")
		case <-r.Context().Done():
		case <-time.After(long):
		}
	})
	mux.HandleFunc("/sse/next", func(http.ResponseWriter, *http.Request) { more <- struct{}{} })
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"code":0}`) })
	return mux.ServeHTTP
}
