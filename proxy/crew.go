package proxy

import "sync"

// crew are the goroutines that serve connections. One that is free serves the next connection that wakes up, the one that
// was busy last first: its stack is as deep as the HTTP library needs and warm, where a new one would have to grow.
type crew struct {
	work func(*Conn)

	mu   sync.Mutex
	free []chan *Conn // at most mostFree
	over bool         // nobody stays
}

// mostFree bounds the stacks that are kept for nobody, of up to 32 KiB each.
const mostFree = 256

// serve has c served by somebody else than the caller.
func (w *crew) serve(c *Conn) {
	w.mu.Lock()
	n := len(w.free) - 1
	if n < 0 {
		w.mu.Unlock()
		go w.run(c)
		return
	}
	next := w.free[n]
	w.free[n], w.free = nil, w.free[:n]
	w.mu.Unlock()
	next <- c // never blocks: there is room for one, and it was free
}

// run serves one connection after the other, until enough others are free.
func (w *crew) run(c *Conn) {
	next := make(chan *Conn, 1)
	for ok := true; ok; c, ok = <-next {
		w.work(c)
		if !w.stay(next) {
			return
		}
	}
}

func (w *crew) stay(next chan *Conn) bool {
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
