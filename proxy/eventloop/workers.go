//go:build linux && !noeventloop

package eventloop

import "sync"

// workers is a pool of goroutines that lead loops. The worker that became idle last gets the next leadership:
// its stack has the depth of a request already, whereas a new stack would have to grow.
type workers struct {
	work func(leadership)

	mu      sync.Mutex
	idle    []chan leadership // at most maxIdleWorkers
	closed  bool
	waiting sync.WaitGroup // workers that are idle
}

// maxIdleWorkers bounds the memory of idle stacks, which have up to 32 KiB each.
const maxIdleWorkers = 256

// assign gives t to an idle worker, or else to a new one. It does not block.
func (w *workers) assign(t leadership) {
	w.mu.Lock()
	n := len(w.idle) - 1
	if n < 0 {
		w.mu.Unlock()
		go w.run(t)
		return
	}
	next := w.idle[n]
	w.idle[n], w.idle = nil, w.idle[:n]
	w.mu.Unlock()
	next <- t // has room for one, and its worker is idle
}

// run serves leaderships one after the other, until enough other workers are idle or the pool closes.
func (w *workers) run(t leadership) {
	next := make(chan leadership, 1)
	for {
		w.work(t)
		if !w.enterIdle(next) {
			return
		}
		var ok bool
		t, ok = <-next
		w.waiting.Done()
		if !ok {
			return
		}
	}
}

func (w *workers) enterIdle(next chan leadership) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.idle) == maxIdleWorkers {
		return false
	}
	w.waiting.Add(1)
	w.idle = append(w.idle, next)
	return true
}

// close ends idle workers and waits for them. Workers that are busy end after their current leadership.
func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	for _, next := range w.idle {
		close(next)
	}
	w.idle = nil
	w.mu.Unlock()
	w.waiting.Wait()
}
