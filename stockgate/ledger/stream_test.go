package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

const stream = "sluice:shop:{1001}:q"

// acknowledged is a Redis whose stream forgets only what consumers have, with n changes of 1001; more than 10 alarm.
func acknowledged(t *testing.T, n int) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	o.Events, o.Acknowledged = 10, true
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, int64(n), 0))
	for i := range n - 1 {
		testkit.Want(t, "change", takeUnit(t, r, fmt.Sprint(i), ""), Held)
	}
	return server, r
}

// at is the position of a version.
func at1001(t *testing.T, r *Store, ver int64) string {
	t.Helper()
	return fmt.Sprint(stockIn(t, r).Epoch, "-", ver)
}

// first is the version of the oldest change that is still there.
func first(t *testing.T, server *redistest.Server) (ver int64) {
	t.Helper()
	all := testkit.Must[[]redis.XMessage](t)(server.Client.XRangeN(t.Context(), stream, "-", "+", 1).Result())
	_, err := fmt.Sscanf(all[0].ID[strings.Index(all[0].ID, "-"):], "-%d", &ver)
	testkit.Check(t, err)
	return ver
}

func TestStream_ChangesStayUntilTheyAreAcknowledged(t *testing.T) {
	server, r := acknowledged(t, 1_000)
	testkit.Want(t, "kept", server.Client.XLen(t.Context(), stream).Val(), 1_000)
	testkit.Want(t, "left", testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, 700))), 300)
	testkit.Want(t, "the oldest", first(t, server), 701)
	testkit.Want(t, "again", testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, 700))), 300)
	testkit.Want(
		t,
		"an older one",
		testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, 1))),
		300,
	)
	testkit.Want(
		t,
		"of an earlier ledger",
		testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, "1-999999")),
		300,
	)
	testkit.Want(
		t,
		"all but the last",
		testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, 1_000))),
		1,
	)
	testkit.Want(t, "the oldest", first(t, server), 1_000)
	testkit.Want(t, "selling goes on", takeUnit(t, r, "next", ""), Held)
	testkit.Want(t, "the next is there", server.Client.XLen(t.Context(), stream).Val(), 2)
}

func TestStream_SlowestConsumerGroupDecidesWhatStays(t *testing.T) {
	server, r := acknowledged(t, 100)
	c := server.Client
	for _, group := range []string{"fast", "slow"} {
		testkit.Check(t, c.XGroupCreate(t.Context(), stream, group, "0").Err())
	}
	read := func(group string, n int64) []string {
		got := testkit.Must[[]redis.XStream](t)(c.XReadGroup(t.Context(), &redis.XReadGroupArgs{
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
		testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, 90)))
		return first(t, server)
	}
	testkit.Want(t, "nobody has read", acknowledge(), 1)
	testkit.Check(t, c.XAck(t.Context(), stream, "fast", read("fast", 80)...).Err())
	ids := read("slow", 50)
	testkit.Want(t, "the slow one has finished nothing", acknowledge(), 1)
	testkit.Check(t, c.XAck(t.Context(), stream, "slow", ids[:20]...).Err())
	testkit.Want(t, "the slow one has finished 20", acknowledge(), 21)
	testkit.Check(t, c.XAck(t.Context(), stream, "slow", append(ids[20:], read("slow", 50)...)...).Err())
	testkit.Want(t, "the fast one is the slower one now", acknowledge(), 81)
	testkit.Check(t, c.XAck(t.Context(), stream, "fast", read("fast", 80)...).Err())
	testkit.Want(t, "all but the position", acknowledge(), 91)
}

func TestStream_RejectsAPositionThatNoConsumerCanHaveRead(t *testing.T) {
	server, r := acknowledged(t, 5)
	for _, position := range []string{at1001(t, r, 6), "99999999999999-1", "", "5", "-", "1-", "-1", "a-b", "1-1-1",
		"1.5-1", "1-1 ", "1-1234567890123456"} {
		if left, err := r.Acknowledge(t.Context(), testSKU, position); err == nil {
			t.Errorf("%q: accepted, %d left", position, left)
		}
	}
	if _, err := r.Acknowledge(t.Context(), "none", "1-1"); err == nil {
		t.Error("a ledger that is not there: accepted")
	}
	testkit.Want(t, "kept", server.Client.XLen(t.Context(), stream).Val(), 5)
}

func TestStream_NewLedgerHasALaterEpochAlthoughAllWasAcknowledged(t *testing.T) {
	server, r := acknowledged(t, 5)
	for range 100 {
		testkit.Must[Stock](t)(r.SetState(t.Context(), testSKU, Frozen)) // ahead of the clock
	}
	before := stockIn(t, r)
	testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, before.Ver)))
	k := keys(testSKU)
	testkit.Check(t, server.Client.Del(t.Context(), k[:4]...).Err())
	after := testkit.Must[Stock](t)(r.Recreate(t.Context(), testSKU, 5, 2, false))
	if after.Epoch <= before.Epoch {
		t.Fatalf("epoch %d after %d", after.Epoch, before.Epoch)
	}
}

func TestStream_WithoutConsumersIsAnAlarm(t *testing.T) {
	t.Parallel()
	_, r := acknowledged(t, 11)
	testkit.Check(t, differ("late", errors.Join(r.Backlog(t.Context(), []string{testSKU})...) != nil, true))
	testkit.Must[int64](t)(r.Acknowledge(t.Context(), testSKU, at1001(t, r, 1)))
	testkit.Check(t, errors.Join(r.Backlog(t.Context(), []string{testSKU})...))
	testkit.Check(t, errors.Join(r.Backlog(t.Context(), []string{"none"})...))
	_, other := onRedis(t)
	// whose stream is bounded by itself
	testkit.Check(t, errors.Join(other.Backlog(t.Context(), []string{testSKU})...))
}

// Who cannot ask does not know that no consumer is behind any more.
func TestStream_AlarmStaysWhileRedisRejectsConnections(t *testing.T) {
	server := redistest.Start(t)
	testkit.Check(t, server.Client.Do(t.Context(), "acl", "setuser", "app", "on", ">word", "~*", "&*", "+@all").Err())
	o := optionsFor(server, 4)
	o.Events, o.Acknowledged, o.Username, o.Password = 10, true, "app", func() string { return "word" }
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 20, 0))
	testkit.Check(t, server.Client.Do(t.Context(), "acl", "setuser", "app", "resetpass", ">another").Err())
	testkit.Check(t, server.Client.Do(t.Context(), "client", "kill", "user", "app").Err())
	testkit.Eventually(t, "the end of the old connections is noticed", func() bool {
		errs := r.Backlog(t.Context(), []string{testSKU})
		if errs == nil {
			t.Fatal("no consumer is behind any more")
		}
		return redis.HasErrorPrefix(errs[0], "WRONGPASS")
	})
	for range 5 {
		if errs := r.Backlog(t.Context(), []string{testSKU}); errs == nil ||
			!redis.HasErrorPrefix(errs[0], "WRONGPASS") {
			t.Errorf("behind: %v", errs)
		}
		if err := r.SweepAll(t.Context(), []string{testSKU}, 1, 2)[0].Err; !strings.Contains(
			fmt.Sprint(err),
			"WRONGPASS",
		) {
			t.Errorf("sweep: %v", err)
		}
	}
}
