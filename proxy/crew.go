package proxy

import (
	"sync"

	"sluice/proxy/http1/eventloop"
)

// crew are the goroutines that serve connections. One that is free does the next job, the one that was busy last first:
// its stack is as deep as a request needs and warm, where a new one would have to grow.
type crew struct {
	work func(job)

	mu   sync.Mutex
	free []chan job // at most mostFree
	over bool       // nobody stays
}

// mostFree bounds the stacks that are kept for nobody, of up to 32 KiB each.
const mostFree = 256

// job is a connection that has woken up, or else a turn to lead a loop.
type job struct {
	conn *Conn
	turn eventloop.Turn
}

// do has j done by somebody else than the caller.
func (w *crew) do(j job) {
	w.mu.Lock()
	n := len(w.free) - 1
	if n < 0 {
		w.mu.Unlock()
		go w.run(j)
		return
	}
	next := w.free[n]
	w.free[n], w.free = nil, w.free[:n]
	w.mu.Unlock()
	next <- j // never blocks: there is room for one, and it was free
}

// run does one job after the other, until enough others are free.
func (w *crew) run(j job) {
	next := make(chan job, 1)
	for ok := true; ok; j, ok = <-next {
		w.work(j)
		if !w.stay(next) {
			return
		}
	}
}

func (w *crew) stay(next chan job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || len(w.free) == mostFree {
		return false
	}
	w.free = append(w.free, next)
	return true
}

// dismiss ends those who are free, and whoever becomes it.
func (w *crew) dismiss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, next := range w.free {
		close(next)
	}
	w.free = nil
}
