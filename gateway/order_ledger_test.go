package gateway

import (
	"strings"
	"testing"
	"time"

	"sluice/config"
)

// While the ledger is closed the log tells what becomes of orders: in observe mode they are forwarded.
func TestLedger_LogTellsWhatBecomesOfOrdersWhileItIsClosed(t *testing.T) {
	for mode, want := range map[string]string{"enforce": "rejected with 503", "observe": "are forwarded"} {
		o := &orderLedger{}
		o.now.Store(&ledgerRules{Config: &config.Config{Mode: mode}})
		if got := o.whileClosed(); !strings.Contains(got, want) {
			t.Errorf("%s: %q", mode, got)
		}
	}
}

// The last attempt of a requeued order may end with its reservation. What the upstream does not know then is not
// released before queue.grace is over: a clock that is as late as that may still make the order.
func TestLedger_WaitsForTheGraceOfTheQueue(t *testing.T) {
	for grace, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 30 * time.Second: 30 * time.Second} {
		c := &config.Config{}
		c.Queue.Grace = grace
		o := &orderLedger{}
		o.now.Store(&ledgerRules{Config: c})
		if options, _ := o.settings(); options.Grace != want {
			t.Errorf("queue.grace %v: %v", grace, options.Grace)
		}
	}
}
