package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/link"
)

// stocked is a Redis with 5 units of 1001, 2 a person, of which ann holds "a" and has bought "b".
func stocked(t testing.TB) (*redistest.Server, *Redis) {
	t.Helper()
	server := redistest.Start(t)
	r := connect(t, server, texts())
	must[Stock](t)(r.SetTotal(context.Background(), "1001", 5, 2))
	take(t, r, "a", "ann")
	take(t, r, "b", "ann")
	do(t, r, Confirm, "b")
	return server, r
}

func TestFlushedScriptsCostNoCallerAnError(t *testing.T) {
	server, r := stocked(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
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
				want(t, "reserve", take(t, r, serial, ""), Held)
				want(t, "confirm", do(t, r, Confirm, serial), Changed)
			}
		})
	}
	callers.Wait()
	cancel()
	flusher.Wait()
	want(t, "sold", stockOf1001(t, r).Sold, 201)
	if server.Calls("eval") == 0 {
		t.Fatal("no script was ever missing: the test says nothing")
	}
}

func TestScriptsAreLoadedBeforeTheFirstCall(t *testing.T) {
	server, r := stocked(t)
	tries(r)
	want(t, "texts sent", server.Calls("eval"), 0)
}

func TestReserveWhoseReplyWasLostTakesOneUnit(t *testing.T) {
	server := redistest.Start(t)
	r := must[*Redis](t)(NewRedis(optionsFor(server, 1))) // one connection, which is open when the server hangs
	t.Cleanup(func() { r.Close() })
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 2))
	before := server.Calls("evalsha")
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	items, codes := []Item{{"lost", "zoe", 1}}, make([]Code, 1)
	if _, err := r.Reserve(ctx, "1001", 0, 1, 1_000, items, codes); err == nil {
		t.Fatal("a hanging server answered")
	}
	server.Resume()
	for range 30_000 {
		if server.Calls("evalsha") > before { // it has run what lay in its socket
			break
		}
		time.Sleep(time.Millisecond)
	}
	want(t, "the same serial again", take(t, r, "lost", "zoe"), ReplayHeld)
	want(t, "calls", server.Calls("evalsha")-before, 2)
	want(t, "held", stockOf1001(t, r).Held, 1)
}

func TestStreamIsBounded(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	r.events = 10
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	for i := range 1_000 {
		take(t, r, fmt.Sprint(i), "")
	}
	if n := server.Client.XLen(t.Context(), "sluice:{1001}:q").Val(); n > 300 {
		t.Fatalf("%d entries are kept", n)
	}
}

func TestFullBatchIsOneCall(t *testing.T) {
	server, r := stocked(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	items, codes, done := make([]Item, maxItems), make([]Code, maxItems), make([]Done, maxItems)
	for i := range items {
		items[i] = Item{fmt.Sprintf("%0128d", i), strings.Repeat(fmt.Sprint(i), 40), 1}
	}
	before, changes := server.Calls("evalsha"), stockOf1001(t, r).Ver
	hint, err := r.Reserve(t.Context(), "1001", 0, 1, 2, items, codes)
	check(t, err)
	want(t, "free", hint.Free, 1_000-2-maxItems)
	for _, op := range []Op{Release, Adopt, Refund} {
		_, err = r.Finish(t.Context(), "1001", 1, 3, op, items, done)
		check(t, err)
		want(t, "done", done[maxItems-1], Changed)
	}
	want(t, "calls", server.Calls("evalsha")-before, 1+4) // and the look
	want(t, "versions", stockOf1001(t, r).Ver-changes, 4)
}

func TestManyTombstonesAreForgottenInOneSweep(t *testing.T) {
	server, r := stocked(t)
	items, done := make([]Item, maxItems), make([]Done, maxItems)
	for batch := range 10 {
		for i := range items {
			items[i].Serial = fmt.Sprint(batch, "-", i)
		}
		_, err := r.Finish(t.Context(), "1001", 1, 2, Release, items, done)
		check(t, err)
	}
	holds, err := r.Sweep(t.Context(), "1001", 1_000, 2_000, maxLeases)
	check(t, err)
	want(t, "holds", len(holds), 1)
	want(t, "records", server.Client.HLen(t.Context(), "sluice:{1001}:r").Val(), 2)
}

func TestEvictingRedisIsRefused(t *testing.T) {
	server, r := stocked(t)
	check(t, r.Check(t.Context()))
	for _, policy := range []string{"allkeys-lru", "volatile-ttl", "allkeys-random"} {
		check(t, server.Client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), policy) {
			t.Fatalf("%s: %v", policy, err)
		}
	}
	if fit("# Memory\r\nused_memory:1\r\n") == nil {
		t.Fatal("a Redis that hides its policy is accepted")
	}
}

func TestFullRedisChangesNothing(t *testing.T) {
	server, r := stocked(t)
	before := stockOf1001(t, r)
	check(t, server.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []Item{{"new", "zoe", 1}}, make([]Code, 1))
	if err == nil {
		t.Fatal("reserved without memory")
	}
	check(t, server.Client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	want(t, "stock", stockOf1001(t, r), before)
}

func TestRedisOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := RedisOptions{Options: link.Options{
		Addresses: []string{"127.0.0.1:1"}, PoolSize: 1, ConnectTimeout: 1, Timeout: 1, BreakerErrors: 1, BreakerPause: 1,
	}, Events: 1}
	r, err := NewRedis(good)
	check(t, err)
	check(t, r.Close())
	bad := good
	bad.Events = 0
	if _, err := NewRedis(bad); err == nil {
		t.Error("no events: accepted")
	}
	good.Addresses = nil
	if _, err := NewRedis(good); err == nil {
		t.Error("no address: accepted")
	}
}
