package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a server that this one has started, with the workers that it started in turn.
type Process struct {
	name  string
	cmd   *exec.Cmd
	said  *os.File      // what it wrote
	ended chan struct{} // closed when it has gone
}

// StartProcess starts a process, which writes into a file of dir. It is asked to end when ctx does, and killed where it
// does not.
func StartProcess(ctx context.Context, dir, name string, command ...string) (*Process, error) {
	said, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		said.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, cmd: cmd, said: said, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its users notice that it does not answer
		close(p.ended)
	}()
	return p, nil
}

// StartRedis starts a redis-server that keeps nothing on disk, with further arguments, and waits until it listens.
func StartRedis(ctx context.Context, dir string, extra ...string) (p *Process, address string, err error) {
	free, err := FreeAddresses(1)
	if err != nil {
		return nil, "", err
	}
	address = free[0]
	host, port, _ := net.SplitHostPort(address)
	command := []string{"redis-server", "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
	if p, err = StartProcess(ctx, dir, "redis", append(command, extra...)...); err != nil {
		return nil, "", err
	}
	if err := p.Listens(ctx, address); err != nil {
		p.Stop()
		return nil, "", err
	}
	return p, address, nil
}

// Stop ends the process and waits until it has gone; its workers go with it.
func (p *Process) Stop() {
	workers := p.PIDs()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		for _, pid := range workers {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-p.ended
	}
	p.said.Close()
}

// PIDs are the process ids of p and of its workers.
func (p *Process) PIDs() []int {
	own := p.cmd.Process.Pid
	all := []int{own}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", own))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// complaint is the end of what the process wrote.
func (p *Process) complaint() string {
	text, _ := os.ReadFile(p.said.Name())
	if len(text) > 600 {
		text = text[len(text)-600:]
	}
	return strings.TrimSpace(string(text))
}

// Answers waits until a GET of url is answered with 200, and tells how long that took since begin.
func (p *Process) Answers(ctx context.Context, begin time.Time, url string) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	defer client.CloseIdleConnections()
	return p.until(ctx, begin, func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// Listens waits until a server accepts connections at address.
func (p *Process) Listens(ctx context.Context, address string) error {
	_, err := p.until(ctx, time.Now(), func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return err
}

// until looks every half a millisecond whether it is so, for ten seconds at most.
func (p *Process) until(ctx context.Context, begin time.Time, so func() bool) (time.Duration, error) {
	for time.Since(begin) < 10*time.Second {
		if so() {
			return time.Since(begin), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-p.ended:
			return 0, fmt.Errorf("start %s: it ended at once: %s", p.name, p.complaint())
		case <-time.After(500 * time.Microsecond):
		}
	}
	return 0, errors.New("start " + p.name + ": it does not answer: " + p.complaint())
}

// FreeAddresses are n addresses of loopback that are free, below the ports that the kernel gives to dialers.
func FreeAddresses(n int) (all []string, err error) {
	for tries := 0; len(all) < n; tries++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000))))
		if err != nil && tries > 100 {
			return nil, err
		}
		if err == nil {
			defer l.Close() // when all are found: each is another one
			all = append(all, l.Addr().String())
		}
	}
	return all, nil
}
