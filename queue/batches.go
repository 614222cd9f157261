package queue

import "time"

// gathering tells until when a call waits, so that it is about several orders: what a call costs is divided among them.
// Few orders never wait. It is a batch.Pacer.
type gathering struct {
	since  time.Time
	orders int // that were in calls since
}

const (
	gatherFor = 10 * time.Millisecond
	several   = 4 // orders within gatherFor
)

// Count notes that a call was about n orders.
func (g *gathering) Count(now time.Time, n int) {
	if now.Sub(g.since) > gatherFor {
		g.since, g.orders = now, 0
	}
	if g.orders += n; g.orders >= several {
		g.since, g.orders = now.Add(gatherFor), 0
	}
}

// Pause is how long the next call waits.
func (g *gathering) Pause(now time.Time, full bool) time.Duration {
	if full {
		return 0
	}
	return g.since.Sub(now)
}
