package ledger

import (
	"testing"
)

// Who resumes a sale that was paused vouches for nothing: what is lost meanwhile is not known to anybody yet.
func TestResumingDoesNotOpenWhatThisVeryCallFindsLost(t *testing.T) {
	server, a := durable(t)
	takes(t, a, "a")
	kept := snapshotOf(t, server, "1001")
	takes(t, a, "lost")
	kept.restore(t, server)
	s := must[Stock](t)(a.SetState(t.Context(), "1001", On))
	want(t, "state that is told", s.State, Frozen)
	frozen(t, a, lostVersion)
	code, _ := takes(t, a, "after")
	want(t, "after", code, NotOnSale)
	must[Stock](t)(a.SetState(t.Context(), "1001", On)) // somebody has looked
	code, _ = takes(t, a, "reconciled")
	want(t, "reconciled", code, Held)
}

func TestResumingDoesNotVouchForAnotherServer(t *testing.T) {
	server, a := durable(t)
	b := connect(t, server, texts())
	takes(t, a, "a")
	takes(t, b, "b")
	must[Stock](t)(a.SetState(t.Context(), "1001", Paused))
	kept := snapshotOf(t, server, "1001")
	do(t, b, Adopt, "lost")
	kept.restore(t, server)
	restart(t, server)
	until(t, "it is resumed", func() bool {
		_, err := a.SetState(t.Context(), "1001", On)
		return err == nil
	})
	_, h := takes(t, a, "a2")
	want(t, "before the other has looked", h.State, Doubted)
	must[[]Record](t)(sweepSoon(t, b))
	want(t, "when it has", stockOf1001(t, b).State, Frozen)
}
