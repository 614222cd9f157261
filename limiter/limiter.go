// Package limiter answers one question, fast and without I/O: may this happen now?
//
// Its decisions are exact: no window, queue or count ever exceeds its max, whatever the callers' clocks, threads and
// retries do. They are strict: where memory is too small to tell two SKUs apart, the error is a rare false rejection,
// never one admission too many. A rejection has consumed nothing and, for windows and slots, has written no memory that
// another core reads. Memory is fixed by the configuration.
//
// It reads no clock; the caller passes now, in nanoseconds of a monotonic clock of its own that starts at 0 or later.
// Only [ConcurrencyLimiter] waits, on a timer. A max of 0 is no cap, everywhere. The package starts no goroutine, logs
// nothing, knows neither HTTP nor Redis, and leaves to its caller whether a rejection is enforced or only observed.
package limiter

// Verdict is the answer of the limits that can reject for more than one reason. Admitted is the zero value.
type Verdict uint8

const (
	Admitted   Verdict = iota
	QueueFull          // every place is taken, and so is every place in the queue
	TimedOut           // waited in the queue for as long as was allowed
	Gone               // waited in the queue, and had left when the turn came
	TotalFull          // no more connections in all
	ClientFull         // no more connections of this client
)

var verdicts = [...]string{"admitted", "queue full", "timed out", "gone", "total full", "client full"}

// String names the verdict for logs and tests.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "unknown"
}

// cacheLine keeps what one core writes away from what another reads.
type cacheLine [64]byte
