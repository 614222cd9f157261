package ledger

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/testkit"
)

// consumer rebuilds a ledger as docs/metrics.md tells, by Redis' own commands.
type consumer struct {
	client *redis.Client
	epoch  int64
	ver    int64
	stock  map[string]string
	orders map[string]string
}

// begin is steps 1 and 2.
func (c *consumer) begin(t *testing.T) {
	t.Helper()
	at := testkit.Must[[]any](t)(c.client.HMGet(t.Context(), "sluice:shop:{1001}:s", "epoch", "ver").Result())
	c.epoch, c.ver = integer(at[0].(string)), integer(at[1].(string))
	c.stock, c.orders = map[string]string{}, map[string]string{}
	for cursor, again := uint64(0), true; again; again = cursor != 0 {
		pairs, next, err := c.client.HScan(t.Context(), "sluice:shop:{1001}:r", cursor, "", 10).Result()
		testkit.Check(t, err)
		for i := 0; i < len(pairs); i += 2 {
			c.orders[pairs[i]] = pairs[i+1]
		}
		cursor = next
	}
}

// goOn is step 3. It reports a hole.
func (c *consumer) goOn(t *testing.T) error {
	t.Helper()
	entries := testkit.Must[[]redis.XMessage](t)(
		c.client.XRange(t.Context(), "sluice:shop:{1001}:q", fmt.Sprintf("(%d-%d", c.epoch, c.ver), "+").Result(),
	)
	for _, e := range entries {
		var epoch, ver int64
		_, err := fmt.Sscanf(e.ID, "%d-%d", &epoch, &ver)
		testkit.Check(t, err)
		if ver != c.ver+1 {
			return fmt.Errorf("%s after %d-%d", e.ID, c.epoch, c.ver)
		}
		c.epoch, c.ver = epoch, ver
		for name, value := range e.Values {
			if serial, ok := strings.CutPrefix(name, "r:"); ok {
				c.orders[serial] = value.(string)
			} else {
				c.stock[name] = value.(string)
			}
		}
	}
	return nil
}

// sell lets many orders come, be confirmed and given back, until stop is closed.
func sell(t *testing.T, r *Store, stop chan struct{}) (wait func()) {
	var sellers sync.WaitGroup
	for g := range 4 {
		sellers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				serial := fmt.Sprint(g, "-", i)
				takeUnit(t, r, serial, "ann|"+serial)
				finishOne(t, r, []Op{Confirm, Release, Refund}[i%3], serial)
			}
		})
	}
	return sellers.Wait
}

func TestRedisstore_ConsumerThatBeginsAmidASaleRebuildsTheLedger(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 100_000, 0))
	stop := make(chan struct{})
	wait := sell(t, r, stop)
	for server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val() < 600 {
	}
	c := consumer{client: server.Client}
	c.begin(t)
	for server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val() < int64(len(c.orders)+100) {
	}
	close(stop)
	wait()
	testkit.Check(t, c.goOn(t))
	numbers := testkit.Must[map[string]string](t)(server.Client.HGetAll(t.Context(), "sluice:shop:{1001}:s").Result())
	for _, name := range []string{"total", "held", "sold", "state", "limit", "opens", "closes"} {
		testkit.Want(t, name, c.stock[name], numbers[name])
	}
	testkit.Check(
		t,
		differ(
			"orders",
			c.orders,
			testkit.Must[map[string]string](t)(server.Client.HGetAll(t.Context(), "sluice:shop:{1001}:r").Result()),
		),
	)
	sums := map[byte]int64{}
	for _, record := range c.orders {
		sums[record[0]] += integer(strings.Split(record, "|")[1])
	}
	testkit.Want(t, "held", fmt.Sprint(sums['H']), numbers["held"])
	testkit.Want(t, "sold", fmt.Sprint(sums['C']), numbers["sold"])
}

func TestRedisstore_ConsumerSeesThatEntriesWereDropped(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	c := consumer{client: server.Client}
	c.begin(t)
	for i := range 3 {
		testkit.Want(t, "change", finishOne(t, r, Release, fmt.Sprint(i)), Changed)
	}
	testkit.Check(t, server.Client.XTrimMaxLen(t.Context(), "sluice:shop:{1001}:q", 2).Err())
	if c.goOn(t) == nil {
		t.Fatal("a hole was not seen")
	}
	c.begin(t)
	testkit.Check(t, c.goOn(t))
}

// The page for consumers names all that a stream can hold.
func TestRedisstore_PageForConsumersNamesEveryFieldAndOp(t *testing.T) {
	t.Parallel()
	page := string(testkit.Must[[]byte](t)(os.ReadFile("../../docs/metrics.md")))
	server, r := onRedis(t)
	ctx := t.Context()
	testkit.Must[Stock](t)(r.Add(ctx, testSKU, 3, "id"))
	testkit.Must[Stock](t)(r.SetSchedule(ctx, testSKU, 0, 1<<40))
	testkit.Must[Stock](t)(r.SetState(ctx, testSKU, Frozen))
	finishOne(t, r, Release, "a")
	finishOne(t, r, Refund, "b")
	finishOne(t, r, Adopt, "c")
	found := map[string]bool{}
	for _, e := range testkit.Must[[]redis.XMessage](t)(server.Client.XRange(ctx, "sluice:shop:{1001}:q", "-",
		"+").Result()) {
		for name := range e.Values {
			if !strings.HasPrefix(name, "r:") {
				found[name] = true
			}
		}
		found[e.Values["op"].(string)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !regexp.MustCompile("(?m)^\\|.*`" + name + "`").MatchString(page) {
			t.Errorf("%s is not named", name)
		}
	}
	testkit.Want(t, "names", len(found), 11+9-2) // total and state are both
}
