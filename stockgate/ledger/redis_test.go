package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

func TestRedis_FlushedScriptsCostNoCallerAnError(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
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
				testkit.Want(t, "reserve", takeUnit(t, r, serial, ""), Held)
				testkit.Want(t, "confirm", finishOne(t, r, Confirm, serial), Changed)
			}
		})
	}
	callers.Wait()
	cancel()
	flusher.Wait()
	testkit.Want(t, "sold", stockIn(t, r).Sold, 201)
	if server.Calls("eval") == 0 {
		t.Fatal("no script was ever missing: the test says nothing")
	}
}

func TestRedis_ScriptsAreLoadedBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	tries(r)
	testkit.Want(t, "texts sent", server.Calls("eval"), 0)
}

func TestRedis_StreamIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := connect(t, server, texts())
	r.events = 10
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	for i := range 1_000 {
		takeUnit(t, r, fmt.Sprint(i), "")
	}
	if n := server.Client.XLen(t.Context(), "sluice:shop:{1001}:q").Val(); n > 300 {
		t.Fatalf("%d entries are kept", n)
	}
}

func TestRedis_FullBatchIsOneCall(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	items, codes, done := make([]Item, MaxItems), make([]Code, MaxItems), make([]Done, MaxItems)
	for i := range items {
		items[i] = Item{Serial: fmt.Sprintf("%0128d", i), User: strings.Repeat(fmt.Sprint(i), 40), Quantity: 1}
	}
	before, changes := server.Calls("evalsha"), stockIn(t, r).Ver
	hint, err := r.Reserve(t.Context(), "1001", 0, 1, 2, items, codes)
	testkit.Check(t, err)
	testkit.Want(t, "free", hint.Free, 1_000-2-MaxItems)
	for _, op := range []Op{Release, Adopt, Refund} {
		_, err = r.Finish(t.Context(), "1001", 1, 3, op, items, done)
		testkit.Check(t, err)
		testkit.Want(t, "done", done[MaxItems-1], Changed)
	}
	testkit.Want(t, "calls", server.Calls("evalsha")-before, 1+4)
	// and the look
	testkit.Want(t, "versions", stockIn(t, r).Ver-changes, 4)
}

func TestRedis_ManyTombstonesAreForgottenInOneSweep(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	items, done := make([]Item, MaxItems), make([]Done, MaxItems)
	for batch := range 10 {
		for i := range items {
			items[i].Serial = fmt.Sprint(batch, "-", i)
		}
		_, err := r.Finish(t.Context(), "1001", 1, 2, Release, items, done)
		testkit.Check(t, err)
	}
	holds, err := r.Sweep(t.Context(), "1001", 1_000, 2_000, MaxLeases)
	testkit.Check(t, err)
	testkit.Want(t, "holds", len(holds), 1)
	testkit.Want(t, "records", server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val(), 2)
}

func TestCheck_RejectsARedisThatEvicts(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Check(t, r.Check(t.Context()))
	for _, policy := range []string{"allkeys-lru", "volatile-ttl", "allkeys-random"} {
		testkit.Check(t, server.Client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), policy) {
			t.Fatalf("%s: %v", policy, err)
		}
	}
	if fit("# Memory\r\nused_memory:1\r\n") == nil {
		t.Fatal("a Redis that hides its policy is accepted")
	}
}

func TestRedis_FullRedisChangesNothing(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	before := stockIn(t, r)
	testkit.Check(t, server.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := r.Reserve(
		t.Context(),
		"1001",
		0,
		1,
		2,
		[]Item{{Serial: "new", User: "zoe", Quantity: 1}},
		make([]Code, 1),
	)
	if err == nil {
		t.Fatal("reserved without memory")
	}
	testkit.Check(t, server.Client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	testkit.Want(t, "stock", stockIn(t, r), before)
}

func TestNew_RejectsOptionsThatCannotWork(t *testing.T) {
	good := StoreOptions{Name: "shop", Options: redisconn.Options{
		Addresses: []string{"127.0.0.1:1"}, PoolSize: 1, ConnectTimeout: 1, Timeout: 1, BreakerErrors: 1, BreakerPause: 1,
	}, Events: 1}
	r, err := NewStore(good)
	testkit.Check(t, err)
	testkit.Check(t, r.Close())
	bad := good
	bad.Events = 0
	if _, err := NewStore(bad); err == nil {
		t.Error("no events: accepted")
	}
	bad = good
	bad.Name = "a:b"
	if _, err := NewStore(bad); err == nil {
		t.Error("a name with a colon: accepted")
	}
	good.Addresses = nil
	if _, err := NewStore(good); err == nil {
		t.Error("no address: accepted")
	}
}
