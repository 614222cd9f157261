package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// Bounds that only a broken gate meets: a loaded machine is slow, and no test is about speed.
const (
	long  = 30 * time.Second      // for what should take a moment
	pause = 20 * time.Millisecond // between two looks; slow enough for limits.connection.request_rate
)

// unhurried has the gate wait for a shop that holds a request for as long as a test wants.
const unhurried = "upstream.timeout = \"5m\"\nupstream.response_header_timeout = \"5m\""

// routes are what a gate has when its settings name none: an order route and the rest of the shop.
const routes = `
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "check"
sku = "$path_sku"
user = "$cookie_uid"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// running is a gate in a process of its own.
type running struct {
	t      *testing.T
	file   string // its configuration
	front  string // host:port for shoppers
	ops    string // host:port for health and metrics
	admin  string // host:port for the control API
	log    journal
	client *http.Client

	mortal  bool // it may be killed
	process *exec.Cmd
	ended   chan struct{} // closed when the process has gone
}

// gate runs the binary until the test ends. Each setting is a line like `mode = "observe"`, its key in full; the last
// may be [[route]] tables.
func gate(t *testing.T, settings ...string) *running {
	t.Helper()
	text := strings.Join(settings, "\n") + "\n"
	if !strings.Contains(text, "[[route]]") {
		text += routes
	}
	if !strings.Contains(text, "server.shutdown_delay") {
		text = "server.shutdown_delay = \"0s\"\n" + text
	}
	if !strings.Contains(text, "server.listen =") {
		text = listeners + text
	}
	if head, _, _ := strings.Cut("\n"+text, "\n["); !strings.Contains(head, "\nname = ") {
		text = "name = \"shop\"\n" + text
	}
	path := file(t, text)
	return start(t, path, exec.Command(binary, "run", "--config", path))
}

// start runs a gate by a command of the test's own.
func start(t *testing.T, path string, command *exec.Cmd) *running {
	t.Helper()
	g := &running{t: t, file: path, ended: make(chan struct{})}
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 4 * long}
	g.process = command
	g.process.Env, g.process.Stderr = append(surroundings(), command.Env...), &g.log
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = g.process.Wait() // its exit code is read by stop
		close(g.ended)
	}()
	t.Cleanup(g.cleanUp)
	soon(t, "the gate is ready", func() bool { return g.gone() || g.addressed() && g.ready() })
	if g.gone() {
		t.Fatalf("the gate ended at once, exit code %d", g.process.ProcessState.ExitCode())
	}
	return g
}

// listeners are on ports that the kernel chooses: the log tells which.
const listeners = `server.listen = ["127.0.0.1:0"]
ops.listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
`

// addressed reads the addresses out of the log, as soon as the gate takes shoppers.
func (g *running) addressed() bool {
	for _, line := range g.log.lines() {
		switch line.Msg + line.Key {
		case "listening for shoppers":
			g.front = line.Address
		case "listening for operatorsops.listen":
			g.ops = line.Address
		case "listening for operatorsadmin.listen":
			g.admin = line.Address
		}
	}
	return g.front != "" && g.ops != "" && g.admin != ""
}

func (g *running) ready() bool {
	status, _ := g.peek("/readyz")
	return status == http.StatusOK
}

// peek asks the listener for operators.
func (g *running) peek(path string) (status int, text string) {
	resp, err := g.client.Get("http://" + g.ops + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

func (g *running) gone() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// terminate asks the process to stop, as an orchestrator does.
func (g *running) terminate() {
	g.t.Helper()
	if err := g.process.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
}

// stopped waits until the process has gone and returns its exit code.
func (g *running) stopped() int {
	g.t.Helper()
	select {
	case <-g.ended:
	case <-time.After(2 * long):
		g.t.Error("the gateway does not stop")
		_ = g.process.Process.Kill()
		<-g.ended
	}
	return g.process.ProcessState.ExitCode()
}

// cleanUp stops the gate, and looks for what no test may leave behind.
func (g *running) cleanUp() {
	g.client.CloseIdleConnections()
	if !g.gone() {
		g.terminate()
	}
	if code := g.stopped(); code != 0 && !g.mortal {
		g.t.Errorf("the gate ended with exit code %d", code)
	}
	text := g.log.String()
	if strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
		g.t.Error("a race or a panic is in the log")
	}
	if g.t.Failed() {
		g.t.Logf("log of the gate:\n%s", text)
	}
}

// journal is what the process has written to standard error.
type journal struct{ testkit.Log }

// line is one entry of the log, as far as tests look at it.
type line struct{ Level, Msg, Key, Address, SKU, Config string }

func (j *journal) lines() (all []line) {
	for text := range strings.Lines(j.String()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil {
			all = append(all, l)
		}
	}
	return all
}

// logs waits until the log has all parts: what the gate has written comes by a pipe.
func (g *running) logs(t *testing.T, parts ...string) {
	t.Helper()
	for _, p := range parts {
		soon(t, fmt.Sprintf("%q is logged", p), func() bool { return strings.Contains(g.log.String(), p) })
	}
}

// soon waits until what is true, and returns how long that took.
func soon(t *testing.T, what string, is func() bool) time.Duration {
	t.Helper()
	return inTime(t, 2*long, what, is)
}

// inTime is soon for what takes its time.
func inTime(t *testing.T, patience time.Duration, what string, is func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !is() {
		if time.Since(start) > patience {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(pause) // between two looks
	}
	return time.Since(start)
}

// quoted renders a list of strings for a setting.
func quoted(list ...string) string { return strings.ReplaceAll(fmt.Sprintf("%q", list), `" "`, `", "`) }

// fixed is a setting of addresses that two processes can share: free ports of this moment.
func fixed(t *testing.T) (setting, front string) {
	t.Helper()
	var ports [3]string
	for i := range ports {
		for ports[i] == "" || slices.Contains(ports[:i], ports[i]) {
			ports[i] = testkit.FreeAddress(t)
		}
	}
	return fmt.Sprintf("server.listen = [%q]\nops.listen = %q\nadmin.listen = %q\nserver.shutdown_delay = \"500ms\"",
		ports[0], ports[1], ports[2]), ports[0]
}
