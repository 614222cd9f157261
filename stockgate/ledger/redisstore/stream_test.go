package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

const stream = "sluice:shop:{1001}:q"

// acknowledged is a Redis whose stream forgets only what consumers have, with n changes of 1001; more than 10 alarm.
func acknowledged(t *testing.T, n int) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	o.Events, o.Acknowledged = 10, true
	r := ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { r.Close() })
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, int64(n), 0))
	for i := range n - 1 {
		ledgertest.Want(t, "change", ledgertest.Take(t, r, fmt.Sprint(i), ""), protocol.Held)
	}
	return server, r
}

// at is the position of a version.
func at1001(t *testing.T, r *Store, ver int64) string {
	t.Helper()
	return fmt.Sprint(ledgertest.StockOf(t, r).Epoch, "-", ver)
}

// first is the version of the oldest change that is still there.
func first(t *testing.T, server *redistest.Server) (ver int64) {
	t.Helper()
	all := ledgertest.Must[[]redis.XMessage](t)(server.Client.XRangeN(t.Context(), stream, "-", "+", 1).Result())
	_, err := fmt.Sscanf(all[0].ID[strings.Index(all[0].ID, "-"):], "-%d", &ver)
	ledgertest.Check(t, err)
	return ver
}

func TestStream_ChangesStayUntilTheyAreAcknowledged(t *testing.T) {
	server, r := acknowledged(t, 1_000)
	ledgertest.Want(t, "kept", server.Client.XLen(t.Context(), stream).Val(), 1_000)
	ledgertest.Want(
		t,
		"left",
		ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, 700))),
		300,
	)
	ledgertest.Want(t, "the oldest", first(t, server), 701)
	ledgertest.Want(
		t,
		"again",
		ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, 700))),
		300,
	)
	ledgertest.Want(
		t,
		"an older one",
		ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, 1))),
		300,
	)
	ledgertest.Want(
		t,
		"of an earlier ledger",
		ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, "1-999999")),
		300,
	)
	ledgertest.Want(
		t,
		"all but the last",
		ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, 1_000))),
		1,
	)
	ledgertest.Want(t, "the oldest", first(t, server), 1_000)
	ledgertest.Want(t, "selling goes on", ledgertest.Take(t, r, "next", ""), protocol.Held)
	ledgertest.Want(t, "the next is there", server.Client.XLen(t.Context(), stream).Val(), 2)
}

func TestStream_SlowestConsumerGroupDecidesWhatStays(t *testing.T) {
	server, r := acknowledged(t, 100)
	c := server.Client
	for _, group := range []string{"fast", "slow"} {
		ledgertest.Check(t, c.XGroupCreate(t.Context(), stream, group, "0").Err())
	}
	read := func(group string, n int64) []string {
		got := ledgertest.Must[[]redis.XStream](t)(c.XReadGroup(t.Context(), &redis.XReadGroupArgs{
			Group: group, Consumer: "one", Streams: []string{stream, ">"}, Count: n, Block: -1,
		}).Result())
		var ids []string
		for _, m := range got[0].Messages {
			ids = append(ids, m.ID)
		}
		return ids
	}
	acknowledge := func() int64 {
		t.Helper()
		ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, 90)))
		return first(t, server)
	}
	ledgertest.Want(t, "nobody has read", acknowledge(), 1)
	ledgertest.Check(t, c.XAck(t.Context(), stream, "fast", read("fast", 80)...).Err())
	ids := read("slow", 50)
	ledgertest.Want(t, "the slow one has finished nothing", acknowledge(), 1)
	ledgertest.Check(t, c.XAck(t.Context(), stream, "slow", ids[:20]...).Err())
	ledgertest.Want(t, "the slow one has finished 20", acknowledge(), 21)
	ledgertest.Check(t, c.XAck(t.Context(), stream, "slow", append(ids[20:], read("slow", 50)...)...).Err())
	ledgertest.Want(t, "the fast one is the slower one now", acknowledge(), 81)
	ledgertest.Check(t, c.XAck(t.Context(), stream, "fast", read("fast", 80)...).Err())
	ledgertest.Want(t, "all but the position", acknowledge(), 91)
}

