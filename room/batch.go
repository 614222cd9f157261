package room

import "time"

const (
	batchEvery   = 10 * time.Millisecond // from the begin of a call to that of the next: 100 calls a second
	maxBatch     = 1000                  // questions of one call
	maxPending   = 50_000                // questions that wait for a call
	batchTimeout = time.Second           // of one call
)

// pacer keeps calls apart. A single question is asked at once. It is a batch.Pacer.
type pacer struct{ next time.Time }

// Pause is how long the next call waits.
func (p *pacer) Pause(now time.Time, _ bool) time.Duration { return p.next.Sub(now) }

// Count notes that a call begins.
func (p *pacer) Count(now time.Time, _ int) { p.next = now.Add(batchEvery) }
