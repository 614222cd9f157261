package limiter

import "sync/atomic"

// BodyMemory bounds what many request bodies hold together, in bytes. What one may take depends on its size, so that
// large bodies, however slowly they come, leave room for small ones:
//
//   - A body up to TinyBody bytes may take memory until all of it is in use.
//   - A body up to SmallBody bytes may take memory while a quarter of it stays free.
//   - A larger one may take memory while half of it stays free.
//
// It is safe for concurrent use.
type BodyMemory struct {
	used *atomic.Int64
	size int64
}

// The sizes of bodies that set them apart, in bytes.
const (
	TinyBody  = 1 << 10
	SmallBody = 16 << 10
)

// NewBodyMemory makes a budget of size bytes, of which used are in use. Several budgets may share used: a new size then
// takes over what bodies hold already.
func NewBodyMemory(used *atomic.Int64, size int64) BodyMemory { return BodyMemory{used, size} }

// share is how much may be in use once a body has grown to size bytes.
func (m *BodyMemory) share(size int64) int64 {
	switch {
	case size <= TinyBody:
		return m.size
	case size <= SmallBody:
		return m.size / 4 * 3
	}
	return m.size / 2
}

// Grow reserves what a body needs to grow from held to size bytes, and reports whether there was so much.
func (m *BodyMemory) Grow(held, size int64) bool { return m.grow(held, size, m.share(size)) }

// GrowSlow is Grow for a body that may come as slowly as its client likes: it takes memory while half of it stays free.
func (m *BodyMemory) GrowSlow(held, size int64) bool { return m.grow(held, size, m.size/2) }

// grow reserves memory while most bytes of it are in use at most.
func (m *BodyMemory) grow(held, size, most int64) bool {
	for {
		used := m.used.Load()
		if used+size-held > most {
			return false
		}
		if m.used.CompareAndSwap(used, used+size-held) {
			return true
		}
	}
}

// Release gives back what a body held. For 0 bytes it writes nothing.
func (m *BodyMemory) Release(held int64) {
	if held > 0 {
		m.used.Add(-held)
	}
}
