package limiter

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// words shows the words that are not zero.
func words(of []atomic.Uint64) string {
	s := ""
	for i := range of {
		if v := of[i].Load(); v != 0 {
			s += fmt.Sprintf(" %d:%x", i, v)
		}
	}
	return s
}

func (w *WindowLimiter) words() string {
	s := words(w.all.ring[:])
	for i := range w.skus.lines {
		s += words(w.skus.lines[i][:])
	}
	return s
}

func TestWindowLimiter_WindowsDecideAsPlainCountsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := tenMs(rapid.IntRange(0, 3).Draw(t, "carry"))
		all, perSKU := rapid.IntRange(0, 6).Draw(t, "all"), rapid.IntRange(0, 3).Draw(t, "perSKU")
		windows := NewWindowLimiter(grid, Caps{All: all, PerSKU: perSKU, SKUs: 4096})
		booked := map[string]map[int64]int{"": {}, "1": {}, "2": {}, "3": {}}
		now := int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 30*ms)).Draw(t, "pause")
			sku := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "sku")
			wait, ok := windows.Acquire(now, []byte(sku))
			wantWait, wantOK := (now/(10*ms)+1)*10*ms-now, false
			for n := now / (10 * ms); n <= now/(10*ms)+int64(grid.MaxAhead) && !wantOK; n++ {
				skuFull := sku != "" && perSKU != 0 && booked[sku][n] >= perSKU
				if !skuFull && (all == 0 || booked[""][n] < all) {
					wantWait, wantOK = max(0, n*10*ms-now), true
					booked[""][n]++
					if sku != "" {
						booked[sku][n]++
					}
				}
			}
			if int64(wait) != wantWait || ok != wantOK {
				t.Fatalf("Acquire(%d, %q) = %v, %v; want %v, %v", now, sku, wait, ok, time.Duration(wantWait), wantOK)
			}
		}
	})
}

// TestWindowLimiter_BothCapsHoldInEveryWindow lets callers of six SKUs, some overtaken, fight for windows where now
// the SKUs' caps and now the cap of all is the tighter one.
func TestWindowLimiter_BothCapsHoldInEveryWindow(t *testing.T) {
	const perSKU, windows = 10, 40
	for _, all := range []int{25, 60} {
		for _, size := range []int{1, 4096} { // one line for everything, and room for everything
			var counts [6]map[int64]*atomic.Int64
			for i := range counts {
				counts[i] = map[int64]*atomic.Int64{}
				for n := range int64(windows + 8) {
					counts[i][n] = new(atomic.Int64)
				}
			}
			w := NewWindowLimiter(tenMs(2), Caps{All: all, PerSKU: perSKU, SKUs: size})
			total := storm(2, windows*60, func(i int) (int64, time.Duration, bool) {
				now, sku := max(0, int64(i/60-i%3*2)*10*ms), i%len(counts)
				wait, ok := w.Acquire(now, []byte{byte('0' + sku)})
				if ok {
					counts[sku][(now+int64(wait))/(10*ms)].Add(1)
				}
				return now, wait, ok
			})
			for n := range int64(windows) {
				if total[n] > all {
					t.Errorf("size %d: window %d admitted %d of all, want at most %d", size, n, total[n], all)
				}
				for sku := range counts {
					if got := counts[sku][n].Load(); got > perSKU {
						t.Errorf("size %d: window %d admitted %d of SKU %d, want at most %d", size, n, got, sku, perSKU)
					}
				}
			}
			fullest := slices.Max(slices.Collect(maps.Values(total))) // one that no pause of a goroutine has met
			if size > 1 && fullest != all {
				t.Errorf("no window of %d admitted more than %d, though asked for more", all, fullest)
			}
		}
	}
}

func TestWindowLimiter_RejectionByAllDoesNotChargeTheSKU(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 1, PerSKU: 2, SKUs: 64})
	w.Acquire(0, []byte("other"))
	before := w.words()
	if _, ok := w.Acquire(0, []byte("hot")); ok {
		t.Fatal("admitted a second into a window of one")
	}
	if after := w.words(); after != before {
		t.Errorf("a rejection changed the words from %s to %s", before, after)
	}
}

func TestWindowLimiter_RejectionByTheSKUDoesNotChargeAll(t *testing.T) {
	w := NewWindowLimiter(tenMs(1), Caps{All: 9, PerSKU: 2, SKUs: 64})
	for range 4 {
		w.Acquire(0, []byte("hot"))
	}
	before := w.words()
	if wait, ok := w.Acquire(4*ms, []byte("hot")); ok || wait != 6*time.Millisecond {
		t.Fatalf("%v, %v; want 6ms, false", wait, ok)
	}
	if after := w.words(); after != before {
		t.Errorf("a rejection changed the words from %s to %s", before, after)
	}
}

