package gateway

import (
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
)

// An override of the fleet changes the other instances, whatever an override of this one alone says: the answer must
// not say that its value is in force already and that nothing changes.
func TestFleet_OverrideBelowOneOfThisInstanceChangesTheOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := joined(t, server, ""), joined(t, server, "")
	const key = "limits.concurrency.max_in_flight"
	for _, own := range []float64{5, 7} {
		if _, err := a.controller.Override(t.Context(), admin.Override{Key: key, Value: own,
			Until: time.Now().Add(time.Hour), Scope: admin.ScopeInstance}); err != nil {
			t.Fatal(err)
		}
		before, _ := b.running.Load().ValueOf(key)
		o := a.controller.must(t, key, 7.0)
		if o.Scope != admin.ScopeFleet {
			t.Fatalf("%+v", o)
		}
		if o.Already {
			t.Errorf("this instance has its own %v, another has %v: an override of the fleet to 7 says that 7 was in force "+
				"already", own, before)
		}
		if _, err := a.controller.Undo(t.Context(), o.ID); err != nil {
			t.Fatal(err)
		}
	}
}
