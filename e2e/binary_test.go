package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// binary and settleBinary are the paths of the built sluice and sluice-settle, in one folder. TestMain sets them before
// any test runs.
var binary, settleBinary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 1
	binary, settleBinary = filepath.Join(dir, "sluice"), filepath.Join(dir, "sluice-settle")
	if err = build(dir); err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles both commands into dir, with the race detector and the engine of the tests.
func build(dir string) error {
	var flags []string
	if raced {
		flags = append(flags, "-race")
	}
	return compile(dir+"/", append(flags, "-tags", engineTags, "sluice/cmd/sluice", "sluice/cmd/sluice-settle")...)
}

func compile(to string, flagsAndPackages ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-ldflags", "-s -w -X sluice/internal/cli.linked=" +
		builtVersion, "-o", to}, flagsAndPackages...)
	if text, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build sluice: %w\n%s", err, text)
	}
	return nil
}

// builtBreakable makes the binary that tests can break, once for all that need it.
var builtBreakable = sync.OnceValues(func() (path string, err error) {
	path = binary + "-breakable"
	return path, compile(path, "-tags", "failpoints,"+engineTags, "sluice/cmd/sluice")
})

func breakable(t *testing.T) (path string) {
	t.Helper()
	path, err := builtBreakable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const builtVersion = "e2e"

// surroundings are the environment of the binary. The race detector's pause at the end of a process is for those that
// are still busy then.
func surroundings() []string { return append(os.Environ(), "GORACE=atexit_sleep_ms=1") }

// said is how a command that has ended left its caller.
type said struct {
	out, complaint string
	code           int
}

// run lets the binary do one command that ends by itself, in an empty directory unless dir names another.
func run(t *testing.T, dir string, args ...string) said {
	t.Helper()
	return runWith(t, dir, nil, args...)
}

// settle is run for a command of sluice-settle.
func settle(t *testing.T, args ...string) said {
	t.Helper()
	return runProgram(t, settleBinary, "", nil, args...)
}

// runWith is run with more in the environment, like "NAME=value".
func runWith(t *testing.T, dir string, environment []string, args ...string) said {
	t.Helper()
	return runProgram(t, binary, dir, environment, args...)
}

func runProgram(t *testing.T, program, dir string, environment []string, args ...string) said {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*long)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(surroundings(), environment...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
	return said{out.String(), complaint.String(), cmd.ProcessState.ExitCode()}
}

// ok is run for a command that must succeed; it returns what the command printed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	return succeeded(t, run(t, "", args...), args)
}

// settleOK is ok for a command of sluice-settle.
func settleOK(t *testing.T, args ...string) string {
	t.Helper()
	return succeeded(t, settle(t, args...), args)
}

func succeeded(t *testing.T, s said, args []string) string {
	t.Helper()
	if s.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), s.code, s.out, s.complaint)
	}
	return s.out
}

// wants fails the test unless text holds all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// file writes text into a file of its own and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
