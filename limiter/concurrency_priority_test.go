package limiter

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// crowdOf is a limiter of one place, which is taken, and of a queue, and those who come to it.
type crowdOf struct {
	*ConcurrencyLimiter
	mu  sync.Mutex
	got []string // "vip admitted", in the order of ends
}

func newCrowdOf(queue int) *crowdOf {
	c := &crowdOf{ConcurrencyLimiter: NewConcurrencyLimiter(1, queue)}
	c.Acquire(false, 0, nil)
	return c
}

// come has so many requests come, one after the other: those of "vip" go first.
func (c *crowdOf) come(who string, n int) {
	for range n {
		go func() {
			verdict := c.Acquire(who == "vip", time.Hour, nil)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got = append(c.got, who+" "+verdict.String())
		}()
		synctest.Wait()
	}
}

// ends are how the waits ended since the last call, and how often.
func (c *crowdOf) ends() map[string]int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, end := range c.got {
		n[end]++
	}
	c.got = nil
	return n
}

// drain has all who wait be admitted.
func (c *crowdOf) drain() {
	for c.Queued() > 0 {
		c.Release()
		synctest.Wait()
	}
}

func TestConcurrencyLimiter_PriorityGoesFirstInTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowdOf(10)
		for _, who := range []string{"user", "vip", "user", "vip"} {
			c.come(who, 1)
		}
		c.drain()
		if diff := cmp.Diff([]string{"vip admitted", "vip admitted", "user admitted", "user admitted"}, c.got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConcurrencyLimiter_OthersKeepATenthOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowdOf(100)
		c.come("user", 12)
		c.come("vip", 5)
		for range 100 { // each that leaves is followed by one that goes first
			c.come("vip", 1)
			c.Release()
			synctest.Wait()
		}
		if diff := cmp.Diff(map[string]int{"vip admitted": 90, "user admitted": 10}, c.ends()); diff != "" {
			t.Error(diff)
		}
		c.drain()
	})
}

func TestConcurrencyLimiter_OthersKeepATenthOfAFullQueue(t *testing.T) {
	for first, second := range map[string]string{"user": "vip", "vip": "user"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowdOf(20)
			c.come(first, 20)
			c.come(second, 20)
			if diff := cmp.Diff(map[string]int{"user queue full": 18, "vip queue full": 2}, c.ends()); diff != "" {
				t.Errorf("%ss come first: %s", first, diff)
			}
			if !c.Peek(true) || !c.Peek(false) {
				t.Errorf("%ss come first: the queue is full, and Peek says it is not", first)
			}
			c.drain()
			if diff := cmp.Diff(map[string]int{"vip admitted": 18, "user admitted": 2}, c.ends()); diff != "" {
				t.Errorf("%ss come first: %s", first, diff)
			}
			expect(t, c.ConcurrencyLimiter, 1, 0)
		})
	}
}

// However hand-overs, time-outs and displacements meet, no place is held twice, and none is lost.
func TestConcurrencyLimiter_PriorityLosesNoPlace(t *testing.T) {
	p := NewConcurrencyLimiter(3, 10)
	var inside atomic.Int64
	var work sync.WaitGroup
	for g := range 24 {
		work.Go(func() {
			for i := range 300 {
				if p.Acquire(g*i%3 == 0, time.Duration(i%3)*50*time.Microsecond, nil) != Admitted {
					continue
				}
				if inside.Add(1) > 3 {
					t.Error("more than 3 are inside")
				}
				inside.Add(-1)
				p.Release()
			}
		})
	}
	work.Wait()
	expect(t, p, 0, 0)
	for _, first := range []bool{true, false} {
		if q := p.queues.of(first); q.length.Load() != 0 || q.list.Len() != 0 {
			t.Errorf("%d wait that go first (%v)", q.length.Load(), first)
		}
	}
}