func TestStream_RejectsAPositionThatNoConsumerCanHaveRead(t *testing.T) {
	server, r := acknowledged(t, 5)
	for _, position := range []string{at1001(t, r, 6), "99999999999999-1", "", "5", "-", "1-", "-1", "a-b", "1-1-1",
		"1.5-1", "1-1 ", "1-1234567890123456"} {
		if left, err := r.Acknowledge(t.Context(), ledgertest.SKU, position); err == nil {
			t.Errorf("%q: accepted, %d left", position, left)
		}
	}
	if _, err := r.Acknowledge(t.Context(), "none", "1-1"); err == nil {
		t.Error("a ledger that is not there: accepted")
	}
	ledgertest.Want(t, "kept", server.Client.XLen(t.Context(), stream).Val(), 5)
}

func TestStream_NewLedgerHasALaterEpochAlthoughAllWasAcknowledged(t *testing.T) {
	server, r := acknowledged(t, 5)
	for range 100 {
		ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), ledgertest.SKU, protocol.Frozen)) // ahead of the clock
	}
	before := ledgertest.StockOf(t, r)
	ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, before.Ver)))
	k := keys(ledgertest.SKU)
	ledgertest.Check(t, server.Client.Del(t.Context(), k[:4]...).Err())
	after := ledgertest.Must[protocol.Stock](t)(r.Recreate(t.Context(), ledgertest.SKU, 5, 2, false))
	if after.Epoch <= before.Epoch {
		t.Fatalf("epoch %d after %d", after.Epoch, before.Epoch)
	}
}

func TestStream_WithoutConsumersIsAnAlarm(t *testing.T) {
	_, r := acknowledged(t, 11)
	ledgertest.Check(
		t,
		ledgertest.Differ("late", errors.Join(r.Backlog(t.Context(), []string{ledgertest.SKU})...) != nil, true),
	)
	ledgertest.Must[int64](t)(r.Acknowledge(t.Context(), ledgertest.SKU, at1001(t, r, 1)))
	ledgertest.Check(t, errors.Join(r.Backlog(t.Context(), []string{ledgertest.SKU})...))
	ledgertest.Check(t, errors.Join(r.Backlog(t.Context(), []string{"none"})...))
	_, other := onRedis(t)
	ledgertest. // whose stream is bounded by itself
			Check(t, errors.Join(other.Backlog(t.Context(), []string{ledgertest.SKU})...))
}

// Who cannot ask does not know that no consumer is behind any more.
func TestStream_AlarmStaysWhileRedisRejectsConnections(t *testing.T) {
	server := redistest.Start(t)
	ledgertest.Check(t, server.Client.Do(t.Context(), "acl", "setuser", "app", "on", ">word", "~*", "&*", "+@all").Err())
	o := optionsFor(server, 4)
	o.Events, o.Acknowledged, o.Username, o.Password = 10, true, "app", func() string { return "word" }
	r := ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { r.Close() })
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, 20, 0))
	ledgertest.Check(t, server.Client.Do(t.Context(), "acl", "setuser", "app", "resetpass", ">another").Err())
	ledgertest.Check(t, server.Client.Do(t.Context(), "client", "kill", "user", "app").Err())
	ledgertest.Until(t, "the end of the old connections is noticed", func() bool {
		errs := r.Backlog(t.Context(), []string{ledgertest.SKU})
		if errs == nil {
			t.Fatal("no consumer is behind any more")
		}
		return redis.HasErrorPrefix(errs[0], "WRONGPASS")
	})
	for range 5 {
		if errs := r.Backlog(t.Context(), []string{ledgertest.SKU}); errs == nil ||
			!redis.HasErrorPrefix(errs[0], "WRONGPASS") {
			t.Errorf("behind: %v", errs)
		}
		if err := r.SweepAll(t.Context(), []string{ledgertest.SKU}, 1, 2)[0].Err; !strings.Contains(
			fmt.Sprint(err),
			"WRONGPASS",
		) {
			t.Errorf("sweep: %v", err)
		}
	}
}
