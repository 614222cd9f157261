package ledger

import (
	"testing"
	"time"

	"sluice/internal/testkit"
)

// Below the store nobody repeats a call: only who carries the same serials again may, and who knows that an answer is
// missing.
func TestUnanswered_CallWhoseReplyWasSwallowedIsAnErrorAndNotRepeated(t *testing.T) {
	for name, fate := range map[string]int{"fin": swallowFIN, "rst": swallowRST, "stall": swallow} {
		t.Run(name, func(t *testing.T) {
			server, direct := onRedis(t)
			testkit.Must[Stock](t)(direct.SetTotal(t.Context(), "1001", 50, 0))
			m := between(t, server)
			r := through(t, m, server, 3*time.Second)
			testkit.Want(t, "connected", takeUnit(t, r, "first", "zoe"), Held)
			before := server.Calls("evalsha") + server.Calls("eval")
			m.dooms("lost", fate, 1)
			codes := make([]Code, 1)
			if _, err := r.Reserve(t.Context(), "1001", 0, 1, 1_000, []Item{{Serial: "lost", User: "zoe",
				Quantity: 1}}, codes); err == nil {
				t.Errorf("code %v came though the reply was swallowed: the call was repeated", codes)
			}
			testkit.Want(t, "calls", server.Calls("evalsha")+server.Calls("eval")-before, 1)
			testkit.Want(t, "swallowed", m.doomed.Load(), 1)
		})
	}
}
