package queue

import (
	"sync"
	"sync/atomic"
)

// underway are the orders that this instance has handed out, until the store was told of them. It is safe for
// concurrent use.
type underway struct {
	answered atomic.Int64 // attempts that the upstream has answered, and of which the store is being told

	mu      sync.Mutex
	sending map[orderName]bool
}

type orderName struct{ sku, serial string }

// begin notes that an order is being delivered.
func (u *underway) begin(name orderName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sending[name] = true
}

// end notes that an order is decided, or that the store was told of its attempt: what follows is news of it no more.
func (u *underway) end(name orderName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.sending, name)
}

// has reports whether an order is being delivered.
func (u *underway) has(name orderName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sending[name]
}
