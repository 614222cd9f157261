package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

const stream = "sluice:{1001}:q"

// acknowledged is a Redis whose stream forgets only what consumers have, with n changes of 1001; more than 10 alarm.
func acknowledged(t *testing.T, n int) (*redistest.Server, *Redis) {
	t.Helper()
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	o.Events, o.Acknowledged = 10, true
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	must[Stock](t)(r.SetTotal(t.Context(), sku, int64(n), 0))
	for i := range n - 1 {
		want(t, "change", take(t, r, fmt.Sprint(i), ""), Held)
	}
	return server, r
}

// at is the position of a version.
func at1001(t *testing.T, r *Redis, ver int64) string {
	t.Helper()
	return fmt.Sprint(stockOf1001(t, r).Epoch, "-", ver)
}

// first is the version of the oldest change that is still there.
func first(t *testing.T, server *redistest.Server) (ver int64) {
	t.Helper()
	all := must[[]redis.XMessage](t)(server.Client.XRangeN(t.Context(), stream, "-", "+", 1).Result())
	_, err := fmt.Sscanf(all[0].ID[strings.Index(all[0].ID, "-"):], "-%d", &ver)
	check(t, err)
	return ver
}

func TestChangesStayUntilTheyAreAcknowledged(t *testing.T) {
	server, r := acknowledged(t, 1_000)
	want(t, "kept", server.Client.XLen(t.Context(), stream).Val(), 1_000)
	want(t, "left", must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, 700))), 300)
	want(t, "the oldest", first(t, server), 701)
	want(t, "again", must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, 700))), 300)
	want(t, "an older one", must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, 1))), 300)
	want(t, "of an earlier ledger", must[int64](t)(r.Acknowledge(t.Context(), sku, "1-999999")), 300)
	want(t, "all but the last", must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, 1_000))), 1)
	want(t, "the oldest", first(t, server), 1_000)
	want(t, "selling goes on", take(t, r, "next", ""), Held)
	want(t, "the next is there", server.Client.XLen(t.Context(), stream).Val(), 2)
}

func TestSlowestConsumerGroupDecidesWhatStays(t *testing.T) {
	server, r := acknowledged(t, 100)
	c := server.Client
	for _, group := range []string{"fast", "slow"} {
		check(t, c.XGroupCreate(t.Context(), stream, group, "0").Err())
	}
	read := func(group string, n int64) []string {
		got := must[[]redis.XStream](t)(c.XReadGroup(t.Context(), &redis.XReadGroupArgs{
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
		must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, 90)))
		return first(t, server)
	}
	want(t, "nobody has read", acknowledge(), 1)
	check(t, c.XAck(t.Context(), stream, "fast", read("fast", 80)...).Err())
	ids := read("slow", 50)
	want(t, "the slow one has finished nothing", acknowledge(), 1)
	check(t, c.XAck(t.Context(), stream, "slow", ids[:20]...).Err())
	want(t, "the slow one has finished 20", acknowledge(), 21)
	check(t, c.XAck(t.Context(), stream, "slow", append(ids[20:], read("slow", 50)...)...).Err())
	want(t, "the fast one is the slower one now", acknowledge(), 81)
	check(t, c.XAck(t.Context(), stream, "fast", read("fast", 80)...).Err())
	want(t, "all but the position", acknowledge(), 91)
}

func TestPositionThatNobodyCanHaveReadIsRefused(t *testing.T) {
	server, r := acknowledged(t, 5)
	for _, position := range []string{at1001(t, r, 6), "99999999999999-1", "", "5", "-", "1-", "-1", "a-b", "1-1-1", "1.5-1", "1-1 ", "1-1234567890123456"} {
		if left, err := r.Acknowledge(t.Context(), sku, position); err == nil {
			t.Errorf("%q: accepted, %d left", position, left)
		}
	}
	if _, err := r.Acknowledge(t.Context(), "none", "1-1"); err == nil {
		t.Error("a ledger that is not there: accepted")
	}
	want(t, "kept", server.Client.XLen(t.Context(), stream).Val(), 5)
}

func TestNewLedgerHasALaterEpochAlthoughAllWasAcknowledged(t *testing.T) {
	server, r := acknowledged(t, 5)
	for range 100 {
		must[Stock](t)(r.SetState(t.Context(), sku, Frozen)) // ahead of the clock
	}
	before := stockOf1001(t, r)
	must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, before.Ver)))
	k := keys(sku)
	check(t, server.Client.Del(t.Context(), k[:4]...).Err())
	if after := must[Stock](t)(r.SetTotal(t.Context(), sku, 5, 2)); after.Epoch <= before.Epoch {
		t.Fatalf("epoch %d after %d", after.Epoch, before.Epoch)
	}
}

func TestStreamThatNobodyReadsIsAnAlarm(t *testing.T) {
	_, r := acknowledged(t, 11)
	check(t, differ("late", errors.Join(r.behind(t.Context(), []string{sku})...) != nil, true))
	must[int64](t)(r.Acknowledge(t.Context(), sku, at1001(t, r, 1)))
	check(t, errors.Join(r.behind(t.Context(), []string{sku})...))
	check(t, errors.Join(r.behind(t.Context(), []string{"none"})...))
	_, other := onRedis(t) // whose stream is bounded by itself
	check(t, errors.Join(other.behind(t.Context(), []string{sku})...))
}

// Who cannot ask does not know that nobody is behind any more.
func TestAlarmStaysWhileRedisLetsNobodyIn(t *testing.T) {
	server := redistest.Start(t)
	check(t, server.Client.Do(t.Context(), "acl", "setuser", "app", "on", ">word", "~*", "&*", "+@all").Err())
	o := optionsFor(server, 4)
	o.Events, o.Acknowledged, o.Username, o.Password = 10, true, "app", func() string { return "word" }
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	must[Stock](t)(r.SetTotal(t.Context(), sku, 20, 0))
	check(t, server.Client.Do(t.Context(), "acl", "setuser", "app", "resetpass", ">another").Err())
	check(t, server.Client.Do(t.Context(), "client", "kill", "user", "app").Err())
	for range 5 {
		if errs := r.behind(t.Context(), []string{sku}); errs == nil || !redis.HasErrorPrefix(errs[0], "WRONGPASS") {
			t.Errorf("behind: %v", errs)
		}
		if err := r.SweepAll(t.Context(), []string{sku}, 1, 2)[0].Err; !strings.Contains(fmt.Sprint(err), "WRONGPASS") {
			t.Errorf("sweep: %v", err)
		}
	}
}

// laggard is a store whose consumers are behind when it is told so.
type laggard struct {
	*shelf
	mu  sync.Mutex
	err error
}

func (l *laggard) behind(_ context.Context, skus []string) []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Repeat([]error{l.err}, len(skus))
}

func (l *laggard) be(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func TestDeskSaysOnceThatChangesPileUpAndThatTheyDoNoMore(t *testing.T) {
	at(t, func(t *testing.T) {
		var said strings.Builder
		s := &laggard{shelf: shelfOf(sku, 1)}
		o := deskOptions()
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
		d := opened(t, o, s, nil)
		d.Watch(sku)
		for _, c := range []struct {
			err    error
			behind int64
			lines  int
		}{{nil, 0, 0}, {errBehind, 1, 1}, {errLost, 1, 1}, {nil, 0, 2}, {errLost, 0, 2}} {
			s.be(c.err)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			want(t, "behind", d.behind.Load(), c.behind)
			want(t, "lines of the log", strings.Count(said.String(), "\n"), c.lines)
		}
	})
}
