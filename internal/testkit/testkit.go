// Package testkit is what the tests of several packages share: waiting, free ports, certificates, logs and
// configurations. Only tests import it.
package testkit

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/config"
)

// Eventually waits until what becomes true, which other goroutines, the kernel or a server need a moment for. It fails
// the test after 30 s.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// FreeAddress is an address of loopback that is free, and that no other test on this machine gets until this one ends.
// It is below the ports that the kernel gives to dialers: so no client takes it while a server is away, nor reaches
// itself there (TCP's simultaneous open).
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(22_000))
		claim, err := claimed(port)
		if err != nil {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", port)
		// A listener in place of the connection could outlive its Close, as at Listen.
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			claim.Close()
			continue
		}
		t.Cleanup(func() { claim.Close() })
		return address
	}
	t.Fatal("no port of a hundred is free")
	return ""
}

// Listen listens at an address of FreeAddress. The test may have listened there before: a process that is being started
// has a copy of every listener for a moment, so that the address is not free at once when the listener is closed.
func Listen(t testing.TB, address string) (l net.Listener) {
	t.Helper()
	Eventually(t, address+" is free", func() bool {
		var err error
		if l, err = net.Listen("tcp", address); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	return l
}

// claimed locks the file of a port in a folder of all tests of this user. The lock ends with the file, or with the
// process.
func claimed(port string) (*os.File, error) {
	folder := filepath.Join(os.TempDir(), "sluice-test-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(folder, port), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Log is a log, or an output, that tests read while it is written. Its zero value is ready.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often what was written.
func (l *Log) Count(what string) int { return strings.Count(l.String(), what) }

// LimitConfig is a configuration of one route with gate "limit", without stock; settings stand before it.
func LimitConfig(t testing.TB, settings string) *config.Config {
	t.Helper()
	c, err := config.Parse("config.toml", []byte(settings+`
upstream.targets = ["http://127.0.0.1:9"]
stock.source = "off"
[[route]]
name = "all"
match = "/"
gate = "limit"
`), config.NoEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Nightly skips a test that measures the machine or runs long, unless SLUICE_NIGHTLY is set, as make nightly does.
func Nightly(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("SLUICE_NIGHTLY") == "" {
		t.Skip("make nightly runs it: " + why)
	}
}

// Must is v, where err is nil.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		Check(t, err)
		return v
	}
}

// Check fails the test for err.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Want fails the test unless got is want.
func Want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// Storm runs n calls on workers goroutines.
func Storm(n, workers int, call func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				call(i)
			}
		})
	}
	all.Wait()
}
