package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// scratch is removed when all tests have ended.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "sluice-browser-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// built compiles both commands once, with the race detector where the tests have it.
var built = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(scratch, "sluice")
	args := []string{"build", "-buildvcs=false", "-ldflags", "-s -w", "-tags", "nethttpomithttp2", "-o", scratch + "/"}
	if raced {
		args = append(args, "-race")
	}
	if text, err := exec.Command("go", append(args, "sluice/cmd/sluice",
		"sluice/cmd/sluice-settle")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sluice: %w\n%s", err, text)
	}
	return path, nil
})

func binary(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// listeners are on ports that the kernel chooses: the log tells which.
const listeners = `server.listen = ["127.0.0.1:0"]
ops.listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
server.shutdown_delay = "0s"
`

// gate is one that runs in a process of its own.
type gate struct {
	*process
	file              string // its configuration
	front, ops, admin string // host:port for shoppers, machines, operators
}

// open runs a gate until the test ends.
func open(t *testing.T, settings ...string) *gate {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(listeners+strings.Join(settings, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gate{process: run(t, "run", "--config", file), file: file}
	for end := time.Now().Add(30 * time.Second); !g.ready(); time.Sleep(20 * time.Millisecond) { // polls
		if time.Now().After(end) || g.gone() {
			t.Fatalf("the gateway does not start:\n%s", g.said.String())
		}
	}
	return g
}

// ready reads the addresses out of the log, and asks whether the gate serves.
func (g *gate) ready() bool {
	for text := range strings.Lines(g.said.String()) {
		var line struct{ Msg, Key, Address string }
		if json.Unmarshal([]byte(text), &line) != nil {
			continue
		}
		switch line.Msg + line.Key {
		case "listening for shoppers":
			g.front = line.Address
		case "listening for operatorsops.listen":
			g.ops = line.Address
		case "listening for operatorsadmin.listen":
			g.admin = line.Address
		}
	}
	if g.front == "" || g.ops == "" {
		return false
	}
	resp, err := http.Get("http://" + g.ops + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// sluice runs a command that must succeed.
func sluice(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(binary(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
