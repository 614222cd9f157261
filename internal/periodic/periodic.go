// Package periodic calls a function again and again, and waits. It promises that calls do not overlap, and that none
// begins after the context has ended and was noticed. It does not start a goroutine: the caller owns the one that it
// runs in.
package periodic

import (
	"context"
	"time"
)

// Now calls do at once, and then as After does.
func Now(ctx context.Context, every time.Duration, do func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		do(ctx)
		if !wait(ctx, tick) {
			return
		}
	}
}

// After calls do each time that every has passed, until ctx ends. Ticks that a slow call misses are left out.
func After(ctx context.Context, every time.Duration, do func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for wait(ctx, tick) {
		do(ctx)
	}
}

// wait reports whether the tick came before ctx ended.
func wait(ctx context.Context, tick *time.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case <-tick.C:
		return true
	}
}

// Pause waits for d, unless ctx ends before: then it reports false.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 { // go1.26 may crash where two such timers fire in one synctest bubble, under the race detector
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
