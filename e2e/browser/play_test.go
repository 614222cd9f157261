package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a scenario may take; only a broken one meets it.
const patience = 4 * time.Minute

// browsing finds what drives the browser and installs playwright-core beside the scenarios, once.
var browsing = sync.OnceValues(func() (chromium string, err error) {
	for _, command := range []string{"node", "npm", "chromium"} {
		if chromium, err = exec.LookPath(command); err != nil {
			return "", fmt.Errorf("%s is not installed", command)
		}
	}
	if lock, err := os.ReadFile("node_modules/.package-lock.json"); err == nil && bytes.Contains(lock, wanted()) {
		return chromium, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// A browser is not downloaded: the system's is driven.
	if out, err := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit",
		"--no-fund").CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w: %s", err, bytes.TrimSpace(out))
	}
	return chromium, nil
})

// wanted is how package-lock.json names the contents of playwright-core, and so does what was installed by it.
func wanted() []byte {
	text, _ := os.ReadFile("package-lock.json") // npm ci says so when it is not there
	_, after, _ := bytes.Cut(text, []byte(`"integrity": `))
	hash, _, _ := bytes.Cut(after, []byte(","))
	return hash
}

// skips ends the test where there is no browser; in CI there must be one.
func skips(t *testing.T) (chromium string) {
	t.Helper()
	chromium, err := browsing()
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("no browser, and in CI there must be one: %v", err)
	}
	if err != nil {
		t.Skipf("no browser: %v", err)
	}
	return chromium
}

// play plays a scenario. When its browser is there, stage says what it is told: addresses, times. Each line that it
// writes tells something: "note: …" for the log, "wrong: …" for what is not as it should be.
func play(t *testing.T, scenario string, stage func() any) {
	t.Helper()
	chromium, sluice := skips(t), binary(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node := exec.CommandContext(ctx, "node", scenario)
	node.Env = append(os.Environ(), "CHROMIUM="+chromium, "SLUICE="+sluice, "TMPDIR="+scratch)
	node.Cancel = func() error { return node.Process.Signal(syscall.SIGTERM) } // it takes the browser along
	node.WaitDelay = 10 * time.Second
	var complaint bytes.Buffer
	node.Stderr = &complaint
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	listen(t, out, func() {
		if err := json.NewEncoder(in).Encode(stage()); err != nil {
			t.Error(err)
		}
	})
	if err := node.Wait(); err != nil || t.Failed() {
		t.Errorf("%s: %v\n%s", scenario, err, complaint.String())
	}
}

// listen reads what a scenario says until it ends.
func listen(t *testing.T, out io.Reader, ready func()) {
	t.Helper()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "ready":
			ready()
		case strings.HasPrefix(line, "wrong: "):
			t.Error(line)
		default:
			t.Log(line)
		}
	}
}
