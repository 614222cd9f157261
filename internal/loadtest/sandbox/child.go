package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"sluice/internal/loadtest"
)

// sandboxID is one that was not used before.
func sandboxID() string { return strings.ToLower(rand.Text()[:16]) }

// gateChild is the gate of a load test, seen from the load test.
type gateChild struct {
	cmd   *exec.Cmd
	asks  sync.Mutex // one question at a time
	mu    sync.Mutex // guards out
	in    *json.Decoder
	out   io.WriteCloser
	write *json.Encoder
	said  tail // its log
}

// start runs this very program as the gate, and returns where it listens.
func (g *gateChild) start(s *sandbox) (front string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	g.cmd = exec.Command(self, "loadtest")
	g.cmd.Env, g.cmd.Stderr = append(os.Environ(), isGate+"=1"), &g.said
	if g.out, err = g.cmd.StdinPipe(); err != nil {
		return "", err
	}
	in, err := g.cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := g.cmd.Start(); err != nil {
		return "", err
	}
	g.in, g.write = json.NewDecoder(in), json.NewEncoder(g.out)
	first, err := g.call(childRequest{Sandbox: s})
	if err != nil {
		_ = g.end()
		return "", err
	}
	return first.Front, nil
}

func (g *gateChild) send(line childRequest) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.write.Encode(line)
}

func (g *gateChild) call(line childRequest) (t childReply, err error) {
	g.asks.Lock()
	defer g.asks.Unlock()
	if err = g.send(line); err == nil {
		err = g.in.Decode(&t)
	}
	switch {
	case err != nil:
		return t, fmt.Errorf("the gateway has ended: %w\n%s", err, g.said.String())
	case t.Online:
		fmt.Fprintln(os.Stderr, "sluice:", t.Error)
		return t, ErrRedisAway
	case t.Error != "":
		return t, errors.New(t.Error)
	}
	return t, nil
}

// Read implements loadtest.Gate.
func (g *gateChild) Read(context.Context) (loadtest.GatewayReading, error) {
	t, err := g.call(childRequest{})
	if err != nil || t.Reading == nil {
		return loadtest.GatewayReading{}, err
	}
	return *t.Reading, nil
}

// end tells the gate to end, and waits until its keys are gone.
func (g *gateChild) end() error {
	_ = g.out.Close()
	_, _ = io.Copy(io.Discard, io.MultiReader(g.in.Buffered()))
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("the gateway: %w\n%s", err, g.said.String())
	}
	return nil
}

// mostTail bounds what is kept of the gate's log.
const mostTail = 8 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if more := len(t.text) - mostTail; more > 0 {
		t.text = append(t.text[:0], t.text[more:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
