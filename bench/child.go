package main

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

// child is a process that this one started, with the workers that it started in turn.
type child struct {
	name    string
	process *exec.Cmd
	said    *os.File      // what it wrote
	ended   chan struct{} // closed when it has gone
}

// spawn starts a process. It is asked to end when ctx does, and killed where it does not.
func spawn(ctx context.Context, dir, name string, command ...string) (*child, error) {
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
	c := &child{name: name, process: cmd, said: said, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its users notice that it does not answer
		close(c.ended)
	}()
	return c, nil
}

// stop ends the process and waits until it has gone; its workers go with it.
func (c *child) stop() {
	workers := c.family()
	_ = c.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(5 * time.Second):
		for _, pid := range workers {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-c.ended
	}
	c.said.Close()
}

// family are the process ids of c and of its workers.
func (c *child) family() []int {
	own := c.process.Process.Pid
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
func (c *child) complaint() string {
	text, _ := os.ReadFile(c.said.Name())
	if len(text) > 600 {
		text = text[len(text)-600:]
	}
	return strings.TrimSpace(string(text))
}

// answers waits until a GET of url is answered with 200, and tells how long that took since begin.
func (c *child) answers(ctx context.Context, begin time.Time, url string) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	defer client.CloseIdleConnections()
	return c.until(ctx, begin, func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// listens waits until a server accepts connections at address.
func (c *child) listens(ctx context.Context, address string) error {
	_, err := c.until(ctx, time.Now(), func() bool {
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
func (c *child) until(ctx context.Context, begin time.Time, so func() bool) (time.Duration, error) {
	for time.Since(begin) < 10*time.Second {
		if so() {
			return time.Since(begin), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-c.ended:
			return 0, fmt.Errorf("start %s: it ended at once: %s", c.name, c.complaint())
		case <-time.After(500 * time.Microsecond):
		}
	}
	return 0, errors.New("start " + c.name + ": it does not answer: " + c.complaint())
}

// freePort is an address of loopback that is free, below the ports that the kernel gives to dialers.
func freePort() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000)))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", err
}
