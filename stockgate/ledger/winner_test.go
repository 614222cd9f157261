package ledger

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

// crowd are buyers who order a few units again and again through any of three reservers, with keys and without. Some
// give back what they have; the shop confirms the rest some time later.
type crowd struct {
	mu        sync.Mutex
	r         *rand.Rand
	reservers []*Reserver
	won       map[string]time.Time // by name: since when one has a unit
	told      map[Code]int         // to who has one for long enough
}

func (c *crowd) chance(percent int) bool { return c.upTo(100) < percent }

func (c *crowd) upTo(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.IntN(n)
}

// shop is one buyer's afternoon.
func (c *crowd) shop(t *testing.T, name string) {
	key := ""
	if len(name)%2 == 0 {
		key = name
	}
	for range 40 {
		time.Sleep(time.Duration(c.upTo(400)) * time.Millisecond)
		d := c.reservers[c.upTo(len(c.reservers))]
		c.mu.Lock()
		since, has := c.won[name]
		c.mu.Unlock()
		old := has && time.Since(since) > time.Second
		out := d.buy(name, key)
		switch {
		case out.Code == Held:
			c.settle(d, name, out.Serial)
		case old:
			c.mu.Lock()
			c.told[out.Code]++
			c.mu.Unlock()
			if out.Code == SoldOut && !out.Unverified || out.Code == Released {
				t.Errorf("%s, who has a unit since %v, heard %v", name, since, out)
			}
		}
	}
}

// settle gives some units back and sells the others. Who gives back does not come again with the same order.
func (c *crowd) settle(d *Reserver, name, serial string) {
	if c.chance(50) {
		d.Settle(testSKU, Item{Serial: serial}, Release)
		return
	}
	c.mu.Lock()
	c.won[name] = time.Now()
	c.mu.Unlock()
	if c.chance(50) {
		time.Sleep(time.Duration(c.upTo(1_000)) * time.Millisecond)
		d.Settle(testSKU, Item{Serial: serial}, Confirm)
	}
}

// A client who has a unit for longer than the cache is believed never hears that all is sold out, whichever instance is
// asked.
func TestWinner_NoWinnerHearsThatAllIsSoldOut(t *testing.T) {
	told := map[Code]int{}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			at(t, func(t *testing.T) {
				s := fakeStoreOf(testSKU, 20)
				s.set(func(string, bool) error { time.Sleep(time.Millisecond / 2); return nil })
				o := testOptions()
				o.PerUser = 1
				c := crowd{r: rand.New(rand.NewPCG(seed, 1)), won: make(map[string]time.Time), told: told}
				for range 3 {
					c.reservers = append(c.reservers, opened(t, o, s, nil))
				}
				testkit.Storm(150, 150, func(i int) { c.shop(t, fmt.Sprint("u", i)) })
				synctest.Wait()
			})
		})
	}
	t.Logf("%v", told)
	if told[ReplayHeld] < 100 || told[ReplaySold] < 100 {
		t.Error("too few winners came again: the test says little")
	}
}
