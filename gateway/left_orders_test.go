package gateway

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
)

// Another instance accepts an order after this one has looked for some, and ends.
func TestLeftOrders_AreFoundWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues := false
		s, left := storetest.Ledger(t), &leftOrders{found: make(chan struct{}, 1), queues: func() bool { return queues }}
		testkit.Must[ledger.Stock](t)(s.SetTotal(t.Context(), "1", 10, 0))
		find := func() bool {
			left.find(t.Context(), s, []string{"1"}, slog.New(slog.DiscardHandler))
			select {
			case <-left.found:
				return true
			default:
				return false
			}
		}
		if find() || left.waiting.Load() {
			t.Error("there are none")
		}
		now, codes := time.Now(), make([]ledger.Code, 1)
		_, err := s.Reserve(t.Context(), "1", 0, now.UnixMilli(), now.Add(time.Hour).UnixMilli(), []ledger.Item{{
			Serial: "a", Quantity: 1, Request: ledger.NewRequest(now.Add(time.Hour).UnixMilli(), "data")}}, codes)
		if err != nil || codes[0] != ledger.Held {
			t.Fatal(codes, err)
		}
		if time.Sleep(seekLeft - time.Second); find() { // of synctest
			t.Error("Redis is asked too often")
		}
		queues = true
		if time.Sleep(time.Second); find() || left.waiting.Load() { // of synctest
			t.Error("a route has orders wait, and is going to deliver them")
		}
		queues = false
		if !find() || !left.waiting.Load() {
			t.Error("it is not found")
		}
		left.delivered.Store(true)
		if time.Sleep(time.Hour); find() { // of synctest
			t.Error("it is sought although it is delivered")
		}
	})
}
