package redistest

import (
	"context"
	"testing"

	"sluice/internal/testkit"
)

func TestSentinel_ReplicaFollowsAKilledMasterWithWhatItHad(t *testing.T) {
	testkit.Nightly(t, "a fail-over by the clock of sentinels")
	t.Parallel()
	w := Sentinel(t)
	ctx := context.Background()
	old := w.Master()
	if old != w.Servers[0] {
		t.Fatal("the first server is not the master")
	}
	if err := old.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := old.Client.Wait(ctx, 2, patience).Val(); n != 2 {
		t.Fatalf("%d replicas have it", n)
	}
	old.Kill()
	if v := w.Successor(old).Client.Get(ctx, "k").Val(); v != "v" {
		t.Fatalf("the successor has %q", v)
	}
}
