package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/redisconn"
)

// onRedis is a Redis with 5 units of 1001, 2 a person, of which ann holds "a" and has bought "b".
func onRedis(t testing.TB) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t)
	r := connect(t, server, texts())
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(context.Background(), "1001", 5, 2))
	ledgertest.Take(t, r, "a", "ann")
	ledgertest.Take(t, r, "b", "ann")
	ledgertest.Finish(t, r, protocol.Confirm, "b")
	return server, r
}

func TestRedis_FlushedScriptsCostNoCallerAnError(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	ctx, cancel := context.WithCancel(t.Context())
	var flusher, callers sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			_ = server.Client.ScriptFlush(ctx).Err()
		}
	})
	for g := range 4 {
		callers.Go(func() {
			for i := range 50 {
				serial := fmt.Sprint(g, "-", i)
				ledgertest.Want(t, "reserve", ledgertest.Take(t, r, serial, ""), protocol.Held)
				ledgertest.Want(t, "confirm", ledgertest.Finish(t, r, protocol.Confirm, serial), protocol.Changed)
			}
		})
	}
	callers.Wait()
	cancel()
	flusher.Wait()
	ledgertest.Want(t, "sold", ledgertest.StockOf(t, r).Sold, 201)
	if server.Calls("eval") == 0 {
		t.Fatal("no script was ever missing: the test says nothing")
	}
}

func TestRedis_ScriptsAreLoadedBeforeTheFirstCall(t *testing.T) {
	server, r := onRedis(t)
	tries(r)
	ledgertest.Want(t, "texts sent", server.Calls("eval"), 0)
}

func TestRedis_ReserveWhoseReplyWasLostTakesOneUnit(t *testing.T) {
	server := redistest.Start(t)
	r := ledgertest.Must[*Store](t)(New(optionsFor(server, 1))) // one connection, which is open when the server hangs
	t.Cleanup(func() { r.Close() })
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 5, 2))
	before := server.Calls("evalsha")
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // also on a busy machine it is sent within that
	defer cancel()
	items, codes := []protocol.Item{{Serial: "lost", User: "zoe", Quantity: 1}}, make([]protocol.Code, 1)
	if _, err := r.Reserve(ctx, "1001", 0, 1, 1_000, items, codes); err == nil {
		t.Fatal("a hanging server answered")
	}
	server.Resume()
	testkit.Eventually(t, "the server has run what lay in its socket", func() bool {
		return server.Calls("evalsha") > before
	})
	ledgertest.Want(t, "the same serial again", ledgertest.Take(t, r, "lost", "zoe"), protocol.ReplayHeld)
	ledgertest.Want(t, "calls", server.Calls("evalsha")-before, 2)
	ledgertest.Want(t, "held", ledgertest.StockOf(t, r).Held, 1)
}

func TestRedis_StreamIsBounded(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	r.events = 10
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	for i := range 1_000 {
		ledgertest.Take(t, r, fmt.Sprint(i), "")
	}
	if n := server.Client.XLen(t.Context(), "sluice:shop:{1001}:q").Val(); n > 300 {
		t.Fatalf("%d entries are kept", n)
	}
}

func TestRedis_FullBatchIsOneCall(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	items, codes, done := make(
		[]protocol.Item,
		protocol.MaxItems,
	), make(
		[]protocol.Code,
		protocol.MaxItems,
	), make(
		[]protocol.Done,
		protocol.MaxItems,
	)
	for i := range items {
		items[i] = protocol.Item{Serial: fmt.Sprintf("%0128d", i), User: strings.Repeat(fmt.Sprint(i), 40), Quantity: 1}
	}
	before, changes := server.Calls("evalsha"), ledgertest.StockOf(t, r).Ver
	hint, err := r.Reserve(t.Context(), "1001", 0, 1, 2, items, codes)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "free", hint.Free, 1_000-2-protocol.MaxItems)
	for _, op := range []protocol.Op{protocol.Release, protocol.Adopt, protocol.Refund} {
		_, err = r.Finish(t.Context(), "1001", 1, 3, op, items, done)
		ledgertest.Check(t, err)
		ledgertest.Want(t, "done", done[protocol.MaxItems-1], protocol.Changed)
	}
	ledgertest.Want(t, "calls", server.Calls("evalsha")-before, 1+4)
	ledgertest. // and the look
			Want(t, "versions", ledgertest.StockOf(t, r).Ver-changes, 4)
}

func TestRedis_ManyTombstonesAreForgottenInOneSweep(t *testing.T) {
	server, r := onRedis(t)
	items, done := make([]protocol.Item, protocol.MaxItems), make([]protocol.Done, protocol.MaxItems)
	for batch := range 10 {
		for i := range items {
			items[i].Serial = fmt.Sprint(batch, "-", i)
		}
		_, err := r.Finish(t.Context(), "1001", 1, 2, protocol.Release, items, done)
		ledgertest.Check(t, err)
	}
	holds, err := r.Sweep(t.Context(), "1001", 1_000, 2_000, protocol.MaxLeases)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "holds", len(holds), 1)
	ledgertest.Want(t, "records", server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val(), 2)
}

func TestCheck_RejectsARedisThatEvicts(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Check(t, r.Check(t.Context()))
	for _, policy := range []string{"allkeys-lru", "volatile-ttl", "allkeys-random"} {
		ledgertest.Check(t, server.Client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), policy) {
			t.Fatalf("%s: %v", policy, err)
		}
	}
	if fit("# Memory\r\nused_memory:1\r\n") == nil {
		t.Fatal("a Redis that hides its policy is accepted")
	}
}

func TestRedis_FullRedisChangesNothing(t *testing.T) {
	server, r := onRedis(t)
	before := ledgertest.StockOf(t, r)
	ledgertest.Check(t, server.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := r.Reserve(
		t.Context(),
		"1001",
		0,
		1,
		2,
		[]protocol.Item{{Serial: "new", User: "zoe", Quantity: 1}},
		make([]protocol.Code, 1),
	)
	if err == nil {
		t.Fatal("reserved without memory")
	}
	ledgertest.Check(t, server.Client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	ledgertest.Want(t, "stock", ledgertest.StockOf(t, r), before)
}

func TestNew_RejectsOptionsThatCannotWork(t *testing.T) {
	good := Options{Name: "shop", Options: redisconn.Options{
		Addresses: []string{"127.0.0.1:1"}, PoolSize: 1, ConnectTimeout: 1, Timeout: 1, BreakerErrors: 1, BreakerPause: 1,
	}, Events: 1}
	r, err := New(good)
	ledgertest.Check(t, err)
	ledgertest.Check(t, r.Close())
	bad := good
	bad.Events = 0
	if _, err := New(bad); err == nil {
		t.Error("no events: accepted")
	}
	bad = good
	bad.Name = "a:b"
	if _, err := New(bad); err == nil {
		t.Error("a name with a colon: accepted")
	}
	good.Addresses = nil
	if _, err := New(good); err == nil {
		t.Error("no address: accepted")
	}
}
