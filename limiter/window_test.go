package limiter

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = int64(time.Millisecond)

func tenMs(carry int) Grid { return Grid{Size: 10 * time.Millisecond, MaxAhead: carry} }

// ofAll is a WindowLimiter that is asked without a SKU.
type ofAll struct{ *WindowLimiter }

func newOfAll(g Grid, most int) ofAll { return ofAll{NewWindowLimiter(g, Caps{All: most, SKUs: 1})} }

func (w ofAll) Acquire(now int64) (time.Duration, bool) { return w.WindowLimiter.Acquire(now, nil) }

// plainWindow is a window that anyone can check: how many in which window.
type plainWindow struct {
	grid   Grid
	max    int
	booked map[int64]int
}

func (p *plainWindow) number(now int64) int64 {
	return (now + int64(p.grid.Phase)) / int64(p.grid.Size)
}

func (p *plainWindow) until(n, now int64) time.Duration {
	return max(0, time.Duration(n*int64(p.grid.Size)-int64(p.grid.Phase)-now))
}

func (p *plainWindow) take(now int64) (time.Duration, bool) {
	if p.max == 0 {
		return 0, true
	}
	first := p.number(now)
	for n := first; n <= first+int64(p.grid.MaxAhead); n++ {
		if p.booked[n] < p.max {
			p.booked[n]++
			return p.until(n, now), true
		}
	}
	return p.until(first+1, now), false
}

func TestWindow_DecidesAsAPlainCountDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := Grid{
			Size:     time.Duration(rapid.Int64Range(1, 20).Draw(t, "size")) * time.Millisecond,
			MaxAhead: rapid.IntRange(0, 4).Draw(t, "carry"),
		}
		grid.Phase = time.Duration(rapid.Int64Range(0, int64(grid.Size)-1).Draw(t, "phase"))
		most := rapid.IntRange(0, 5).Draw(t, "max")
		window, plain := newOfAll(grid, most), plainWindow{grid, most, map[int64]int{}}
		now := rapid.Int64Range(0, 1<<50).Draw(t, "start")
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 30*ms)).Draw(t, "pause")
			gotWait, gotOK := window.Acquire(now)
			wantWait, wantOK := plain.take(now)
			if gotWait != wantWait || gotOK != wantOK {
				t.Fatalf("Acquire(%d) = %v, %v; want %v, %v", now, gotWait, gotOK, wantWait, wantOK)
			}
		}
	})
}

// TestWindow_WorstBurstIsTwiceMax measures the burst that the doc comment states: 2·max within one nanosecond around a
// boundary is reached, and no stretch of a window's size sees more.
func TestWindow_WorstBurstIsTwiceMax(t *testing.T) {
	const most = 7
	for _, carry := range []int{0, 2} {
		w := newOfAll(tenMs(carry), most)
		var turns []int64
		for now := 10*ms - 1; now < 60*ms; now += 250_001 {
			for {
				wait, ok := w.Acquire(now)
				if !ok {
					break
				}
				turns = append(turns, now+int64(wait))
			}
			if now == 10*ms-1 {
				now = 10*ms - 250_001 // then again at the boundary itself
			}
		}
		if worst := worstBurst(turns, 10*ms); worst != 2*most {
			t.Errorf("carry %d: worst burst in 10 ms is %d, want %d", carry, worst, 2*most)
		}
	}
}

// worstBurst is the largest number of turns within any stretch of that length.
func worstBurst(turns []int64, length int64) (worst int) {
	for _, from := range turns {
		n := 0
		for _, at := range turns {
			if at >= from && at < from+length {
				n++
			}
		}
		worst = max(worst, n)
	}
	return worst
}

