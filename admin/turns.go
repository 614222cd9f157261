package admin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// The store has connections for the sale's orders; requests of operators and of the shop share a few of them, however
// many come at once.
const (
	atOnce   = 4
	turnWait = 5 * time.Second // the longest line is served well within it
)

// requestSlots lets a few requests at a time reach the store, in no order; the others wait.
type requestSlots chan struct{}

func newRequestSlots() requestSlots { return make(requestSlots, atOnce) }

func (t requestSlots) handler(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		readBody(r)
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

// readBody waits for what a request says, all but of a long list: nobody has a turn while his line is slow.
func readBody(r *http.Request) {
	body := r.Body
	first, _ := io.ReadAll(io.LimitReader(body, maxBody)) // who reads on meets the error again
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), body), body}
}
