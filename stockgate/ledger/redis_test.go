package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// tries makes every kind of call that reads numbers.
func tries(r *Redis) map[string]error {
	ctx := context.Background()
	all := map[string]error{}
	_, all["reserve"] = r.Reserve(ctx, "1001", 0, 1, 2, []Item{{"new", "zoe", 1}}, make([]Code, 1))
	_, all["finish"] = r.Finish(ctx, "1001", 1, 2, Release, []Item{{Serial: "a"}}, make([]Done, 1))
	_, _, all["look"] = r.Look(ctx, "1001")
	_, all["sweep"] = r.Sweep(ctx, "1001", 5_000, 6_000, 10)
	_, all["set total"] = r.SetTotal(ctx, "1001", 9, 9)
	_, all["set state"] = r.SetState(ctx, "1001", Paused)
	return all
}

func TestBrokenLedgerIsAFaultAndNeverZero(t *testing.T) {
	for name, command := range map[string]string{
		"no total":           "hdel sluice:{1001}:s total",
		"no held":            "hdel sluice:{1001}:s held",
		"no version":         "hdel sluice:{1001}:s ver",
		"no state":           "hdel sluice:{1001}:s state",
		"none of its fields": "eval redis.call('del',KEYS[1]);redis.call('hset',KEYS[1],'x',1);return(1) 1 sluice:{1001}:s",
		"another state":      "hset sluice:{1001}:s state open",
		"a word":             "hset sluice:{1001}:s total many",
		"a fraction":         "hset sluice:{1001}:s total 5.0",
		"a negative":         "hset sluice:{1001}:s sold -1",
		"a float":            "hset sluice:{1001}:s sold 1e3",
		"nothing":            "eval redis.call('hset',KEYS[1],'limit','');return(1) 1 sluice:{1001}:s",
		"17 digits":          "hset sluice:{1001}:s total 12345678901234567",
		"numbers of a type":  "eval redis.call('set',KEYS[1],1);return(1) 1 sluice:{1001}:s",
		"no records":         "del sluice:{1001}:r",
		"records of a type":  "eval redis.call('set',KEYS[1],1);return(1) 1 sluice:{1001}:x",
		"no users":           "del sluice:{1001}:u",
		"no times":           "del sluice:{1001}:x",
	} {
		t.Run(name, func(t *testing.T) {
			server, r := stocked(t)
			check(t, server.Client.Do(t.Context(), args(command)...).Err())
			before := server.Client.XLen(t.Context(), "sluice:{1001}:q").Val()
			for call, err := range tries(r) {
				if err == nil {
					t.Errorf("%s: no error", call)
				}
			}
			if n := server.Client.XLen(t.Context(), "sluice:{1001}:q").Val(); n != before {
				t.Errorf("%d changes were made", n-before)
			}
		})
	}
}

func args(command string) (all []any) {
	for _, word := range strings.Fields(command) {
		all = append(all, word)
	}
	return all
}

func TestBrokenRecordOrUserIsAFault(t *testing.T) {
	for command, call := range map[string]string{
		"hset sluice:{1001}:r a rubbish":                                 "finish",
		"hset sluice:{1001}:r a H|1|x|ann":                               "sweep",
		"hset sluice:{1001}:r new Q|1|1|zoe":                             "reserve",
		"hset sluice:{1001}:u zoe many":                                  "reserve",
		"hset sluice:{1001}:u ann 0":                                     "finish", // it would have −1
		"hset sluice:{1001}:s held 0 state paused":                       "finish",
		"zadd sluice:{1001}:x 1 b":                                       "sweep",
		"zadd sluice:{1001}:x 1 lost":                                    "sweep",
		"xadd sluice:{1001}:q 9999999999999-1 x y":                       "reserve",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:{1001}:q":   "reserve",
		"hset sluice:{1001}:s total 999999999999999 ver 999999999999999": "reserve",
	} {
		server, r := stocked(t)
		check(t, server.Client.Do(t.Context(), args(command)...).Err())
		if err := tries(r)[call]; err == nil {
			t.Errorf("%s: %s is no error", command, call)
		}
		if call == "reserve" && server.Client.HExists(t.Context(), "sluice:{1001}:r", "new").Val() && !strings.Contains(command, "new") {
			t.Errorf("%s: reserved", command)
		}
	}
}

func TestFaultNamesTheKey(t *testing.T) {
	server, r := stocked(t)
	check(t, server.Client.HSet(t.Context(), "sluice:{1001}:s", "held", "x").Err())
	_, _, err := r.Look(t.Context(), "1001")
	if err == nil || !strings.Contains(err.Error(), "sluice:{1001}:s: held is not a number") {
		t.Fatal(err)
	}
}

func TestLostNumbersAreNotSeededAgain(t *testing.T) {
	server, r := stocked(t)
	check(t, server.Client.Del(t.Context(), "sluice:{1001}:s").Err())
	want(t, "reserve", take(t, r, "new", "zoe"), UnknownSKU)
	if _, err := r.SetTotal(t.Context(), "1001", 5, 2); err == nil {
		t.Fatal("a ledger was made over reservations that nobody counts")
	}
}

func TestNewLedgerHasALaterEpochThanTheOneBefore(t *testing.T) {
	server, r := stocked(t)
	for range 100 {
		must[Stock](t)(r.SetState(t.Context(), "1001", Frozen)) // ahead of the clock
	}
	before := stockOf1001(t, r)
	k := keys("1001")
	check(t, server.Client.Del(t.Context(), k[:4]...).Err())
	after := must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 2))
	if after.Epoch <= before.Epoch {
		t.Fatalf("epoch %d after %d", after.Epoch, before.Epoch)
	}
}

func TestFaultyLedgerDoesNotCloseTheOthers(t *testing.T) {
	server, r := stocked(t)
	check(t, server.Client.HSet(t.Context(), "sluice:{bad}:s", "total", "x").Err())
	for range 100 {
		if _, _, err := r.Look(t.Context(), "bad"); err == nil || errors.Is(err, link.ErrLeftAlone) {
			t.Fatalf("look: %v", err)
		}
	}
	check(t, server.Client.XAdd(t.Context(), &redis.XAddArgs{Stream: "sluice:{1001}:q", ID: "9999999999999-1", Values: []string{"x", "y"}}).Err())
	for range 100 {
		if _, err := r.SetState(t.Context(), "1001", Frozen); err == nil || errors.Is(err, link.ErrLeftAlone) {
			t.Fatalf("freeze: %v", err)
		}
	}
	stockOf1001(t, r)
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
	server, r := stocked(t)
	before := server.Calls("evalsha")
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	items, codes := []Item{{"lost", "zoe", 1}}, make([]Code, 1)
	if _, err := r.Reserve(ctx, "1001", 0, 1, 1_000, items, codes); err == nil {
		t.Fatal("a hanging server answered")
	}
	server.Resume()
	for server.Calls("evalsha") == before { // it runs what lay in its socket
		time.Sleep(time.Millisecond)
	}
	want(t, "the same serial again", take(t, r, "lost", "zoe"), ReplayHeld)
	want(t, "calls", server.Calls("evalsha")-before, 2)
	want(t, "held", stockOf1001(t, r).Held, 2)
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