// TestWindowLimiter_RaceForAllLeavesNoSKUCharged has all SKUs race for the last places of all. When the cap of all is
// then lifted, each SKU must still have exactly the places that it did not get.
func TestWindowLimiter_RaceForAllLeavesNoSKUCharged(t *testing.T) {
	const perSKU, skus = 40, 8
	for round := range 50 {
		now := int64(round) * 10 * ms
		w := NewWindowLimiter(tenMs(0), Caps{All: 30, PerSKU: perSKU, SKUs: 4096})
		var admitted [skus]atomic.Int64
		storm(2, 100, func(i int) (int64, time.Duration, bool) {
			wait, ok := w.Acquire(now, []byte{byte(i % skus)})
			if ok {
				admitted[i%skus].Add(1)
			}
			return now, wait, ok
		})
		w.SetCaps(0, perSKU)
		for sku := range admitted {
			for {
				if _, ok := w.Acquire(now, []byte{byte(sku)}); !ok {
					break
				}
				admitted[sku].Add(1)
			}
			if got := admitted[sku].Load(); got != perSKU {
				t.Fatalf("round %d: SKU %d got %d places in all, want %d", round, sku, got, perSKU)
			}
		}
	}
}

func TestWindowLimiter_PlaceGivenBackIsTakenOnce(t *testing.T) {
	s := newSKUs(64, 0)
	cell := s.book(1, 7, 2)
	s.book(1, 7, 2)
	s.giveBack(cell, 1)
	if s.book(1, 7, 2) == nil {
		t.Error("rejected a place that was given back")
	}
	if s.book(1, 7, 2) != nil {
		t.Error("gave one place back, and two were taken")
	}
}

func TestWindowLimiter_PlaceOfAWindowThatIsOverIsNotGivenBack(t *testing.T) {
	s := newSKUs(1, 0)
	cell := s.book(1, 7, 2)
	for n := range int64(8) {
		s.book(2+n, 7, 1) // other windows take over the line
	}
	before := words(s.lines[0][:])
	s.giveBack(cell, 1)
	if after := words(s.lines[0][:]); after != before {
		t.Errorf("giving back to a window that is over changed %s to %s", before, after)
	}
}

func TestWindowLimiter_PlacesGivenBackInARaceAreAllFree(t *testing.T) {
	s := newSKUs(1, 0)
	s.giveBack(s.book(1, 7, 100), 1)
	before := words(s.lines[0][:])
	cell := &s.lines[0][0]
	storm(2, 64*300, func(i int) (now int64, wait time.Duration, ok bool) {
		if i/32%2 == 0 {
			s.book(1, 7, 100)
		} else {
			s.giveBack(cell, 1)
		}
		return 0, 0, true
	})
	if after := words(s.lines[0][:]); after != before {
		t.Errorf("when all is given back the words are %s, want %s", after, before)
	}
}

// TestWindowLimiter_MadeUpSKUsNeitherStarveNorForgive floods a window with SKUs that are not sold before and after
// the hot one is booked out, in a table of ordinary size and in one that is far too small.
func TestWindowLimiter_MadeUpSKUsNeitherStarveNorForgive(t *testing.T) {
	const most = 20
	for _, c := range []struct{ skus, atLeast int }{
		{100_000, most - 1}, // a made-up SKU may share its cell, once in a hundred thousand runs
		{1, 0},              // the line may be full of others: a false rejection, but never an overshoot
	} {
		w := NewWindowLimiter(tenMs(0), Caps{PerSKU: most, SKUs: c.skus})
		for n := range int64(20) {
			flood(w, n*10*ms, 1000)
			got := drain(w, n*10*ms, "hot")
			flood(w, n*10*ms, 1000)
			got += drain(w, n*10*ms, "hot")
			if got > most || got < c.atLeast {
				t.Errorf("%d SKUs, window %d: hot got %d, want %d to %d", c.skus, n, got, c.atLeast, most)
			}
		}
		if got := drain(w, 30*10*ms, "hot"); got != most {
			t.Errorf("%d SKUs: hot got %d of %d after the flood", c.skus, got, most)
		}
	}
}

func flood(w *WindowLimiter, now int64, n int) {
	for i := range n {
		w.Acquire(now, binary.BigEndian.AppendUint64([]byte("made up "), uint64(now)+uint64(i)))
	}
}

// drain takes until it is rejected and tells how many it got.
func drain(w *WindowLimiter, now int64, sku string) (n int) {
	for {
		if _, ok := w.Acquire(now, []byte(sku)); !ok {
			return n
		}
		n++
	}
}

func TestWindowLimiter_CellOfAWindowUnderWayIsNotReused(t *testing.T) {
	const carry = 2
	s := newSKUs(1, carry)
	for hash := range uint64(8) {
		s.book(10, hash, 1)
	}
	for n := int64(10 - carry); n <= 10+carry; n++ {
		if s.book(n, 99, 1) != nil {
			t.Errorf("window %d took a cell of window 10", n)
		}
	}
	if s.book(10+carry+1, 99, 1) == nil {
		t.Error("no cell for a window after which window 10 cannot be booked any more")
	}
	if s.book(10, 99, 1) != nil {
		t.Error("window 10 was booked after it was over")
	}
}

func TestWindowLimiter_CellThatWasReusedStillTellsThatItsWindowIsOver(t *testing.T) {
	s := newSKUs(1, 0)
	s.book(10, 7, 1)
	s.book(11, 7, 1) // reuses the cell; the rest of the line is free
	if s.book(10, 7, 1) != nil {
		t.Error("a caller who was overtaken got a second place in a window of one")
	}
}
