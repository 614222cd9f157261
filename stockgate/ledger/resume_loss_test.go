package ledger

import (
	"testing"

	"sluice/internal/testkit"
)

// Who resumes a sale that was paused vouches for nothing: what is lost meanwhile is not known to anybody yet.
func TestResumeLoss_ResumingDoesNotOpenWhatThisVeryCallFindsLost(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	takes(t, a, "a")
	kept := snapshotOf(t, server, "1001")
	takes(t, a, "lost")
	kept.restore(t, server)
	s := testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On))
	testkit.Want(t, "state that is told", s.State, Frozen)
	frozen(t, a, lostVersion)
	code, _ := takes(t, a, "after")
	testkit.Want(t, "after", code, NotOnSale)
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On)) // an operator has looked
	code, _ = takes(t, a, "reconciled")
	testkit.Want(t, "reconciled", code, Held)
}

func TestResumeLoss_ResumingDoesNotVouchForAnotherServer(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", Paused))
	kept := snapshotOf(t, server, "1001")
	finishOne(t, b, Adopt, "lost")
	kept.restore(t, server)
	restart(t, server)
	testkit.Eventually(t, "it is resumed", func() bool {
		_, err := a.SetState(t.Context(), "1001", On)
		return err == nil
	})
	_, h := takes(t, a, "a2")
	testkit.Want(t, "before the other has looked", h.State, Verifying)
	testkit.Must[[]Record](t)(sweepSoon(t, b))
	testkit.Want(t, "when it has", stockIn(t, b).State, Frozen)
}
