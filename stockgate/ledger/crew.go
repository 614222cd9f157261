package ledger

import (
	"slices"
	"sync"
)

// crew are the goroutines that carry orders and settlements. One that is free does the next job, the one that was busy last
// first: its stack is as deep as a call needs and warm, where a new one would have to grow. The zero value is ready for use.
// Who is free keeps nothing but that.
type crew struct {
	all sync.WaitGroup

	mu   sync.Mutex
	free []chan func() // at most mostFree
	idle int           // so many of them, from the first on, were not needed since tire
	over bool          // nobody stays
}

// mostFree bounds the stacks that are kept for nobody, of 4 to 16 KiB each.
const mostFree = 256

// do has job done by somebody else than the caller.
func (w *crew) do(job func()) {
	w.mu.Lock()
	n := len(w.free) - 1
	if n < 0 {
		w.mu.Unlock()
		w.all.Go(func() { w.run(job) })
		return
	}
	next := w.free[n]
	w.free[n], w.free = nil, w.free[:n]
	w.idle = min(w.idle, n)
	w.mu.Unlock()
	next <- job // never blocks: there is room for one, and it was free
}

// run does one job after the other, until nobody needs it.
func (w *crew) run(job func()) {
	next := make(chan func(), 1)
	for job != nil {
		job()
		if !w.stay(next) {
			return
		}
		job = <-next
	}
}

func (w *crew) stay(next chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || len(w.free) == mostFree {
		return false
	}
	w.free = append(w.free, next)
	return true
}

// tire ends those whom nobody has needed since it was called last.
func (w *crew) tire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(w.idle)
	w.idle = len(w.free)
}

// end ends the first n who are free. mu is held.
func (w *crew) end(n int) {
	for _, next := range w.free[:n] {
		close(next)
	}
	w.free = slices.Delete(w.free, 0, n)
}

// dismiss lets nobody stay any more, and returns when all have ended, after whatever they have to do.
func (w *crew) dismiss() {
	w.mu.Lock()
	w.over = true
	w.end(len(w.free))
	w.mu.Unlock()
	w.all.Wait()
}
