package browser

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a sluice that runs until the test ends.
type process struct {
	command *exec.Cmd
	ended   chan struct{}

	mu   sync.Mutex
	text bytes.Buffer // all that it says
}

func run(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(binary(t), args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = p, p
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // who wants its exit code looks at the state
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if text := p.said(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") || t.Failed() {
			t.Errorf("sluice %s:\n%s", strings.Join(args, " "), text)
		}
	})
	return p
}

// Write implements io.Writer.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop ends it as an orchestrator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Error("sluice does not stop")
		_ = p.command.Process.Kill()
		<-p.ended
	}
}
