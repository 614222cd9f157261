package fleet

import (
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// list is what the script keeps, on a clock that the test moves.
type list map[string]int64

func (l list) beat(id string, now int64) members {
	found := members{micros: now * 1000, before: l[id]}
	l[id] = now
	maps.DeleteFunc(l, func(_ string, at int64) bool {
		return at <= now-alive.Milliseconds() || at > now+alive.Milliseconds()
	})
	found.beats = maps.Clone(l)
	return found
}

// instance is a roll that beats.
type instance struct {
	membership
	next int64 // when it beats, in ms
}

func (i *instance) beat(l list, now int64) {
	i.update(l.beat(i.id, now))
	pause := every
	if i.waiting() {
		pause = everySoon
	}
	i.next = now + pause.Milliseconds()
}

// crowd is a fleet in one thread.
type crowd struct {
	list list
	all  []*instance
	born int
	now  int64
}

func (c *crowd) join() {
	c.born++
	c.all = append(c.all, &instance{membership: membership{id: fmt.Sprintf("%d-%d", c.born*7%10, c.born)}, next: c.now})
}

// pass lets time go by, and says the largest sum of the parts meanwhile.
func (c *crowd) pass(ms int64) (worst float64) {
	for end := c.now + ms; c.now < end; c.now++ {
		for _, i := range c.all {
			if i.next <= c.now {
				i.beat(c.list, c.now)
			}
		}
		worst = max(worst, c.sum())
	}
	return worst
}

func (c *crowd) sum() (sum float64) {
	for _, i := range c.all {
		if i.share.Of > 0 {
			sum += 1 / float64(i.share.Of)
		}
	}
	return sum
}

// settled tells whether everybody counts all, each in a place of its own.
func (c *crowd) settled() bool {
	places := map[int]bool{}
	for _, i := range c.all {
		if i.share.Of != len(c.all) {
			return false
		}
		places[i.share.Rank] = true
	}
	return len(places) == len(c.all)
}

// Whatever the order in which instances join, leave, die, and in which Redis forgets: the parts never sum up to more
// than the whole, and when nothing more happens they soon sum up to all of it.
func TestMembership_PartsNeverSumUpToMoreThanTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := crowd{list: list{}, now: 1 << 40}
		for range rapid.IntRange(1, 15).Draw(t, "events") {
			least := int64(0)
			switch what := rapid.SampledFrom([]string{"join", "join", "leave", "die", "forget"}).Draw(t, "event"); {
			case what == "join" || len(c.all) == 0:
				c.join()
				least = 1 // its first beat
			case what == "forget":
				clear(c.list)
				least = heardAll.Milliseconds() // who joins just then knows of no other
			default:
				i := rapid.IntRange(0, len(c.all)-1).Draw(t, "who")
				if what == "leave" {
					delete(c.list, c.all[i].id)
				}
				c.all = append(c.all[:i], c.all[i+1:]...)
			}
			if worst := c.pass(rapid.Int64Range(least, 4000).Draw(t, "pause")); worst > 1+1e-9 {
				t.Fatalf("the parts sum up to %v", worst)
			}
		}
		c.pass(alive.Milliseconds() + heardAgain.Milliseconds() + 2*every.Milliseconds())
		if len(c.all) > 0 && (!c.settled() || math.Abs(c.sum()-1) > 1e-9) {
			t.Fatalf("%d instances: the parts sum up to %v, settled %v", len(c.all), c.sum(), c.settled())
		}
	})
}

func three() *crowd {
	c := &crowd{list: list{}, now: 1 << 40}
	for range 3 {
		c.join()
		c.pass(300)
	}
	c.pass(3000)
	return c
}

// One of three that lives and does not reach Redis keeps its third, while the others take a half each.
func TestMembership_OneThatDoesNotReachRedisIsAThirdTooMuch(t *testing.T) {
	c := three()
	c.all[0].next = math.MaxInt64
	if worst := c.pass(10_000); math.Abs(worst-4.0/3) > 1e-9 {
		t.Errorf("the parts sum up to %v, want 4/3", worst)
	}
	c.all[0].next = c.now
	if c.pass(2000); !c.settled() {
		t.Error("it does not come back")
	}
}

func TestMembership_WhileRedisIsAwayTheLastNumberStands(t *testing.T) {
	c := three()
	c.now += time.Hour.Milliseconds() // no instance beats
	clear(c.list)
	if worst := c.pass(5000); worst > 1+1e-9 || !c.settled() {
		t.Errorf("the parts sum up to %v, settled %v", worst, c.settled())
	}
}

func TestMembership_ClockThatJumpsMakesNoInstanceLarger(t *testing.T) {
	for _, by := range []int64{-50, -1000, -3000, -1e9, 50, 3000, 1e9} {
		c := three()
		for _, i := range c.all {
			i.next += by // beats go on as before, on clocks of their own
		}
		c.now += by
		if worst := c.pass(5000); worst > 1+1e-9 || !c.settled() {
			t.Errorf("a jump by %d ms: the parts sum up to %v, settled %v", by, worst, c.settled())
		}
	}
}

func TestMembership_TheFirstOfAFleetNeedNotWait(t *testing.T) {
	c := crowd{list: list{}, now: 1 << 40}
	c.join()
	if c.pass(1); c.all[0].share != (Share{Of: 1}) {
		t.Errorf("%+v after one beat, want the whole", c.all[0].share)
	}
}

func TestMembership_WhoNeverHeardOfAnybodyCountsItselfAlone(t *testing.T) {
	r := membership{id: "a"}
	if r.startAlone(); r.share != (Share{Of: 1}) {
		t.Errorf("%+v, want the whole", r.share)
	}
	l := list{"b": 1000, "c": 1000}
	if r.update(l.beat("a", 1001)); r.share.Of != 3 {
		t.Errorf("%+v as soon as it hears of two more, want a third", r.share)
	}
}
