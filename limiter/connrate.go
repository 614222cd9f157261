package limiter

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// ConnRate limits the requests on one connection. It lives in the connection's own state, so that no two connections
// share memory. Its zero value limits nothing. Copies share one bucket.
type ConnRate struct {
	bucket *rate.Limiter
}

// NewConnRate returns a ConnRate of perSecond requests, burst of them at once (at least 1), full at first.
// A perSecond that is not positive limits nothing.
func NewConnRate(perSecond float64, burst int) ConnRate {
	if !(perSecond > 0) { // nor NaN
		return ConnRate{}
	}
	return ConnRate{rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))}
}

// Allow takes one request at t, which must not lie before an earlier call's. If there is none it reports how long it
// takes until there is one, and has consumed nothing.
func (c ConnRate) Allow(t time.Time) (wait time.Duration, ok bool) {
	if c.bucket == nil || c.bucket.AllowN(t, 1) {
		return 0, true
	}
	missing := max(1-c.bucket.TokensAt(t), 0)
	seconds := missing / float64(c.bucket.Limit())
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64, false
	}
	// Round up: a client told to come back too early is rejected twice.
	return time.Duration(math.Ceil(seconds*float64(time.Second))) + 1, false
}
