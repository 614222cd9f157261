package ledger

import (
	"testing"

	"sluice/internal/testkit"
)

// Redis fails over without a release, of which the notification has told other instances. An order of one of them
// finds that out first. The SKU opens when all have told: no operator is needed.
func TestRestart_LossOfWhatIsOnlyHeardOpensByItself(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	a.Settle, b.Settle = 0, 0
	takes(t, b, "b")
	d := opened(t, testOptions(), a, nil)
	wants(t, "order", d.buy("", "first"), Held)
	takes(t, b, "b")
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "released", finishOne(t, b, Release, "b"), Changed)
	testkit.Eventually(t, "a has heard of it", func() bool {
		h, ok := d.Last("1001")
		return ok && h.Free == 4
	})
	kept.restore(t, server)
	restart(t, server)
	wants(t, "order", d.buy("", "second"), NotOnSale)
	takes(t, b, "b")
	testkit.Eventually(t, "it is open", func() bool {
		if len(b.Pending()) > 0 {
			tells(t, b)
		}
		takes(t, b, "b")
		return stockIn(t, b).State == On
	})
	testkit.Want(t, "released", statusOf(t, b, "b"), "X")
}
