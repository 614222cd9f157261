package ledger

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// tries makes every kind of call that reads numbers.
func tries(r *Store) map[string]error {
	ctx := context.Background()
	all := map[string]error{}
	_, all["reserve"] = r.Reserve(
		ctx,
		"1001",
		0,
		1,
		2,
		[]Item{{Serial: "new", User: "zoe", Quantity: 1}},
		make([]Code, 1),
	)
	_, all["finish"] = r.Finish(ctx, "1001", 1, 2, Release, []Item{{Serial: "a"}}, make([]Done, 1))
	_, _, all["look"] = r.ReadStock(ctx, "1001")
	_, all["sweep"] = r.Sweep(ctx, "1001", 5_000, 6_000, 10)
	_, all["set total"] = r.SetTotal(ctx, "1001", 9, 9)
	_, all["set state"] = r.SetState(ctx, "1001", Paused)
	return all
}

func TestRedisFault_BrokenLedgerIsAFaultAndNeverZero(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"no total":   "hdel sluice:shop:{1001}:s total",
		"no held":    "hdel sluice:shop:{1001}:s held",
		"no version": "hdel sluice:shop:{1001}:s ver",
		"no state":   "hdel sluice:shop:{1001}:s state",
		"none of its fields": "eval redis.call('del',KEYS[1]);redis.call('hset',KEYS[1],'x',1);return(1) 1 " +
			"sluice:shop:{1001}:s",
		"another state":     "hset sluice:shop:{1001}:s state open",
		"a word":            "hset sluice:shop:{1001}:s total many",
		"a fraction":        "hset sluice:shop:{1001}:s total 5.0",
		"a negative":        "hset sluice:shop:{1001}:s sold -1",
		"a float":           "hset sluice:shop:{1001}:s sold 1e3",
		"nothing":           "eval redis.call('hset',KEYS[1],'limit','');return(1) 1 sluice:shop:{1001}:s",
		"17 digits":         "hset sluice:shop:{1001}:s total 12345678901234567",
		"numbers of a type": "eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:s",
		"no records":        "del sluice:shop:{1001}:r",
		"records of a type": "eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:x",
		"no users":          "del sluice:shop:{1001}:u",
		"no times":          "del sluice:shop:{1001}:x",
	} {
		t.Run(name, func(t *testing.T) {
			server, r := onRedis(t)
			testkit.Check(t, server.Client.Do(t.Context(), args(command)...).Err())
			before := server.Client.XLen(t.Context(), "sluice:shop:{1001}:q").Val()
			for call, err := range tries(r) {
				if err == nil {
					t.Errorf("%s: no error", call)
				}
			}
			if n := server.Client.XLen(t.Context(), "sluice:shop:{1001}:q").Val(); n != before {
				t.Errorf("%d changes were made", n-before)
			}
		})
	}
}

func TestRedisFault_BrokenRecordOrUserIsAFault(t *testing.T) {
	t.Parallel()
	for command, call := range map[string]string{
		"hset sluice:shop:{1001}:r a rubbish":                                 "finish",
		"hset sluice:shop:{1001}:r a H|1|x|ann":                               "sweep",
		"hset sluice:shop:{1001}:r new Q|1|1|zoe":                             "reserve",
		"hset sluice:shop:{1001}:u zoe many":                                  "reserve",
		"hset sluice:shop:{1001}:u ann 0":                                     "finish", // it would have −1
		"hset sluice:shop:{1001}:s held 0 state paused":                       "finish",
		"zadd sluice:shop:{1001}:x 1 b":                                       "sweep",
		"zadd sluice:shop:{1001}:x 1 lost":                                    "sweep",
		"xadd sluice:shop:{1001}:q 9999999999999-1 x y":                       "reserve",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:q":   "reserve",
		"hset sluice:shop:{1001}:s total 999999999999999 ver 999999999999999": "reserve",
	} {
		server, r := onRedis(t)
		testkit.Check(t, server.Client.Do(t.Context(), args(command)...).Err())
		if err := tries(r)[call]; err == nil {
			t.Errorf("%s: %s is no error", command, call)
		}
		if call == "reserve" && server.Client.HExists(t.Context(), "sluice:shop:{1001}:r", "new").Val() &&
			!strings.Contains(command, "new") {
			t.Errorf("%s: reserved", command)
		}
	}
}

func TestRedisFault_FaultNamesTheKey(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "held", "x").Err())
	_, _, err := r.ReadStock(t.Context(), "1001")
	if err == nil || !strings.Contains(err.Error(), "sluice:shop:{1001}:s: held is not a number") {
		t.Fatal(err)
	}
}

func TestRedisFault_LostNumbersAreNotSeededAgain(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.Del(t.Context(), "sluice:shop:{1001}:s").Err())
	testkit.Want(t, "reserve", takeUnit(t, r, "new", "zoe"), NotOnSale)
	testkit.Want(
		t,
		"reserve by who never saw it",
		takeUnit(t, connect(t, server, texts()), "new", "zoe"),
		NotOnSale,
	)
	if _, err := r.SetTotal(t.Context(), "1001", 5, 2); err == nil {
		t.Fatal("a ledger was made over reservations that nobody counts")
	}
}

func TestRedisFault_NewLedgerHasALaterEpochThanTheOneBefore(t *testing.T) {
	server, r := onRedis(t)
	for range 100 {
		testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", Frozen)) // ahead of the clock
	}
	before := stockIn(t, r)
	k := keys("1001")
	testkit.Check(t, server.Client.Del(t.Context(), k[:4]...).Err())
	after := testkit.Must[Stock](t)(r.Recreate(t.Context(), "1001", 5, 2, false))
	if after.Epoch <= before.Epoch {
		t.Fatalf("epoch %d after %d", after.Epoch, before.Epoch)
	}
}

func TestRedisFault_FaultyLedgerDoesNotCloseTheOthers(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{bad}:s", "total", "x").Err())
	for range 100 {
		if _, _, err := r.ReadStock(t.Context(), "bad"); err == nil || errors.Is(err, redisconn.ErrBreakerOpen) {
			t.Fatalf("look: %v", err)
		}
	}
	testkit.Check(
		t,
		server.Client.XAdd(
			t.Context(),
			&redis.XAddArgs{Stream: "sluice:shop:{1001}:q", ID: "9999999999999-1", Values: []string{"x", "y"}},
		).Err(),
	)
	for range 100 {
		_, err := r.SetState(t.Context(), "1001", Frozen)
		if err == nil || errors.Is(err, redisconn.ErrBreakerOpen) {
			t.Fatalf("freeze: %v", err)
		}
	}
	stockIn(t, r)
}