// TestWindow_NoWindowExceedsItsMax lets many callers, some far behind the others, fight for the same windows.
func TestWindow_NoWindowExceedsItsMax(t *testing.T) {
	const most, windows = 500, 20
	for i := range 6 {
		carry := i / 2
		take := newOfAll(tenMs(carry), most).Acquire
		if i%2 == 1 { // and the same for one SKU
			w := NewWindowLimiter(tenMs(carry), Caps{PerSKU: most})
			take = func(now int64) (time.Duration, bool) { return w.Acquire(now, []byte("1001")) }
		}
		t.Run(fmt.Sprintf("carry %d of one SKU %v", carry, i%2 == 1), func(t *testing.T) {
			counts := storm(2, windows*most, func(i int) (int64, time.Duration, bool) {
				now := int64(i/most)*10*ms + int64(i%7)*ms
				if i%5 == 0 {
					now = max(0, now-25*ms) // overtaken
				}
				wait, ok := take(now)
				return now, wait, ok
			})
			for n := range int64(windows) {
				if counts[n] != most {
					t.Errorf("window %d: %d admitted, want %d: asked for twice over", n, counts[n], most)
				}
			}
		})
	}
}

// storm calls take from several goroutines, each counting i up to n, and counts the turns in each 10 ms window. Every
// few calls all wait for all, so that they meet at the same words however the machine runs them.
func storm(goroutines, n int, take func(i int) (now int64, wait time.Duration, ok bool)) map[int64]int {
	counts := map[int64]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	var arrived atomic.Int64
	for range goroutines {
		all.Go(func() {
			mine := map[int64]int{}
			for i := range n {
				if i%32 == 0 {
					meet(&arrived, int64((i/32+1)*goroutines))
				}
				if now, wait, ok := take(i); ok {
					mine[(now+int64(wait))/(10*ms)]++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for window, admitted := range mine {
				counts[window] += admitted
			}
		})
	}
	all.Wait()
	return counts
}

// meet waits until so many have arrived. It spins, to go on at the same instant as the others, and now and then lets
// go, lest it waits for one who waits for its core.
func meet(arrived *atomic.Int64, want int64) {
	arrived.Add(1)
	for spins := 1; arrived.Load() < want; spins++ {
		if spins%2000 == 0 {
			runtime.Gosched()
		}
	}
}

func TestWindow_ThatIsOverAdmitsNoRequest(t *testing.T) {
	w := newOfAll(tenMs(0), 1)
	w.Acquire(0)
	w.Acquire(ringSize * 10 * ms) // the window that overwrites the first
	if _, ok := w.Acquire(0); ok {
		t.Error("a caller who was overtaken got a second place in a window of one")
	}
}

func TestWindow_RejectionByAWindowWritesNothing(t *testing.T) {
	w := newOfAll(tenMs(1), 3)
	for range 6 {
		w.Acquire(0)
	}
	before := words(w.all.ring[:])
	if _, ok := w.Acquire(0); ok {
		t.Fatal("admitted a seventh into two windows of three")
	}
	if after := words(w.all.ring[:]); after != before {
		t.Errorf("a rejection changed the words from %s to %s", before, after)
	}
}

func TestWindow_LoweredMaxHoldsForWhatIsBooked(t *testing.T) {
	w := newOfAll(tenMs(1), 4)
	for range 5 {
		w.Acquire(0) // four now, one in the next window
	}
	w.SetCaps(2, 0)
	if wait, ok := w.Acquire(0); !ok || wait != 10*time.Millisecond {
		t.Errorf("%v, %v; want the second place of the next window", wait, ok)
	}
	if _, ok := w.Acquire(0); ok {
		t.Error("admitted a third into a window of two")
	}
	w.SetCaps(0, 0)
	if wait, ok := w.Acquire(0); !ok || wait != 0 {
		t.Errorf("%v, %v without a cap; want 0, true", wait, ok)
	}
}

func TestWindow_GridIsBroughtWithinItsRanges(t *testing.T) {
	for _, c := range []struct {
		in   Grid
		want grid
	}{
		{Grid{}, grid{ms, 0, 0}},
		{Grid{Size: 24 * time.Hour, Phase: -1, MaxAhead: 99}, grid{int64(time.Hour), int64(time.Hour) - 1, 63}},
		{Grid{Size: 10 * time.Millisecond, Phase: 25 * time.Millisecond, MaxAhead: -1}, grid{10 * ms, 5 * ms, 0}},
	} {
		if got := c.in.within(); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.in, got, c.want)
		}
	}
}
