package e2e

import (
	"os/exec"
	"testing"

	"sluice/internal/redistest"
)

// Two processes share an address and a ledger while one takes over: no shopper is left without an answer, and no unit.
func TestRestart_SuccessorSellsOnFromTheSameLedger(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	addresses, front := fixed(t)
	const units = 60
	old := reserves(t, r, units, addresses, shop.setting(), "limits.concurrency.max_in_flight = "+
		"8\nlimits.concurrency.max_queue = 1000\nlimits.concurrency.queue_timeout = \"1s\"")
	end := sale(2*units, front)
	soon(t, "some are sold", func() bool { return ledgerOf(t, r, "1001").sold > 5 })
	start(t, old.file, exec.Command(binary, "run", "--config", old.file, "--take-over"))
	old.terminate()
	if code := old.stopped(); code != 0 {
		t.Errorf("the old gate ended with exit code %d", code)
	}
	soon(t, "all is sold and decided", func() bool { a := ledgerOf(t, r, "1001"); return a.held == 0 && a.sold == units })
	end()
	if shop.booked() != units {
		t.Errorf("%d orders at the shop, want %d", shop.booked(), units)
	}
	shop.audit(t)
}
