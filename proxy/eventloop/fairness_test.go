//go:build linux && !noeventloop

package eventloop

import (
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// ring keeps a loop busy without any other goroutine: each call of Serve makes another connection readable.
type ring struct {
	group  *Group
	served atomic.Int64 // calls of Serve
	calls  [ringPairs]int64
	onCall func(n int64) // called in Serve with the number of calls so far
}

// ringPairs is more than one batch, so that the loop is never idle.
const ringPairs = 2 * batchSize

// openRing returns a ring on a single processor. It runs after start.
func openRing(t *testing.T) *ring {
	t.Helper()
	old := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	r := new(ring)
	r.group = openGroup(t, Options{Loops: 1, Serve: r.serve})
	return r
}

func (r *ring) serve(c *Conn) {
	var b [2]byte // larger than what comes, so that nothing can be left behind
	for waiting := false; !waiting; {
		if _, err := c.TryRead(b[:]); err != nil {
			c.Close()
			return
		}
		r.calls[c.Owner.(int)]++
		r.onCall(r.served.Add(1))
		c.Write(b[:1]) // the other end of the pair becomes readable
		var err error
		if waiting, err = c.Wait(time.Minute); err != nil {
			return
		}
	}
}

func (r *ring) start(t *testing.T, onCall func(n int64)) {
	t.Helper()
	r.onCall = onCall
	var all []*Conn
	for i := range ringPairs {
		near, far := pair(t)
		for _, end := range []*net.TCPConn{near, far} {
			c, err := r.group.Adopt(end)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			c.Owner = i
			if waiting, err := c.Wait(time.Minute); !waiting {
				t.Fatal(err)
			}
			all = append(all, c)
		}
	}
	for i := 0; i < len(all); i += 2 {
		io.WriteString(all[i], "x")
	}
}

// Another goroutine runs soon after it becomes runnable, although the loop always has connections to serve.
// Without the pause of the leader it waits for 10 ms, which are thousands of calls. A machine that takes the processor
// away meanwhile only adds calls, so the least of some tries counts.
func TestLoop_BusyLoopLetsOtherGoroutinesRun(t *testing.T) {
	const start, maxCalls = 1000, 8 * batchSize
	for name, open := range map[string]func(t *testing.T, r *ring, ran func()) (trigger func()){
		"parked in Read": func(t *testing.T, r *ring, ran func()) func() {
			c, far := adopt(t, r.group)
			go func() { c.Read(make([]byte, 1)); ran() }()
			awaitParked(t, c, &c.in)
			return func() { io.WriteString(far, "x") }
		},
		"in Go's network poller": func(t *testing.T, _ *ring, ran func()) func() {
			near, far := pair(t)
			reads := make(chan struct{})
			go func() { close(reads); near.Read(make([]byte, 1)); ran() }()
			<-reads
			return func() { io.WriteString(far, "x") }
		},
		"new": func(_ *testing.T, _ *ring, ran func()) func() {
			return func() { go ran() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			least := int64(math.MaxInt64)
			for range 5 {
				r, ranAt := openRing(t), make(chan int64, 1)
				trigger := open(t, r, func() { ranAt <- r.served.Load() })
				r.start(t, func(n int64) {
					if n == start {
						trigger()
					}
				})
				least = min(least, receive(t, ranAt)-start)
				r.group.Close()
			}
			if least > maxCalls {
				t.Errorf("it runs after %d calls of Serve, want at most %d", least, maxCalls)
			}
		})
	}
}

// Connections that are always readable are served about equally often. A leader that loses its processor in the middle
// of its batch is relieved, which moves some turns.
func TestLoop_ServesConnectionsInTurn(t *testing.T) {
	const total = 100 * ringPairs
	r, result := openRing(t), make(chan [ringPairs]int64, 1)
	r.start(t, func(n int64) {
		if n == total {
			result <- r.calls
		}
	})
	calls := receive(t, result)
	if least, most := slices.Min(calls[:]), slices.Max(calls[:]); most > 2*least {
		t.Errorf("a connection is served %d times, another one %d times", most, least)
	}
}
