package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"
)

// The processors of a machine that is shared with others change their speed by half within minutes: what is measured in
// one of them cannot be held against what was measured in another. So each measurement comes between two looks at a
// yardstick, a piece of work that is always the same and of the kind that gates do: messages over the loopback
// interface, and reads of memory that few caches hold, on all cores at once. Reports give processor time as it would
// have been at the yardstick's median.
const (
	yardLooks = 5                     // of which the best counts: what disturbs for a moment is not the machine's speed
	yardSpan  = 15 * time.Millisecond // of each, on each core
	yardTurns = 64                    // between two looks at the clock
	yardBytes = 256                   // of a message
	yardField = 4 << 20               // words of memory
	yardReads = 16                    // for each message
)

// referenceLoad is what the work is done on.
type referenceLoad struct {
	pairs [][2]net.Conn // one a core
	field []uint64
}

func newYardstick() (*referenceLoad, error) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer door.Close()
	y := &referenceLoad{field: make([]uint64, yardField)}
	for i := range y.field {
		y.field[i] = rand.Uint64()
	}
	for range runtime.NumCPU() {
		here, err := net.Dial("tcp", door.Addr().String())
		if err != nil {
			return nil, errors.Join(err, y.close())
		}
		there, err := door.Accept()
		if err != nil {
			return nil, errors.Join(err, here.Close(), y.close())
		}
		y.pairs = append(y.pairs, [2]net.Conn{here, there})
	}
	return y, nil
}

func (y *referenceLoad) close() (err error) {
	for _, p := range y.pairs {
		err = errors.Join(err, p[0].Close(), p[1].Close())
	}
	return err
}

// measure does the work for a while, and returns what a turn of it costs at best, in µs of a processor.
func (y *referenceLoad) measure() (best float64, err error) {
	best = math.Inf(1)
	for range yardLooks {
		turn, err := y.once()
		if err != nil {
			return 0, fmt.Errorf("look at the yardstick: %w", err)
		}
		best = min(best, turn)
	}
	return best, nil
}

func (y *referenceLoad) once() (float64, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var used time.Duration
	var turns int
	var failed error
	for core := range y.pairs {
		all.Go(func() {
			u, n, err := y.work(core)
			mu.Lock()
			defer mu.Unlock()
			used, turns, failed = used+u, turns+n, errors.Join(failed, err)
		})
	}
	all.Wait()
	return inMicros(used) / float64(max(turns, 1)), failed
}

// measured has something measured between two looks.
func (y *referenceLoad) measured(what func() (cost, error)) (cost, error) {
	before, err := y.measure()
	if err != nil {
		return cost{}, err
	}
	c, err := what()
	if err != nil {
		return c, err
	}
	after, err := y.measure()
	c.Yardstick = (before + after) / 2
	return c, err
}

// levelled are the spots with processor time as it would have been at the yardstick's median. Rounds without a look
// stay as they are.
func levelled(spots []spot) []spot {
	var all []float64
	for _, o := range spots {
		for _, c := range o.Rounds {
			if c.Yardstick > 0 {
				all = append(all, c.Yardstick)
			}
		}
	}
	usual, level := middle(all), slices.Clone(spots)
	for i, o := range level {
		level[i].Rounds = slices.Clone(o.Rounds)
		for j := range level[i].Rounds {
			if c := &level[i].Rounds[j]; c.Yardstick > 0 {
				c.Gates, c.Redis = c.Gates*usual/c.Yardstick, c.Redis*usual/c.Yardstick
			}
		}
	}
	return level
}

// work sends messages to and fro on one thread, which never waits: what was written is there to be read.
func (y *referenceLoad) work(core int) (used time.Duration, turns int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := ofThisThread()
	if err != nil {
		return 0, 0, err
	}
	message, at := make([]byte, yardBytes), uint64(core)
	for begin := time.Now(); time.Since(begin) < yardSpan; turns += yardTurns {
		for range yardTurns {
			for way := range 2 {
				if _, err := y.pairs[core][way].Write(message); err != nil {
					return 0, 0, err
				}
				if _, err := io.ReadFull(y.pairs[core][1-way], message); err != nil {
					return 0, 0, err
				}
			}
			for range yardReads {
				at += y.field[at%yardField]
			}
			message[0] = byte(at)
		}
	}
	after, err := ofThisThread()
	return after - before, turns, err
}
