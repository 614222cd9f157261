package admin

import (
	"context"
	"net/http"
	"time"
)

// The store has connections for the sale's orders; requests of operators and of the shop share a few of them, however
// many come at once.
const (
	atOnce   = 4
	turnWait = 5 * time.Second // the longest line is served well within it
)

// turns lets a few requests at a time reach the store, in no order; the others wait.
type turns chan struct{}

func newTurns() turns { return make(turns, atOnce) }

func (t turns) handler(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), turnWait)
		defer cancel()
		select {
		case t <- struct{}{}:
			defer func() { <-t }()
			next(w, r)
		case <-ctx.Done():
			w.Header().Set("Retry-After", "1")
			fail(w, http.StatusServiceUnavailable, "too many requests to the control API at once; nothing was done: come back")
		}
	}
}
