package stockgate

import (
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

// replicated is a Redis that reads from a real replica of a real master.
func replicated(t *testing.T, bound time.Duration) (r *Redis, master, replica *redistest.Server) {
	t.Helper()
	master = redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica = redistest.Start(t, "--replicaof", host, port)
	r = dial(t, master, layouts()["counter"])
	o := RedisOptions{PoolSize: 2, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second, BreakerErrors: 20,
		BreakerPause: 50 * time.Millisecond}
	if err := r.ReadFrom(o, []string{replica.Addr}, bound); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the replica is read", func() bool { return r.Replicas()[0].Read })
	return r, master, replica
}

// leftIn is what is read of SKU 1001.
func leftIn(t *testing.T, r *Redis) int64 {
	t.Helper()
	out := make([]layout.Reading, 2)
	if err := r.Read(t.Context(), []string{"1001"}, out[:1]); err != nil {
		t.Fatal(err)
	}
	// as the poller reads
	if err := r.ReadUncached(t.Context(), []string{"1001", "1002"}, out); err != nil {
		t.Fatal(err)
	}
	return out[0].Left
}

func TestReplicas_AreReadAndNotWritten(t *testing.T) {
	t.Parallel()
	r, master, replica := replicated(t, time.Minute)
	if err := r.Set(t.Context(), "1001", 7); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the stock is read", func() bool { return leftIn(t, r) == 7 })
	gets := master.Calls("get") + master.Calls("mget")
	for range 20 {
		leftIn(t, r)
	}
	if n := master.Calls("get") + master.Calls("mget") - gets; n != 0 {
		t.Errorf("the master was read %d times", n)
	}
	if replica.Calls("get")+replica.Calls("mget") < 20 || replica.Calls("eval")+replica.Calls("incrby") != 0 {
		t.Error("the replica was not read, or asked to write")
	}
	var out [1]layout.Reading
	asked := replica.Calls("get") + replica.Calls("mget")
	if err := r.Read(FromMaster(t.Context()), []string{"1001"}, out[:]); err != nil || out[0].Left != 7 {
		t.Errorf("for an operator: %+v, %v", out[0], err)
	}
	if n := replica.Calls("get") + replica.Calls("mget"); n != asked {
		t.Error("an operator reads from a replica")
	}
}

// A replica whose link is cut knows less and less, also while nothing says so.
func TestReplicas_OneThatIsBehindIsNotRead(t *testing.T) {
	t.Parallel()
	r, master, replica := replicated(t, 2*time.Second)
	replica.Client.ConfigSet(t.Context(), "repl-timeout", "3600")
	replica.Pause() // it hangs: its answers come late, and what it knows is old
	testkit.Eventually(t, "it is not read", func() bool { return !r.Replicas()[0].Read })
	if err := r.Set(t.Context(), "1001", 3); err != nil {
		t.Fatal(err)
	}
	if n := leftIn(t, r); n != 3 {
		t.Errorf("%d left, want 3, of the master", n)
	}
	replica.Resume()
	testkit.Eventually(t, "it is read again", func() bool { return r.Replicas()[0].Read && leftIn(t, r) == 3 })
	_ = master
}

func TestReplicas_OneThatIsAwayIsMissedByNoRead(t *testing.T) {
	t.Parallel()
	r, _, replica := replicated(t, time.Minute)
	if err := r.Set(t.Context(), "1001", 5); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the stock is read", func() bool { return leftIn(t, r) == 5 })
	replica.Kill()
	for range 10 { // from the first read on
		if n := leftIn(t, r); n != 5 {
			t.Fatalf("%d left, want 5", n)
		}
	}
	testkit.Eventually(t, "it is told", func() bool {
		is := r.Replicas()[0]
		return !is.Read && strings.Contains(is.Fault, "cannot be reached")
	})
}

// A replica that was promoted has data of its own from then on, and the master of the configuration is read.
func TestReplicas_OneThatWasPromotedIsNotRead(t *testing.T) {
	t.Parallel()
	r, master, replica := replicated(t, time.Minute)
	replica.Client.Do(t.Context(), "replicaof", "no", "one")
	testkit.Eventually(t, "it is not read", func() bool {
		return strings.Contains(r.Replicas()[0].Fault, "is a master")
	})
	replica.Client.Set(t.Context(), "seckill:{1001}:stock", 99, 0)
	master.Client.Set(t.Context(), "seckill:{1001}:stock", 1, 0)
	if n := leftIn(t, r); n != 1 {
		t.Errorf("%d left, want 1, of the master", n)
	}
}

func TestReplicas_OfAnotherMasterIsNotRead(t *testing.T) {
	t.Parallel()
	r, _, replica := replicated(t, time.Minute)
	other := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(other.Addr)
	replica.Client.Do(t.Context(), "replicaof", host, port)
	testkit.Eventually(t, "it is not read", func() bool {
		return strings.Contains(r.Replicas()[0].Fault, "follows another master")
	})
}

// While the master is away what replicas know grows old: they are read until the bound, and then nothing is known.
func TestReplicas_AgeWithoutTheirMaster(t *testing.T) {
	t.Parallel()
	r, master, _ := replicated(t, time.Second)
	master.Kill()
	testkit.Eventually(t, "it is too old", func() bool {
		is := r.Replicas()[0]
		return !is.Read && is.Staleness > time.Second && strings.Contains(is.Fault, "max_staleness")
	})
	if err := r.Read(t.Context(), []string{"1001"}, make([]layout.Reading, 1)); err == nil {
		t.Error("old stock was read")
	}
}
