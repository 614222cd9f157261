package orders

import (
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/storetest"
)

// The last attempt of a requeued order may end with its reservation. What the upstream does not know then is not
// released before queue.grace is over: a clock that is as late as that may still make the order.
func TestLedger_WaitsForTheGraceOfTheQueue(t *testing.T) {
	for grace, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 30 * time.Second: 30 * time.Second} {
		c := &config.Config{}
		c.Queue.Grace = grace
		options, err := (&Ledger{config: c, Store: storetest.Ledger(t)}).options(t.Context())
		if err != nil || options.Grace != want {
			t.Errorf("queue.grace %v: %v, %v", grace, options.Grace, err)
		}
	}
}
