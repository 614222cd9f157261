// Package redistest runs a real redis-server for tests and lets them break it.
//
// Each server listens on a loopback port of its own, keeps nothing on disk, and ends with the test.
package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/testkit"
)

// Server is one redis-server. Its methods fail the test when they cannot do what they say.
type Server struct {
	Addr   string        // host:port, the same after Restart
	Client *redis.Client // for the test's own commands

	t       testing.TB
	dir     string
	file    string // the configuration of a sentinel; "" = none, and it is none
	bus     string // the other port of a cluster's server
	extra   []string
	env     []string // beside the test's own
	process *exec.Cmd
	ended   chan struct{} // closed when the process has
}

// Start runs a redis-server until the test ends; extra are further arguments of it. Without the binary the
// test is skipped, or fails where the environment has CI set.
func Start(t testing.TB, extra ...string) *Server {
	t.Helper()
	return start(t, &Server{extra: extra})
}

// start runs s.
func start(t testing.TB, s *Server) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed, and in CI it must be")
		}
		t.Skip("redis-server is not installed")
	}
	s.t, s.dir = t, t.TempDir()
	t.Cleanup(s.stop)
	for range 5 { // another process may take the port before redis-server does
		s.Addr = testkit.FreeAddress(t)
		if s.run() == nil {
			s.Client = client(s.Addr)
			return s
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

// run starts the process and waits until it answers.
func (s *Server) run() error {
	var said bytes.Buffer
	s.process, s.ended = exec.Command("redis-server", s.arguments()...), make(chan struct{})
	s.process.Env, s.process.Stdout = append(os.Environ(), s.env...), &said
	if err := s.process.Start(); err != nil {
		return err
	}
	go func(p *exec.Cmd, ended chan<- struct{}) {
		_ = p.Wait() // what it said tells more
		close(ended)
	}(s.process, s.ended)
	err := s.answers()
	if err != nil {
		s.Kill()
		err = fmt.Errorf("%w: %s", err, said.String()[max(0, said.Len()-1000):])
	}
	return err
}

// arguments are those of the process.
func (s *Server) arguments() []string {
	host, port, _ := net.SplitHostPort(s.Addr)
	args := []string{"--bind", host, "--port", port, "--dir", s.dir}
	if s.file != "" {
		return append(append([]string{s.file}, args...), "--sentinel")
	}
	return append(append(args, "--save", "", "--appendonly", "no"), s.extra...)
}

// startup is how long a server on a machine that has much else to do may take until it answers.
const startup = 30 * time.Second

// answers waits until the server speaks on its port, or has ended.
func (s *Server) answers() error {
	for begin := time.Now(); time.Since(begin) < startup; {
		c, err := net.Dial("tcp", s.Addr)
		if err == nil {
			buf := make([]byte, 1)
			_ = c.SetDeadline(time.Now().Add(startup)) // who else may listen there is mute
			_, err = fmt.Fprint(c, "PING\r\n")
			if err == nil {
				_, err = c.Read(buf)
			}
			c.Close()
			if err == nil {
				return nil
			}
		}
		select {
		case <-s.ended:
			return errors.New("redis-server has ended")
		case <-time.After(time.Millisecond): // it takes a few; hundreds of tests start one
		}
	}
	return errors.New("redis-server does not answer")
}

// Kill ends the server as kill -9 does, and waits until it is gone.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	<-s.ended
	s.process = nil
}

// Restart runs the server again on the same port, empty, after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.run(); err != nil {
		s.t.Fatal(err)
	}
}

// Written is how many bytes the last file of the append-only log has.
func (s *Server) Written() int64 {
	s.t.Helper()
	about, err := os.Stat(s.log())
	if err != nil {
		s.t.Fatal(err)
	}
	return about.Size()
}

// Cut takes from a killed server what it has written after the first bytes of that file.
func (s *Server) Cut(bytes int64) {
	s.t.Helper()
	if err := os.Truncate(s.log(), bytes); err != nil {
		s.t.Fatal(err)
	}
}

// log is the last file of the append-only log.
func (s *Server) log() string {
	s.t.Helper()
	all, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(all) == 0 {
		s.t.Fatalf("no append-only log, %v", err)
	}
	return slices.Max(all)
}

// Pause lets the server hang: connections open, but nothing is answered.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Calls is how often the server has run a command since it started, as INFO commandstats counts: "get",
// "hmget", "ping". Only commands that no other client sends make a sharp count.
func (s *Server) Calls(command string) int64 {
	s.t.Helper()
	return s.Number("commandstats", "cmdstat_"+command+":calls=")
}

// Commands is how many commands the server has processed since it started, this one not included.
func (s *Server) Commands() int64 {
	s.t.Helper()
	return s.Number("stats", "total_commands_processed:")
}

// Number finds the digits that follow name in a section of INFO; 0 when name is not there.
func (s *Server) Number(section, name string) int64 {
	s.t.Helper()
	text, err := s.Client.Info(context.Background(), section).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	_, after, found := strings.Cut(text, name)
	if !found {
		return 0
	}
	end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(after[:end], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// CPU is how many seconds of a processor the server has used.
func (s *Server) CPU() (seconds float64) {
	s.t.Helper()
	text, err := s.Client.Info(context.Background(), "cpu").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			seconds += n
		}
	}
	return seconds
}

// stop ends what Start began.
func (s *Server) stop() {
	if s.Client != nil {
		s.Client.Close()
	}
	s.Kill()
}
