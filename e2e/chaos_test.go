package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// chaos is a sale in which everything fails that may: gates are killed and hang, so does Redis, which also loses its
// last writes and has its clock set, scripts are flushed, the shop answers 500 to what it has booked, hangs or resets,
// clients leave, and an operator restocks and refunds.
type chaos struct {
	t       *testing.T
	seed    uint64
	witness string // who remembers orders when a gate is killed: stateDir, settlement or alone
	redis   *redistest.Server
	turn    func(ahead time.Duration) // sets Redis' clock
	shop    *bookshop
	skus    []string
	users   int
	seats   []seat
	gates   []*running // changed by the breaker of gates alone
	file    string     // a gate's configuration, which tells commands which Redis
	settler *running   // nil where nothing is settled

	honest atomic.Bool // the shop has no mishaps any more

	mu     sync.Mutex
	orders map[string]string // at the shop: serial -> SKU
	counts map[string]int    // what happened
}

const (
	chaosPerUser = 2
	chaosUnits   = 60 // of each SKU, at first
	chaosGates   = 3
	aLongRun     = 2 * time.Minute
	healing      = 3 * time.Minute // more than a lease of the resolver and the patience of a doubt
	byItself     = 90 * time.Second
	stateDir     = "state_dir"
	settlement   = "settlement"
	alone        = "alone"
)

// dice are the seeded chance of one actor: what it does is repeatable, when the others do theirs is not.
func (c *chaos) dice(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, actor)) }

func (c *chaos) count(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what] += n
}

// Whatever dies, hangs or lies: afterwards the shop has the orders that the ledger calls sold, and no others. Where
// gates have a state folder, no operator has to open a SKU, but where Redis has lost the freeze itself.
// SLUICE_CHAOS_RUNS seeds are played, of each kind of witness by turns.
func TestChaos_BooksBalanceAfterChaos(t *testing.T) {
	testkit.Nightly(t, "it kills at random moments, for SLUICE_CHAOS")
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SLUICE_CHAOS"), "20s"))
	if err != nil || length <= 0 {
		t.Fatal("SLUICE_CHAOS is no duration, like 90s")
	}
	seed, err := strconv.ParseUint(os.Getenv("SLUICE_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64() >> 32
	}
	runs, err := strconv.ParseUint(os.Getenv("SLUICE_CHAOS_RUNS"), 10, 64)
	if err != nil {
		runs = 3
	}
	for n := range runs {
		t.Run(fmt.Sprintf("SLUICE_CHAOS=%v SLUICE_SEED=%d", length, seed+n), func(t *testing.T) {
			newChaos(t, seed+n, length).play(length)
		})
	}
}

func (c *chaos) play(length time.Duration) {
	t, stop := c.t, make(chan struct{})
	var crowd, mishaps sync.WaitGroup
	for i := range 60 {
		crowd.Go(func() { c.shopper(uint64(1000+i), stop) })
	}
	clerk := &operator{chaos: c, patience: 5 * time.Second, waits: c.witness != alone, dice: c.dice(1),
		units: map[string]int{}, verifying: map[string]time.Time{}, cancelled: map[string]string{},
		refunded: map[string]string{}}
	mishaps.Go(func() { clerk.work(stop) })
	mishaps.Go(func() { c.breakRedis(c.dice(2), stop) })
	c.breakGates(c.dice(3), time.Now().Add(length))
	close(stop)
	mishaps.Wait()
	crowd.Wait()
	c.honest.Store(true)
	c.turn(0)
	soon(t, "Redis has loaded what it kept", func() bool { return c.redis.Client.Ping(t.Context()).Err() == nil })

	if length >= aLongRun {
		clerk.patience = healing // so that what waits for the dead freezes
	}
	took := time.Now()
	for !c.healed() {
		if time.Since(took) > healing {
			t.Errorf("not healed within %v: %v", healing, c.accounts())
			break
		}
		clerk.waits = c.witness == stateDir || c.witness == settlement && time.Since(took) < byItself
		clerk.look(true)
		time.Sleep(time.Second) // between two looks of an operator
	}
	clerk.settle()
	t.Logf("%s: healed %v after the last mishap", c.witness, time.Since(took).Round(time.Second))
	c.balance(clerk)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		t.Logf("%6d %s", c.counts[what], what)
	}
}

