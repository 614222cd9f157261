package limiter

import (
	"fmt"
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
	got []string // "9 admitted", in the order of ends
}

func newCrowdOf(queue, share int) *crowdOf {
	c := &crowdOf{ConcurrencyLimiter: NewConcurrencyLimiter(1, queue)}
	c.SetMinShare(share)
	c.Acquire(0, 0, nil)
	return c
}

// come has so many clients of a class come, one after the other.
func (c *crowdOf) come(class, n int) {
	for range n {
		go func() {
			verdict := c.Acquire(class, time.Hour, nil)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got = append(c.got, fmt.Sprint(class, " ", verdict))
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

func TestConcurrencyLimiter_HigherClassGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowdOf(10, 10)
		for _, class := range []int{0, 5, 9, 5, 0, 12, -1} {
			c.come(class, 1)
		}
		c.drain()
		want := []string{"9 admitted", "12 admitted", "5 admitted", "5 admitted", "0 admitted", "0 admitted", "-1 admitted"}
		if diff := cmp.Diff(want, c.got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConcurrencyLimiter_LowerClassesKeepTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowdOf(100, 20)
		c.come(0, 12)
		c.come(3, 12)
		c.come(9, 5)
		for range 100 { // each nine that leaves is followed by one
			c.come(9, 1)
			c.Release()
			synctest.Wait()
		}
		if diff := cmp.Diff(map[string]int{"9 admitted": 80, "0 admitted": 12, "3 admitted": 8}, c.ends()); diff != "" {
			t.Error(diff)
		}
		c.drain()
	})
}

func TestConcurrencyLimiter_FullQueueHasRoomForBothCrowds(t *testing.T) {
	for name, first := range map[string]int{"nines come last": 0, "nines come first": 9} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowdOf(10, 20)
			c.come(first, 10)
			c.come(9-first, 10)
			want := map[string]int{"0 queue full": 8, "9 queue full": 2}
			if first == 9 {
				want = map[string]int{"9 queue full": 2, "0 queue full": 8}
			}
			if diff := cmp.Diff(want, c.ends()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if !c.Peek(9) || !c.Peek(0) {
				t.Errorf("%s: the queue is full, and Peek says it is not", name)
			}
			c.drain()
			if diff := cmp.Diff(map[string]int{"9 admitted": 8, "0 admitted": 2}, c.ends()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			expect(t, c.ConcurrencyLimiter, 1, 0)
		})
	}
}

func TestConcurrencyLimiter_NoClassOfManyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowdOf(40, 10)
		for range 500 { // for each place there are six newcomers, those of class 9 first or last
			for _, class := range []int{9, 5, 0, 0, 5, 9} {
				c.come(class, 1)
			}
			c.Release()
			synctest.Wait()
		}
		n := c.ends()
		if n["9 admitted"] != 450 || n["0 admitted"] < 10 || n["5 admitted"] < 10 {
			t.Error(n)
		}
		c.drain()
	})
}

func TestConcurrencyLimiter_WithoutAShareThereIsOneClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowdOf(2, 0)
		c.come(0, 2)
		if c.come(0, 1); !c.Peek(9) {
			t.Error("a full queue has room")
		}
		if diff := cmp.Diff(map[string]int{"0 queue full": 1}, c.ends()); diff != "" {
			t.Error(diff)
		}
		c.drain()
	})
}

// However hand-overs, time-outs and displacements meet, no place is held twice, and none is lost.
func TestConcurrencyLimiter_ClassesLoseNoPlace(t *testing.T) {
	p := NewConcurrencyLimiter(3, 8)
	p.SetMinShare(25)
	var inside atomic.Int64
	var work sync.WaitGroup
	for g := range 24 {
		work.Go(func() {
			for i := range 300 {
				if p.Acquire((g*i)%Classes, time.Duration(i%3)*50*time.Microsecond, nil) != Admitted {
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
	for class := range p.queues.waiting {
		if n := p.queues.waiting[class].Load(); n != 0 || p.queues.of[class].head != nil {
			t.Errorf("%d of class %d wait", n, class)
		}
	}
}
