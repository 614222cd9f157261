package redistest

import (
	"context"
	"testing"

	"sluice/internal/testkit"
)

func TestCluster_ReplicaOfAKilledMasterGetsItsSlots(t *testing.T) {
	testkit.Nightly(t, "an election by the clock of a cluster")
	t.Parallel()
	c := Cluster(t, 3, 1)
	client := c.Client()
	ctx := context.Background()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := client.Set(ctx, key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const slot = 7000 // of the second master
	if c.Owner(slot) != c.Masters[1] {
		t.Fatal("the slots are not shared as they should be")
	}
	await(t, "the replica has it", func() bool { return c.Replicas[0].Client.DBSize(ctx).Val() > 0 })
	c.Masters[1].Kill()
	next := c.Successor(0)
	if c.Owner(slot) != next || next.Client.DBSize(ctx).Val() == 0 {
		t.Fatal("the slot is another node's")
	}
}

func TestCluster_MovedSlotTakesItsKeysWithIt(t *testing.T) {
	t.Parallel()
	c := Cluster(t, 3)
	client := c.Client()
	ctx := context.Background()
	for _, key := range []string{"{1001}:s", "{1001}:r", "{1001}:u", "{1001}:x"} {
		if err := client.Set(ctx, key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	slot := int(client.ClusterKeySlot(ctx, "{1001}:s").Val())
	to := c.Masters[0]
	if to == c.Owner(slot) {
		to = c.Masters[1]
	}
	steps := 0
	c.Move(slot, to, func() { steps++ })
	if steps != 2 || c.Owner(slot) != to || client.Get(ctx, "{1001}:u").Val() != "{1001}:u" {
		t.Fatalf("%d steps", steps)
	}
}
