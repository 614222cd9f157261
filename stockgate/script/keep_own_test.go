package script

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger/protocol"
)

const ownTake = `if redis.call('HSETNX', KEYS[2], ARGV[1], 1) == 0 then return 1 end
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n < 1 then redis.call('HDEL', KEYS[2], ARGV[1]) return 0 end
redis.call('DECR', KEYS[1]) return 1`
const ownBack = `if redis.call('HDEL', KEYS[2], ARGV[1]) == 1 then redis.call('INCR', KEYS[1]) return 1 end return 0`

// ownDef is a script of the shop's own that may be repeated: it says "taken" of what it has taken before.
func ownDef() Definition {
	return Definition{File: "take.lua", Take: ownTake, GiveBack: "back.lua", Back: ownBack, Repeatable: true,
		Keys: []string{"stock:{$sku}", "orders:{$sku}"}, Args: []string{"$serial"},
		Codes: map[string]string{"1": "taken", "0": "sold_out"}}
}

func ownLeft(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	n, err := c.Get(background, "stock:{1001}").Int64()
	return number(t, n, err)
}

func TestKeep_OwnRepeatableScriptDoesNotRunForASerialThatIsKnown(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	check(t, r.Client.Set(background, "stock:{1001}", 5, 0).Err())
	d := reserver(t, r.Addr, ownDef(), keeping(time.Minute, &shopStatus{}))
	hears := func(key string, want reject.Reason, left int64) string {
		t.Helper()
		reason, serial := take(d, "1001", "7", key, 1)
		if n := ownLeft(t, r.Client); reason != want || n != left {
			t.Errorf("%s: heard %s, want %s; %d left, want %d", key, reason, want, n, left)
		}
		return serial
	}
	finish(t, d, protocol.Release, "1001", "early")
	hears("early", reject.Released, 5)
	d.Settle([]byte("1001"), hears("rejected", reject.Admitted, 4), metrics.OrderRejected)
	testkit.Eventually(t, "the unit is back", func() bool { return ownLeft(t, r.Client) == 5 })
	hears("rejected", reject.Released, 5)
	serial := hears("bought", reject.Admitted, 4)
	d.Settle([]byte("1001"), serial, metrics.OrderConfirmed)
	testkit.Eventually(t, "it is confirmed", func() bool { return kept(d, "1001", serial) == "confirmed" })
	hears("bought", reject.Confirmed, 4)
	finish(t, d, protocol.Refund, "1001", serial)
	testkit.Eventually(t, "the unit is back", func() bool { return ownLeft(t, r.Client) == 5 })
	hears("bought", reject.Released, 5)
	if n := d.counts.ended(taken) + d.counts.sum(unitsUnanswered); n != 2 {
		t.Errorf("the script took %d times", n)
	}
}

// The release comes after the record was looked for, and before the script runs.
func TestKeep_ReleaseWhileAnOwnScriptRunsGivesItsUnitBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	check(t, r.Client.Set(background, "stock:{1001}", 5, 0).Err())
	w := between(t, r.Addr)
	other := reserver(t, r.Addr, ownDef(), keeping(time.Minute, &shopStatus{}))
	d := reserver(t, w.addr, ownDef(), keeping(time.Minute, &shopStatus{}))
	var release sync.Once
	hook := func(command string) {
		if strings.Contains(command, d.script.taking.sha) {
			release.Do(func() { finish(t, other, protocol.Release, "1001", "mine") })
		}
	}
	w.seen.Store(&hook)
	if reason, _ := take(d, "1001", "7", "mine", 1); reason != reject.Released {
		t.Errorf("heard %s", reason)
	}
	testkit.Eventually(t, "the unit was taken and is back", func() bool {
		return d.counts.sum(unitsGivenBack) == 1 && ownLeft(t, r.Client) == 5
	})
}

// Another instance keeps an order of this serial, and gives its units back, between the run of the script here and the
// record. They are the same units.
func TestKeep_UnitsOfAnotherInstancesOrderAreNotGivenBackTwice(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	check(t, r.Client.Set(background, "stock:{1001}", 5, 0).Err())
	def := ownDef()
	def.Back = `redis.call('HDEL', KEYS[2], ARGV[1]) redis.call('INCR', KEYS[1]) return 1`
	w := between(t, r.Addr)
	other := reserver(t, r.Addr, def, keeping(time.Minute, &shopStatus{}))
	d := reserver(t, w.addr, def, keeping(time.Minute, &shopStatus{}))
	var first sync.Once
	hook := func(command string) {
		if !strings.Contains(command, `"by":`) { // of the payload, in lower case
			return
		}
		first.Do(func() {
			reason, serial := take(other, "1001", "7", "mine", 1)
			if reason != reject.Admitted || ownLeft(t, r.Client) != 4 {
				t.Errorf("the other instance heard %s", reason)
			}
			other.Settle([]byte("1001"), serial, metrics.OrderRejected)
			testkit.Eventually(t, "the unit is back", func() bool { return ownLeft(t, r.Client) == 5 })
		})
	}
	w.seen.Store(&hook)
	if reason, _ := take(d, "1001", "7", "mine", 1); reason != reject.Released {
		t.Errorf("heard %s", reason)
	}
	d.Close(background)
	if n := ownLeft(t, r.Client); n != 5 || d.counts.sum(unitsUnanswered) != 1 {
		t.Errorf("%d units of 5 are for sale", n)
	}
}

// A client that tries again after stock_error has the units of its first try.
func TestKeep_OwnUnitThatCouldNotBeKeptIsThatOfTheNextTry(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	check(t, r.Client.Set(background, "stock:{1001}", 5, 0).Err())
	d := reserver(t, r.Addr, ownDef(), keeping(time.Minute, &shopStatus{}))
	take(d, "1001", "7", "first", 1)
	check(t, r.Client.Do(background, "ACL", "SETUSER", "default", "-sadd").Err())
	if reason, _ := take(d, "1001", "7", "mine", 1); reason != reject.StockError {
		t.Errorf("heard %s", reason)
	}
	check(t, r.Client.Do(background, "ACL", "SETUSER", "default", "+sadd").Err())
	if reason, _ := take(d, "1001", "7", "mine", 1); reason != reject.Admitted || ownLeft(t, r.Client) != 3 {
		t.Errorf("heard %s, %d left", reason, ownLeft(t, r.Client))
	}
}
