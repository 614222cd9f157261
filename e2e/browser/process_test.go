package browser

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// process is a sluice that runs until the test ends.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
	said    testkit.Log // all that it says
}

func run(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(binary(t), args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = &p.said, &p.said
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // who wants its exit code looks at the state
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop(t)
		text := p.said.String()
		if strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") || t.Failed() {
			t.Errorf("sluice %s:\n%s", strings.Join(args, " "), text)
		}
	})
	return p
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
