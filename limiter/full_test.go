package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Peek says what Acquire would do, in a table that is much too small, with callers that were overtaken, caps that grow
// and those that are divided; and it writes nothing.
func TestLimiter_FullTellsWhatTakeWouldDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := tenMs(rapid.IntRange(0, 3).Draw(t, "carry"))
		w := NewWindowLimiter(grid, Caps{
			All: rapid.IntRange(0, 12).Draw(t, "all"), PerSKU: rapid.IntRange(0, 5).Draw(t, "perSKU"),
			SKUs: 1, WarmUp: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "warm-up"),
		})
		of := rapid.IntRange(1, 3).Draw(t, "of")
		w.SetShare(Share{Rank: rapid.IntRange(0, of-1).Draw(t, "rank"), Of: of})
		now := int64(time.Second)
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-50*ms, 60*ms)).Draw(t, "step")
			now = max(now, 0)
			sku := rapid.SampledFrom([]string{"", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}).Draw(t, "sku")
			before := w.words()
			wait, full := w.Peek(now, []byte(sku))
			if w.words() != before {
				t.Fatal("to look has written")
			}
			if later, ok := w.Acquire(now, []byte(sku)); ok == full || full && wait != later {
				t.Fatalf("Peek(%d, %q) = %v, %v; then Acquire = %v, %v", now, sku, wait, full, later, ok)
			}
		}
	})
}

func TestLimiter_ToLookWhetherWindowsAreFullAllocatesNothing(t *testing.T) {
	w, now, sku := NewWindowLimiter(tenMs(1), Caps{All: 30, PerSKU: 1}), int64(0), []byte("SKU-1001")
	if n := testing.AllocsPerRun(1000, func() { w.Peek(now, sku); w.Acquire(now, sku); now += ms }); n != 0 {
		t.Errorf("%v allocations a look, want 0", n)
	}
}
