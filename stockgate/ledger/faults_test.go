package ledger

import (
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// withOrder returns a reserver that holds the order "a", its store and its log.
func withOrder(t *testing.T) (d *Reserver, s *fakeStore, said *testkit.Log) {
	o := testOptions()
	said, s = logged(&o), fakeStoreOf(ledgertest.SKU, 5)
	d = opened(t, o, s, nil)
	wants(t, "the first order", d.buy("a", "a"), protocol.Held)
	return d, s, said
}

// A settlement is on its way when the store stops to take orders. Its answer, which comes later, is no sign that the
// store takes them again; that of a later call is.
func TestFaults_AnswerToAnEarlierCallEndsNone(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, said := withOrder(t)
		var broken atomic.Bool
		broken.Store(true)
		s.set(func(op string, after bool) error {
			switch {
			case op == "finish" && after:
				time.Sleep(time.Second)
			case op == "reserve" && !after && broken.Load():
				return ledgertest.ErrNetwork
			}
			return nil
		})
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "a"}, protocol.Confirm)
		time.Sleep(100 * time.Millisecond)
		d.buy("b", "b")
		time.Sleep(2 * time.Second)
		if faults, ends := said.Count("takes no orders"), said.Count("takes orders again"); faults != 1 || ends != 0 {
			t.Errorf("%d faults and %d ends are logged:\n%s", faults, ends, said.String())
		}
		broken.Store(false)
		wants(t, "an order after the fault", d.buy("c", "c"), protocol.Held)
		if n := said.Count("takes orders again"); n != 1 {
			t.Errorf("the end of the fault is logged %d times:\n%s", n, said.String())
		}
	})
}

// A settlement is lost on its way, and found out to be only after a later call was answered: the store takes orders.
func TestFaults_FailureOfAnEarlierCallIsNone(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, said := withOrder(t)
		var lost atomic.Bool
		s.set(func(op string, after bool) error {
			if op == "finish" && !after && !lost.Swap(true) {
				time.Sleep(200 * time.Millisecond)
				return ledgertest.ErrNetwork
			}
			return nil
		})
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "a"}, protocol.Confirm)
		time.Sleep(100 * time.Millisecond)
		wants(t, "an order that is sent later", d.buy("b", "b"), protocol.Held)
		time.Sleep(2 * time.Second)
		if n := said.Count("takes no orders"); n != 0 || !lost.Load() {
			t.Errorf("%d faults are logged:\n%s", n, said.String())
		}
	})
}
