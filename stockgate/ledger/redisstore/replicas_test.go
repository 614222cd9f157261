package redisstore

import (
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// replicating starts a Redis and a replica of it that has everything, and a Redis store that waits for one replica.
func replicating(t *testing.T) (master, replica *redistest.Server, r *Store) {
	t.Helper()
	master = redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(master.Addr)
	ledgertest.Check(t, err)
	replica = redistest.Start(t, "--replicaof", host, port)
	o := optionsFor(master, 4)
	o.PoolSize, o.Replicas, o.ReplicaWait = 8, 1, 4*time.Second // the machine may be busy
	r = ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { r.Close() })
	inSync(t, master)
	return master, replica, r
}

// inSync waits until the replica has everything.
func inSync(t *testing.T, master *redistest.Server) {
	t.Helper()
	ledgertest.Until(t, "in sync", func() bool {
		master.Client.Incr(t.Context(), "nonsense")
		return master.Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
}

func TestReplicas_ForwardedOrderIsOnTheReplica(t *testing.T) {
	_, replica, r := replicating(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, 100, 0))
	d := opened(t, deskOptions(), r, nil)
	for range 50 {
		out := d.buy("7", rand.Text())
		wants(t, "order", out, protocol.Held)
		if !replica.Client.HExists(t.Context(), keys(ledgertest.SKU)[1], out.Serial).Val() {
			t.Fatal("it was told to be held before the replica had it")
		}
	}
}

func TestReplicas_OrderThatTooFewReplicasHaveIsNotForwardedAndGivesItsUnitBack(t *testing.T) {
	master, replica, r := replicating(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, 1, 0))
	r.replicaWait = 100 * time.Millisecond
	d := opened(t, deskOptions(), r, nil)
	replica.Pause()
	defer replica.Resume()
	wants(t, "without the replica", d.buy("7", "lost"), ledger.Unsure)
	if !strings.Contains(ledgertest.Scrape(t, d), "sluice_ledger_unreplicated_total 1") {
		t.Error("nobody is told")
	}
	ledgertest.Until(t, "given back", func() bool {
		rec, ok, err := r.Find(t.Context(), ledgertest.SKU, "lost")
		return err == nil && ok && rec.Status == protocol.StatusReleased
	})
	replica.Resume()
	inSync(t, master)
	r.replicaWait = 4 * time.Second
	wants(t, "with it", d.buy("7", "found"), protocol.Held)
}

func TestReplicas_MissingOneRejectsOrdersAndNotSettlements(t *testing.T) {
	_, replica, r := replicating(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 1, 0))
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "a", "ann"), protocol.Held)
	r.replicaWait = 10 * time.Millisecond
	replica.Kill()
	ledgertest.Want(t, "a loser", ledgertest.Take(t, r, "b", "zoe"), protocol.SoldOut)
	codes := make([]protocol.Code, 1)
	hint, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []protocol.Item{{Serial: "a", User: "ann", Quantity: 1}}, codes)
	if !errors.Is(err, protocol.ErrFewReplicas) || codes[0] != protocol.ReplayHeld || hint.Ver == 0 {
		t.Fatalf("%v %v %v", hint, codes, err)
	}
	ledgertest.Want(t, "release", ledgertest.Finish(t, r, protocol.Release, "a"), protocol.Changed)
}

// An earlier sending whose reply was lost is not waited for by the connection that finds its hold.
func TestReplicas_HoldOfALostReplyIsWaitedForToo(t *testing.T) {
	_, replica, r := replicating(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	r.replicaWait = 100 * time.Millisecond
	replica.Pause()
	defer replica.Resume()
	r.replicas = 0
	ledgertest.Want(t, "the sending whose reply is lost", ledgertest.Take(t, r, "a", "ann"), protocol.Held)
	r.replicas = 1
	codes := make([]protocol.Code, 1)
	_, err := r.Reserve(
		t.Context(),
		"1001",
		0,
		1,
		1_000,
		[]protocol.Item{{Serial: "a", User: "ann", Quantity: 1}},
		codes,
	)
	if !errors.Is(err, protocol.ErrFewReplicas) {
		t.Fatalf("%v %v", codes, err)
	}
}

func TestReplicas_WaitAndReserveAreOneRoundTrip(t *testing.T) {
	master, _, r := replicating(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	before := master.Calls("wait")
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "a", "ann"), protocol.Held)
	ledgertest.Check(t, master.Client.ScriptFlush(t.Context()).Err())
	ledgertest.Want(t, "reserve without a script", ledgertest.Take(t, r, "b", "ann"), protocol.Held)
	ledgertest.Want(t, "waits", master.Calls("wait")-before, 3)
	ledgertest. // one for nothing, behind NOSCRIPT
			Want(t, "the whole text", master.Calls("eval"), 1)
}

func TestReplicas_WaitThatCannotWorkIsRejected(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"a negative number":     func(o *Options) { o.Replicas = -1 },
		"as long as a time-out": func(o *Options) { o.Replicas, o.ReplicaWait = 1, o.Timeout },
		"for ever":              func(o *Options) { o.Replicas, o.ReplicaWait = 1, time.Microsecond },
		"backwards":             func(o *Options) { o.Replicas, o.ReplicaWait = 1, -1 },
	} {
		o := optionsFor(&redistest.Server{Addr: "127.0.0.1:1"}, 1)
		change(&o)
		if r, err := New(o); err == nil {
			r.Close()
			t.Errorf("%s: accepted", what)
		} else if !strings.Contains(err.Error(), "replica") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
