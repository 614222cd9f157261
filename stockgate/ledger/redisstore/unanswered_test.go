package redisstore

import (
	"testing"
	"time"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// Below the store nobody repeats a call: only who carries the same serials again may, and who knows that an answer is
// missing.
func TestUnanswered_CallWhoseReplyWasSwallowedIsAnErrorAndNotRepeated(t *testing.T) {
	for name, fate := range map[string]int{"fin": swallowFIN, "rst": swallowRST, "stall": swallow} {
		t.Run(name, func(t *testing.T) {
			server, direct := onRedis(t)
			ledgertest.Must[protocol.Stock](t)(direct.SetTotal(t.Context(), "1001", 50, 0))
			m := between(t, server)
			r := through(t, m, server, 3*time.Second)
			ledgertest.Want(t, "connected", ledgertest.Take(t, r, "first", "zoe"), protocol.Held)
			before := server.Calls("evalsha") + server.Calls("eval")
			m.dooms("lost", fate, 1)
			codes := make([]protocol.Code, 1)
			if _, err := r.Reserve(t.Context(), "1001", 0, 1, 1_000, []protocol.Item{{Serial: "lost", User: "zoe",
				Quantity: 1}}, codes); err == nil {
				t.Errorf("code %v came though the reply was swallowed: the call was repeated", codes)
			}
			ledgertest.Want(t, "calls", server.Calls("evalsha")+server.Calls("eval")-before, 1)
			ledgertest.Want(t, "swallowed", m.doomed.Load(), 1)
		})
	}
}
