package ledger

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// replicating starts a Redis and a replica of it that has everything, and a Redis store that waits for one replica.
func replicating(t *testing.T) (master, replica *redistest.Server, r *Redis) {
	t.Helper()
	master = redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(master.Addr)
	check(t, err)
	replica = redistest.Start(t, "--replicaof", host, port)
	o := optionsFor(master, 4)
	o.PoolSize, o.Replicas, o.ReplicaWait = 8, 1, 4*time.Second // the machine may be busy
	r = must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	inSync(t, master)
	return master, replica, r
}

// inSync waits until the replica has everything.
func inSync(t *testing.T, master *redistest.Server) {
	t.Helper()
	eventually(t, "in sync", func() bool {
		master.Client.Incr(t.Context(), "nonsense")
		return master.Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
}

func TestForwardedOrderIsOnTheReplica(t *testing.T) {
	_, replica, r := replicating(t)
	must[Stock](t)(r.SetTotal(t.Context(), sku, 100, 0))
	d := opened(t, deskOptions(), r, nil)
	for range 50 {
		out := d.buy("7", unique())
		wants(t, "order", out, Held)
		if !replica.Client.HExists(t.Context(), keys(sku)[1], out.Serial).Val() {
			t.Fatal("it was told to be held before the replica had it")
		}
	}
}

func TestOrderThatTooFewReplicasHaveIsNotForwardedAndGivesItsUnitBack(t *testing.T) {
	master, replica, r := replicating(t)
	must[Stock](t)(r.SetTotal(t.Context(), sku, 1, 0))
	r.replicaWait = 100 * time.Millisecond
	d := opened(t, deskOptions(), r, nil)
	replica.Pause()
	defer replica.Resume()
	wants(t, "without the replica", d.buy("7", "lost"), Unsure)
	if !d.thinned.Load() || d.thin.Load() == 0 {
		t.Error("nobody is told")
	}
	eventually(t, "given back", func() bool {
		rec, ok, err := r.Find(t.Context(), sku, "lost")
		return err == nil && ok && rec.Status == released
	})
	replica.Resume()
	inSync(t, master)
	r.replicaWait = 4 * time.Second
	wants(t, "with it", d.buy("7", "found"), Held)
	if d.thinned.Load() {
		t.Error("nobody is told that it is over")
	}
}

func TestReplicaThatIsGoneRefusesOrdersAndNotAnswers(t *testing.T) {
	_, replica, r := replicating(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 1, 0))
	want(t, "reserve", take(t, r, "a", "ann"), Held)
	r.replicaWait = 10 * time.Millisecond
	replica.Kill()
	want(t, "a loser", take(t, r, "b", "zoe"), SoldOut)
	codes := make([]Code, 1)
	hint, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []Item{{"a", "ann", 1}}, codes)
	if !errors.Is(err, errFewReplicas) || codes[0] != ReplayHeld || hint.Ver == 0 {
		t.Fatalf("%v %v %v", hint, codes, err)
	}
	want(t, "release", do(t, r, Release, "a"), Changed)
}

// An earlier sending whose reply was lost is not waited for by the connection that finds its hold.
func TestHoldOfALostReplyIsWaitedForToo(t *testing.T) {
	_, replica, r := replicating(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	r.replicaWait = 100 * time.Millisecond
	replica.Pause()
	defer replica.Resume()
	r.replicas = 0
	want(t, "the sending whose reply is lost", take(t, r, "a", "ann"), Held)
	r.replicas = 1
	codes := make([]Code, 1)
	_, err := r.Reserve(t.Context(), "1001", 0, 1, 1_000, []Item{{"a", "ann", 1}}, codes)
	if !errors.Is(err, errFewReplicas) {
		t.Fatalf("%v %v", codes, err)
	}
}

func TestWaitAndReserveAreOneRoundTrip(t *testing.T) {
	master, _, r := replicating(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	before := master.Calls("wait")
	want(t, "reserve", take(t, r, "a", "ann"), Held)
	check(t, master.Client.ScriptFlush(t.Context()).Err())
	want(t, "reserve without a script", take(t, r, "b", "ann"), Held)
	want(t, "waits", master.Calls("wait")-before, 3) // one for nothing, behind NOSCRIPT
	want(t, "the whole text", master.Calls("eval"), 1)
}

func TestWaitThatCannotWorkIsRefused(t *testing.T) {
	for what, change := range map[string]func(*RedisOptions){
		"a negative number":     func(o *RedisOptions) { o.Replicas = -1 },
		"as long as a time-out": func(o *RedisOptions) { o.Replicas, o.ReplicaWait = 1, o.Timeout },
		"for ever":              func(o *RedisOptions) { o.Replicas, o.ReplicaWait = 1, time.Microsecond },
		"backwards":             func(o *RedisOptions) { o.Replicas, o.ReplicaWait = 1, -1 },
	} {
		o := optionsFor(&redistest.Server{Addr: "127.0.0.1:1"}, 1)
		change(&o)
		if r, err := NewRedis(o); err == nil {
			r.Close()
			t.Errorf("%s: accepted", what)
		} else if !strings.Contains(err.Error(), "replica") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
