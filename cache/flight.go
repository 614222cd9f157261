package cache

import (
	"sync"

	"sluice/upstream"
)

// flights are the fetches that are on their way. There are never more than requests in the gate.
type flights struct {
	mu sync.Mutex
	of map[string]*flight
}

// flight is one fetch, for all who want the same.
type flight struct {
	done    chan struct{}
	answer  *answer // nil = nothing that others may have
	outcome upstream.Outcome
}

// join returns the flight of key; leads is whether it begins with this call.
func (fs *flights) join(key []byte) (f *flight, leads bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.of[string(key)]; ok {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	fs.of[string(key)] = f
	return f, true
}

// end tells all who wait what came.
func (fs *flights) end(key string, f *flight, got *answer, outcome upstream.Outcome) {
	f.answer, f.outcome = got, outcome
	fs.mu.Lock()
	delete(fs.of, key)
	fs.mu.Unlock()
	close(f.done)
}

// result is what came; done is false when nothing has yet.
func (f *flight) result() (got *answer, outcome upstream.Outcome, done bool) {
	select {
	case <-f.done:
		return f.answer, f.outcome, true
	default:
		return nil, upstream.Answered, false
	}
}
