package proxy

import (
	"strings"
	"testing"
	"time"

	"sluice/proxy/reject"
)

// A buyer who had no response asks again. To that buyer a limit, or a ledger that cannot be reached, must not say that
// there is no order: the order has not been looked up.
func TestRejection_DeniesAnOrderOnlyIfItWasLookedUp(t *testing.T) {
	for reason, want := range map[reject.Reason]bool{
		reject.StockError: false, reject.Concurrency: false, reject.Paused: false,
		reject.Ended: false, reject.SoldOut: true, reject.UnknownSKU: true,
	} {
		o, ledger := reserving(&recorder{})
		ledger.answer = Reservation{Reason: reason}
		if _, body, _ := handleOne(t, o, buying); deniesOrder(body) != want || !strings.Contains(body, reason.String()) {
			t.Errorf("%v: it must deny an order: %v: %s", reason, want, body)
		}
	}
	for _, accept := range []string{"text/html", "application/json"} {
		o, _ := reserving(&recorder{})
		o.Windows = fullWindow{}
		_, body, _ := handleOne(t, o, strings.Replace(buying, "Host: shop\r\n", "Host: shop\r\nAccept: "+accept+"\r\n", 1))
		if deniesOrder(body) || !strings.Contains(body, "try again in a moment") {
			t.Errorf("%s: %s", accept, body)
		}
	}
}

// A pause and an end come from the schedule before the ledger is asked. An order of before may have been placed.
func TestRejection_PausedAndEndedNeverDenyAReservedOrder(t *testing.T) {
	for _, reason := range []reject.Reason{reject.Paused, reject.Ended} {
		for _, raw := range []string{buying, strings.Replace(buying, "Idempotency-Key: mine\r\n", "", 1)} {
			o, _ := reserving(&recorder{})
			o.Schedule = scheduleFunc(func(string, bool) (reject.Reason, time.Duration) { return reason, 0 })
			_, body, _ := handleOne(t, o, raw)
			if deniesOrder(body) || !strings.Contains(body, "This request has placed no new order.") {
				t.Errorf("%v: %s", reason, body)
			}
		}
	}
}

// fullWindow is a window that is full.
type fullWindow struct{}

func (fullWindow) Acquire(int64, []byte) (time.Duration, bool) { return 0, false }
func (fullWindow) Peek(int64, []byte) (time.Duration, bool)    { return 0, true }