// newChaos opens the shop, and starts Redis and the gates.
func newChaos(t *testing.T, seed uint64, length time.Duration) *chaos {
	c := &chaos{
		t: t, seed: seed, witness: []string{stateDir, settlement, alone}[seed%3], skus: []string{"1001", "1002", "1003"},
		users: max(200, int(20*length.Seconds())), orders: map[string]string{}, counts: map[string]int{},
	}
	c.redis, c.turn = redistest.StartWithClock(t, lasting...)
	c.shop = book(t, c.mishap)
	own := ""
	if c.witness == settlement {
		own = keepsChanges
		c.settler = settler(t, "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), redisAt(c.redis))
	}
	for range chaosGates {
		s := freeSeat(t)
		c.seats = append(c.seats, s)
		if c.witness == stateDir {
			own = "server.state_dir = " + strconv.Quote(t.TempDir())
		}
		g := gate(t, usualRedisAt(c.redis), boundless, s.setting, own, c.shop.setting(),
			`upstream.response_header_timeout = "500ms"
stock.reserve.reservation_ttl = "2s"
stock.reserve.max_per_user = `+strconv.Itoa(chaosPerUser)+"\n"+reserveRoutes)
		c.gates = append(c.gates, g)
	}
	c.file = c.gates[0].file
	for _, sku := range c.skus {
		ok(t, "stock", "set", "--config", c.file, sku, strconv.Itoa(chaosUnits))
	}
	return c
}

// accounts are the ledgers, by SKU.
func (c *chaos) accounts() map[string]account {
	all := map[string]account{}
	for _, sku := range c.skus {
		all[sku] = ledgerOf(c.t, c.redis, sku)
	}
	return all
}

// healed reports that nothing is undecided.
func (c *chaos) healed() bool {
	for _, a := range c.accounts() {
		if a.held > 0 {
			return false
		}
	}
	return !strings.Contains(ok(c.t, "stock", "list", "--config", c.file), "(")
}

// balance holds the ledgers against the shop.
func (c *chaos) balance(clerk *operator) {
	sold := 0
	for _, sku := range c.skus {
		a := ledgerOf(c.t, c.redis, sku)
		sold += a.sold
		want := chaosUnits + clerk.units[sku]
		if a.total != want || a.held != 0 || a.sold > a.total {
			c.t.Errorf("ledger of %s: %+v, want a total of %d", sku, a, want)
		}
		c.match(sku, a.sold)
	}
	c.shop.mu.Lock()
	for serial, n := range c.shop.came {
		if n > 1 {
			c.t.Errorf("the shop was sent the order %s %d times", serial, n)
		}
	}
	if c.shop.uninvited > 0 {
		c.t.Errorf("%d orders came without the gate's headers", c.shop.uninvited)
	}
	c.shop.mu.Unlock()
	for _, g := range c.gates {
		soon(c.t, "every ledger is audited again", c.audited(g))
		for _, series := range strings.Split(g.scrape(), "\n") {
			if strings.HasPrefix(series, "sluice_ledger_invariant_broken{") && !strings.HasSuffix(series, " 0") {
				c.t.Errorf("the audit finds: %s", series)
			}
		}
	}
	for _, sku := range c.skus {
		if c.settler != nil {
			soon(c.t, "the database has what the ledger of "+sku+" has", func() bool {
				return strings.Contains(settle(c.t, "verify", sku, "--config", c.settler.file).out, "equal;")
			})
		}
	}
	if sold == 0 || c.counts["orders that ended in an order"] == 0 {
		c.t.Error("nothing was sold: nothing was tried")
	}
	c.count("units sold in the end", sold)
}

// match holds the serials that the ledger calls confirmed against the orders of the shop, users against their limit,
// and the units of users against what is sold.
func (c *chaos) match(sku string, sold int) {
	records, units := c.entries(sku, "r"), 0
	for user, n := range c.entries(sku, "u") {
		has, err := strconv.Atoi(n)
		if units += has; err != nil || has <= 0 {
			c.t.Errorf("user %s has %q units of %s", user, n, sku)
		}
	}
	if units != sold {
		c.t.Errorf("users have %d units of %s, %d are sold", units, sku, sold)
	}
	c.matchDeadlines(sku, records)
	c.shop.mu.Lock()
	defer c.shop.mu.Unlock()
	users, orders := map[string]int{}, 0
	for serial, of := range c.orders {
		user, there := c.shop.orders[serial]
		if of != sku || !there {
			continue
		}
		orders++
		if users[user]++; users[user] > chaosPerUser {
			c.t.Errorf("user %s has %d orders of %s", user, users[user], sku)
		}
		if !strings.HasPrefix(records[serial], "C|") {
			c.t.Errorf("the shop has the order %s of %s, the ledger has %q", serial, sku, records[serial])
		}
	}
	for serial, record := range records {
		if _, there := c.shop.orders[serial]; strings.HasPrefix(record, "C|") && !there {
			c.t.Errorf("the ledger has the order %s of %s as %q, the shop has none", serial, sku, record)
		}
	}
	if orders != sold {
		c.t.Errorf("%d orders of %s at the shop, %d units sold", orders, sku, sold)
	}
}

// entries reads a hash of a ledger.
func (c *chaos) entries(sku, name string) map[string]string {
	all, err := c.redis.Client.HGetAll(c.t.Context(), "sluice:shop:{"+sku+"}:"+name).Result()
	if err != nil {
		c.t.Error(err)
	}
	return all
}

// matchDeadlines holds what has a time at which it is due against the records: released and refunded orders have the
// one until which they are kept, and where nothing is held no other order has one.
func (c *chaos) matchDeadlines(sku string, records map[string]string) {
	due, err := c.redis.Client.ZRange(c.t.Context(), "sluice:shop:{"+sku+"}:x", 0, -1).Result()
	if err != nil {
		c.t.Error(err)
	}
	for _, serial := range due {
		if r := records[serial]; !strings.HasPrefix(r, "X|") && !strings.HasPrefix(r, "R|") {
			c.t.Errorf("the order %s of %s is due some time, its record is %q", serial, sku, r)
		}
	}
}

// audited reports, once it is so, that a gate has audited as often as there are ledgers, and more.
func (c *chaos) audited(g *running) func() bool {
	before := g.metric("sluice_ledger_audits_total", `result="whole"`)
	return func() bool {
		return g.metric("sluice_ledger_audits_total", `result="whole"`) > before+float64(2*len(c.skus))
	}
}

// breakGates does a mishap after the other to the gates, one at a time, until the end.
func (c *chaos) breakGates(dice *rand.Rand, end time.Time) {
	for time.Now().Before(end) && !c.t.Failed() {
		time.Sleep(time.Duration(200+dice.IntN(2000)) * time.Millisecond) // between two mishaps
		i, away := dice.IntN(len(c.gates)), time.Duration(dice.IntN(1200))*time.Millisecond
		g := c.gates[i]
		switch what := dice.IntN(10); {
		case what < 5:
			c.count("gates killed", 1)
			g.die()
			time.Sleep(away) // the mishap
			c.gates[i] = g.again(c.t)
		case what < 9:
			c.count("gates that hung", 1)
			_ = g.process.Process.Signal(syscall.SIGSTOP)
			time.Sleep(away) // the mishap
			_ = g.process.Process.Signal(syscall.SIGCONT)
		default:
			c.count("gates drained and started again", 1)
			g.terminate()
			if code := g.stopped(); code != 0 {
				c.t.Errorf("a gate that was asked to stop ended with exit code %d", code)
			}
			c.gates[i] = g.again(c.t)
		}
	}
}

// breakRedis does a mishap after the other to Redis until stop.
func (c *chaos) breakRedis(dice *rand.Rand, stop <-chan struct{}) {
	for !within(time.Duration(500+dice.IntN(3000))*time.Millisecond, stop) {
		away := time.Duration(dice.IntN(900)) * time.Millisecond
		switch what := dice.IntN(10); {
		case what < 2:
			c.count("Redis killed", 1)
			c.redis.Kill()
			time.Sleep(away) // the mishap
			c.redis.Restart()
		case what < 4:
			c.count("Redis killed, and its last writes lost", 1)
			end := c.redis.Written()
			time.Sleep(time.Duration(dice.IntN(300)) * time.Millisecond) // what is lost
			c.redis.Kill()
			c.redis.Cut(end)
			time.Sleep(away) // the mishap
			c.redis.Restart()
		case what < 6:
			c.count("clocks of Redis set", 1)
			most := []time.Duration{time.Second, time.Minute, 24 * time.Hour}[dice.IntN(3)]
			c.turn(time.Duration(dice.NormFloat64() * float64(most)))
		case what < 8:
			c.count("Redis that hung", 1)
			c.redis.Pause()
			time.Sleep(away) // the mishap
			c.redis.Resume()
		default:
			c.count("scripts flushed", 1)
			c.redis.Client.ScriptFlush(c.t.Context())
		}
	}
}

// within waits, and reports whether stop came meanwhile.
func within(wait time.Duration, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	case <-time.After(wait):
		return false
	}
}

// seat is where a gate listens, whichever process it is.
type seat struct{ setting, front, admin string }

// freeSeat has addresses that stay free while its gate is dead.
func freeSeat(t *testing.T) seat {
	t.Helper()
	front, ops, admin := testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t)
	return seat{
		setting: fmt.Sprintf("server.listen = [%q]\nops.listen = %q\nadmin.listen = %q\nserver.shutdown_delay = \"0s\"",
			front, ops, admin),
		front: front, admin: admin,
	}
}
