package redisconn

import (
	"context"
	"net"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// clusterOverIPv6 runs two masters that know each other by ::1; the first has all slots.
func clusterOverIPv6(t *testing.T) (masters [2]*redistest.Server, addresses [2]string) {
	t.Helper()
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 here")
	} else {
		l.Close()
	}
	var bus [2]string
	for i := range masters {
		_, bus[i], _ = net.SplitHostPort(testkit.FreeAddress(t))
		masters[i] = redistest.Start(t, "--bind", "127.0.0.1", "::1", "--cluster-enabled", "yes", "--cluster-port", bus[i],
			"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no")
		_, port, _ := net.SplitHostPort(masters[i].Addr)
		addresses[i] = net.JoinHostPort("::1", port)
		tell(t, masters[i], "cluster", "set-config-epoch", i+1)
	}
	tell(t, masters[0], "cluster", "addslotsrange", 0, redistest.SlotCount-1)
	_, port, _ := net.SplitHostPort(addresses[1])
	tell(t, masters[0], "cluster", "meet", "::1", port, bus[1])
	testkit.Eventually(t, "a cluster over IPv6", func() bool {
		return known(masters[0], addresses[0]) && known(masters[1], addresses[0])
	})
	for _, m := range masters { // a busy machine must not make one of them count as gone
		tell(t, m, "config", "set", "cluster-node-timeout", 60_000)
	}
	return masters, addresses
}

// known reports whether a master says who has the slots, and knows the other.
func known(s *redistest.Server, owner string) bool {
	//lint:ignore SA1019 servers before 7.0 do not know CLUSTER SHARDS
	all, _ := s.Client.ClusterSlots(context.Background()).Result()
	info := s.Client.ClusterInfo(context.Background()).Val()
	return len(all) == 1 && all[0].Nodes[0].Addr == owner && strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, "cluster_known_nodes:2\r")
}

func tell(t *testing.T, s *redistest.Server, args ...any) {
	t.Helper()
	if err := s.Client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// Redis writes the address of a redirection without brackets.
func TestIPv6_QuestionFollowsItsSlotOverIPv6(t *testing.T) {
	t.Parallel()
	masters, addresses := clusterOverIPv6(t)
	l := overCluster(t, addresses[:1], nil)
	const key = "sluice:{1001}:s"
	if _, err := count(t.Context(), l, key); err != nil {
		t.Fatal(err)
	}
	id := func(s *redistest.Server) string { return s.Client.Do(t.Context(), "cluster", "myid").Val().(string) }
	tell(t, masters[1], "cluster", "setslot", redistest.Slot(Tag(key)), "importing", id(masters[0]))
	tell(t, masters[0], "cluster", "setslot", redistest.Slot(Tag(key)), "migrating", id(masters[1]))
	_, port, _ := net.SplitHostPort(addresses[1])
	tell(t, masters[0], "migrate", "::1", port, "", 0, 5000, "keys", key)
	if _, err := count(t.Context(), l, key); err != nil {
		t.Fatal("while the slot moves:", err)
	}
	tell(t, masters[1], "cluster", "setslot", redistest.Slot(Tag(key)), "node", id(masters[1]))
	tell(t, masters[0], "cluster", "setslot", redistest.Slot(Tag(key)), "node", id(masters[1]))
	if _, err := count(t.Context(), l, key); err != nil {
		t.Fatal("when the slot has moved:", err)
	}
	if n := masters[1].Client.Get(t.Context(), key).Val(); n != "3" {
		t.Fatalf("3 questions ran %s times", n)
	}
}
