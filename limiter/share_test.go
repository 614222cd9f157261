package limiter

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever the cap and however many share it, in each window of their clock the parts sum up to the cap, no part is
// larger than another by more than one, and over as many windows as there are instances all have had the same.
func TestShare_PartsSumUpToTheCapInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of, most := rapid.IntRange(1, 40).Draw(t, "of"), rapid.Int64Range(1, 100).Draw(t, "cap")
		first := rapid.Int64Range(0, maxNumber-1000).Draw(t, "first window")
		g := tenMs(0).within()
		had := make([]int64, of)
		for n := first; n < first+int64(of); n++ {
			sum, least, largest := int64(0), most, int64(0)
			for rank := range of {
				part := Share{Rank: rank, Of: of}.on(g).maxInWindow(n, most)
				sum, least, largest = sum+part, min(least, part), max(largest, part)
				had[rank] += part
			}
			if sum != most || largest-least > 1 {
				t.Fatalf("window %d: parts of %d to %d, %d in all; want %d, even to one", n, least, largest, sum, most)
			}
		}
		for rank := range had {
			if had[rank] != most {
				t.Fatalf("rank %d had %d in %d windows of %d, want %d", rank, had[rank], of, most, most)
			}
		}
	})
}

// Instances with clocks and phases of their own, and a cap that is smaller than their number: since they read the
// shared clock to find whose turn it is, all together never admit more in one of its windows than the cap of the two of
// their own that touch it, and no less than all of it.
func TestShare_CapBelowTheNumberOfInstancesIsUsedInTurn(t *testing.T) {
	const most, instances, windows, began = 2, 5, 500, int64(1) << 60
	random := rand.New(rand.NewPCG(1, 2))
	for _, caps := range []Caps{{All: most, SKUs: 64}, {PerSKU: most, SKUs: 64}} {
		var admitted [windows]int
		total := 0
		for rank := range instances {
			clock := random.Int64N(began)
			w := NewWindowLimiter(Grid{Size: 10 * time.Millisecond, Phase: time.Duration(random.Int64N(10 * ms))}, caps)
			w.SetShare(Share{Rank: rank, Of: instances, Clock: time.Duration(clock)})
			for passed := int64(0); passed < windows*10*ms; passed += ms {
				n := drain(w, began-clock+passed, "1001")
				admitted[passed/(10*ms)] += n
				total += n
			}
		}
		for n, got := range admitted {
			if got > 2*most {
				t.Errorf("window %d: %d admitted by all, want at most twice the cap of %d", n, got, most)
			}
		}
		if total < most*(windows-instances) || total > most*(windows+instances) {
			t.Errorf("%d admitted in %d windows of %d", total, windows, most)
		}
	}
}

func TestShare_NoPartAdmitsNoRequest(t *testing.T) {
	for _, s := range []Share{{Rank: 1}, {Rank: -1, Of: 3}, {Rank: 3, Of: 3}} {
		w := NewWindowLimiter(tenMs(1), Caps{All: 5, PerSKU: 5, SKUs: 64})
		w.SetShare(s)
		before := w.words()
		if n := drain(w, 0, "1001") + drain(w, 0, ""); n != 0 || w.words() != before {
			t.Errorf("%+v: %d admitted", s, n)
		}
		w.SetShare(Share{})
		if n := drain(w, 0, "1001"); n != 10 { // in this window and the next
			t.Errorf("%+v: with the whole %d admitted, want 10", s, n)
		}
	}
}

func TestShare_NoCapIsNoCapForEveryShare(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{SKUs: 64})
	w.SetShare(Share{Rank: 2, Of: 3})
	for range 1000 {
		if wait, ok := w.Acquire(0, []byte("1001")); !ok || wait != 0 {
			t.Fatal("rejected without a cap")
		}
	}
}

// What was booked under a larger share counts under the smaller one, and the caps that are changed meanwhile are
// those of all instances.
func TestShare_HoldsForWhatIsBookedAndForNewCaps(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 12, SKUs: 64})
	for range 5 {
		w.Acquire(0, nil)
	}
	w.SetShare(Share{Rank: 0, Of: 4})
	if _, ok := w.Acquire(0, nil); ok {
		t.Error("admitted a sixth where the part is three")
	}
	w.SetCaps(24, 0)
	if _, ok := w.Acquire(0, nil); !ok {
		t.Error("rejected the sixth of a part of six")
	}
	if _, ok := w.Acquire(0, nil); ok {
		t.Error("admitted a seventh where the part is six")
	}
}

func TestShare_DividedAndWarmingDecisionAllocatesNothing(t *testing.T) {
	w, now, sku := NewWindowLimiter(tenMs(1), Caps{All: 30, PerSKU: 20, WarmUp: time.Second}), int64(0), []byte("SKU-1001")
	w.SetShare(Share{Rank: 1, Of: 3})
	if n := testing.AllocsPerRun(1000, func() { w.Acquire(now, sku); sku[7]++; now += ms }); n != 0 {
		t.Errorf("%v allocations a decision, want 0", n)
	}
}
