package ledger

import (
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// replicating starts a Redis and a replica of it that has everything, and a Redis store that waits for one replica.
func replicating(t *testing.T) (master, replica *redistest.Server, r *Store) {
	t.Helper()
	master = redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(master.Addr)
	testkit.Check(t, err)
	replica = redistest.Start(t, "--replicaof", host, port)
	o := optionsFor(master, 4)
	o.PoolSize, o.Replicas, o.ReplicaWait = 8, 1, 4*time.Second // the machine may be busy
	r = testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	inSync(t, master)
	return master, replica, r
}

// inSync waits until the replica has everything.
func inSync(t *testing.T, master *redistest.Server) {
	t.Helper()
	testkit.Eventually(t, "in sync", func() bool {
		master.Client.Incr(t.Context(), "nonsense")
		return master.Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
}

func TestReplicas_ForwardedOrderIsOnTheReplica(t *testing.T) {
	_, replica, r := replicating(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 100, 0))
	d := opened(t, testOptions(), r, nil)
	for range 50 {
		out := d.buy("7", rand.Text())
		wants(t, "order", out, Held)
		if !replica.Client.HExists(t.Context(), keys(testSKU)[1], out.Serial).Val() {
			t.Fatal("it was told to be held before the replica had it")
		}
	}
}

func TestReplicas_OrderThatTooFewReplicasHaveIsNotForwardedAndGivesItsUnitBack(t *testing.T) {
	master, replica, r := replicating(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 1, 0))
	r.replicaWait = 100 * time.Millisecond
	d := opened(t, testOptions(), r, nil)
	replica.Pause()
	defer replica.Resume()
	wants(t, "without the replica", d.buy("7", "lost"), Unsure)
	if !strings.Contains(testkit.Scrape(t, d), "sluice_ledger_unreplicated_total 1") {
		t.Error("nobody is told")
	}
	testkit.Eventually(t, "given back", func() bool {
		rec, ok, err := r.Find(t.Context(), testSKU, "lost")
		return err == nil && ok && rec.Status == StatusReleased
	})
	replica.Resume()
	inSync(t, master)
	r.replicaWait = 4 * time.Second
	wants(t, "with it", d.buy("7", "found"), Held)
}

func TestReplicas_MissingOneRejectsOrdersAndNotSettlements(t *testing.T) {
	_, replica, r := replicating(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 1, 0))
	testkit.Want(t, "reserve", takeUnit(t, r, "a", "ann"), Held)
	r.replicaWait = 10 * time.Millisecond
	replica.Kill()
	testkit.Want(t, "a loser", takeUnit(t, r, "b", "zoe"), SoldOut)
	codes := make([]Code, 1)
	hint, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []Item{{Serial: "a", User: "ann", Quantity: 1}}, codes)
	if !errors.Is(err, ErrFewReplicas) || codes[0] != ReplayHeld || hint.Ver == 0 {
		t.Fatalf("%v %v %v", hint, codes, err)
	}
	testkit.Want(t, "release", finishOne(t, r, Release, "a"), Changed)
}

// An earlier sending whose reply was lost is not waited for by the connection that finds its hold.
func TestReplicas_HoldOfALostReplyIsWaitedForToo(t *testing.T) {
	_, replica, r := replicating(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	r.replicaWait = 100 * time.Millisecond
	replica.Pause()
	defer replica.Resume()
	r.replicas = 0
	testkit.Want(t, "the sending whose reply is lost", takeUnit(t, r, "a", "ann"), Held)
	r.replicas = 1
	codes := make([]Code, 1)
	_, err := r.Reserve(t.Context(), "1001", 0, 1, 1_000, []Item{{Serial: "a", User: "ann", Quantity: 1}}, codes)
	if !errors.Is(err, ErrFewReplicas) {
		t.Fatalf("%v %v", codes, err)
	}
}

func TestReplicas_WaitAndReserveAreOneRoundTrip(t *testing.T) {
	master, _, r := replicating(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	before := master.Calls("wait")
	testkit.Want(t, "reserve", takeUnit(t, r, "a", "ann"), Held)
	testkit.Check(t, master.Client.ScriptFlush(t.Context()).Err())
	testkit.Want(t, "reserve without a script", takeUnit(t, r, "b", "ann"), Held)
	testkit.Want(t, "waits", master.Calls("wait")-before, 3)
	// one for nothing, behind NOSCRIPT
	testkit.Want(t, "the whole text", master.Calls("eval"), 1)
}

func TestReplicas_WaitThatCannotWorkIsRejected(t *testing.T) {
	for what, change := range map[string]func(*StoreOptions){
		"a negative number":     func(o *StoreOptions) { o.Replicas = -1 },
		"as long as a time-out": func(o *StoreOptions) { o.Replicas, o.ReplicaWait = 1, o.Timeout },
		"for ever":              func(o *StoreOptions) { o.Replicas, o.ReplicaWait = 1, time.Microsecond },
		"backwards":             func(o *StoreOptions) { o.Replicas, o.ReplicaWait = 1, -1 },
	} {
		o := optionsFor(&redistest.Server{Addr: "127.0.0.1:1"}, 1)
		change(&o)
		if r, err := NewStore(o); err == nil {
			r.Close()
			t.Errorf("%s: accepted", what)
		} else if !strings.Contains(err.Error(), "replica") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
