package admin

import (
	"context"
	"net/http"
	"time"
)

// Finding is what one check before the sale came to.
type Finding struct {
	Result string `json:"status"` // "ok" "warning" "fail"
	About  string `json:"check"`
	Says   string `json:"message"` // with the way out
}

// Preflight runs the checks before a sale. It promises that they run once at a time, however many ask: those who come
// meanwhile, and a moment later, hear the same. It is safe for concurrent use, and outlives a reload.
type Preflight struct {
	check func(ctx context.Context) []Finding
	turn  chan struct{}
	last  preflightResult // of who has the turn
}

// preflightResult is the answer.
type preflightResult struct {
	At       time.Time `json:"at"`
	OK       bool      `json:"ok"` // nothing failed
	Findings []Finding `json:"findings"`
}

const (
	preflightWithin = 15 * time.Second // the line included
	preflightFresh  = 3 * time.Second  // for so long nothing is asked again
)

// NewPreflight returns a Preflight that runs check.
func NewPreflight(check func(ctx context.Context) []Finding) *Preflight {
	return &Preflight{check: check, turn: make(chan struct{}, 1)}
}

func (a *API) preflight(w http.ResponseWriter, r *http.Request) (any, error) {
	if a.Preflight == nil {
		return nil, statusError{http.StatusNotFound, noGate}
	}
	ctx, cancel := context.WithTimeout(r.Context(), preflightWithin)
	defer cancel()
	done, ok := a.Preflight.run(ctx)
	if !ok {
		w.Header().Set("Retry-After", "5")
		return nil, statusError{http.StatusServiceUnavailable, "checks run already, and take long; ask again"}
	}
	return done, nil
}

// run checks, or waits for who does; ok is false when ctx ends before.
func (p *Preflight) run(ctx context.Context) (done preflightResult, ok bool) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return done, false
	}
	if time.Since(p.last.At) < preflightFresh {
		return p.last, true
	}
	done = preflightResult{OK: true, Findings: p.check(ctx)}
	if ctx.Err() == nil { // what was cut short says nothing of what was tried
		done.At = time.Now().UTC()
		for _, f := range done.Findings {
			done.OK = done.OK && f.Result != "fail"
		}
		p.last = done
		return done, true
	}
	return done, false
}
