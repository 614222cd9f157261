package limiter

import (
	"hash/maphash"
	"sync/atomic"
	"testing"
	"time"
)

const second = int64(time.Second)

func TestWarm_CapsGrowFromATenthToTheWhole(t *testing.T) {
	for _, sku := range []string{"", "1001"} {
		w := NewWindowLimiter(tenMs(0), Caps{All: 40, PerSKU: 40, SKUs: 64, WarmUp: 10 * time.Second})
		const opened = 3600 * second // long after the start of the gate
		for _, c := range []struct {
			after int64
			want  int
		}{
			{0, 4}, {10 * ms, 4}, {200 * ms, 5}, {second, 8},
			{5 * second, 22}, {10*second - 10*ms, 40}, {10 * second, 40}, {60 * second, 40},
		} {
			if got := drain(w, opened+c.after, sku); got != c.want {
				t.Errorf("SKU %q, %v after the first: %d admitted, want %d", sku, time.Duration(c.after), got, c.want)
			}
		}
	}
}

// A SKU that opens later begins low, while all together and the one that is warm go on.
func TestWarm_EachSKUWarmsUpByItself(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 1000, PerSKU: 40, SKUs: 64, WarmUp: 10 * time.Second})
	drain(w, 0, "1001")
	other := "1002" // in another cell, whatever the seed
	for w.warmth.startOf(hashOf(w, "1001")) == w.warmth.startOf(hashOf(w, other)) {
		other += "x"
	}
	if got := drain(w, 20*second, other); got != 4 {
		t.Errorf("%d of the cold SKU, want 4", got)
	}
	if got := drain(w, 20*second, "1001"); got != 40 {
		t.Errorf("%d of the warm SKU, want 40", got)
	}
}

func hashOf(w *WindowLimiter, sku string) uint64 { return maphash.Bytes(w.skus.seed, []byte(sku)) }

func TestWarm_WhatHasRestedIsColdAgain(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 40, SKUs: 64, WarmUp: 10 * time.Second})
	drain(w, 0, "")
	for now := int64(0); now < 3600*second; now += 300 * second {
		drain(w, now, "")
	}
	if got := drain(w, 3900*second, ""); got != 40 {
		t.Errorf("%d admitted in constant use, want 40", got)
	}
	later := 3900*second + rest + 2*lastError
	if got := w.warmth.grown(w.warmth.all, later, 40); got != 4 {
		t.Errorf("a cap of %d before the first admission after a rest, want 4", got)
	}
	if got := drain(w, later, ""); got != 4 {
		t.Errorf("%d admitted after a rest, want 4", got)
	}
}

func TestWarm_TheSmallestCapStillAdmits(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 3, SKUs: 64, WarmUp: 10 * time.Second})
	if got := drain(w, 0, ""); got != 1 {
		t.Errorf("%d of a cold cap of 3, want 1", got)
	}
}

func TestWarm_WarmingFleetSharesWhatHasGrown(t *testing.T) {
	total := 0
	for rank := range 3 {
		w := NewWindowLimiter(tenMs(0), Caps{All: 40, SKUs: 64, WarmUp: 10 * time.Second})
		w.SetShare(Share{Rank: rank, Of: 3})
		total += drain(w, 0, "")
	}
	if total != 4 {
		t.Errorf("three cold instances admitted %d of a cap of 40, want 4", total)
	}
}

// However many race for the first admission, each window keeps to what has grown, and rejections write nothing.
func TestWarm_RacedWarmUpExceedsNoWindow(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 100, SKUs: 64, WarmUp: 400 * time.Millisecond})
	var counts [40]atomic.Int64
	storm(2, 40*200, func(i int) (int64, time.Duration, bool) {
		now := int64(i/200)*10*ms + int64(i%10)*ms
		wait, ok := w.Acquire(now, nil)
		if ok {
			counts[(now+int64(wait))/(10*ms)].Add(1)
		}
		return now, wait, ok
	})
	for n := range counts {
		// The first admission was in window 0, so that window n begins at most n windows after it.
		if got, most := counts[n].Load(), int64(10+90*n/40+1); got > most {
			t.Errorf("window %d: %d admitted, want at most %d", n, got, most)
		}
	}
}

func TestWarm_RejectionWhileWarmingWritesNothing(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 40, PerSKU: 40, SKUs: 64, WarmUp: 10 * time.Second})
	drain(w, 0, "1001")
	now := 5*second + 5*ms
	drain(w, now, "1001")
	before, last := w.words(), w.warmth.all.last.Load()
	if _, ok := w.Acquire(now+ms, []byte("1001")); ok || w.words() != before || w.warmth.all.last.Load() != last {
		t.Error("a rejection was none, or wrote")
	}
}

// A limiter on another grid goes on with what is warm; a request that was booked before counts no more.
func TestWindowLimiter_SuccessorStaysWarm(t *testing.T) {
	caps := Caps{All: 40, PerSKU: 40, SKUs: 64, WarmUp: 10 * time.Second}
	w := NewWindowLimiter(tenMs(0), caps)
	drain(w, 0, "1001")
	next := w.Successor(Grid{Size: 20 * time.Millisecond}, caps)
	if got := drain(next, 20*second, "1001"); got != 40 {
		t.Errorf("%d of the warm SKU, want 40", got)
	}
	if got := drain(w.Successor(tenMs(0), Caps{PerSKU: 7}), 20*second, "1001"); got != 7 {
		t.Errorf("%d without a warm-up, want 7", got)
	}
}
