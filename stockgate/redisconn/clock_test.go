package redisconn

import "testing"

func TestClock_SharperMeasureWinsAndDriftIsFollowed(t *testing.T) {
	var c Clock
	for _, tt := range []struct{ by, doubt, want int64 }{
		{1000_000, 500_000, 1000_000}, // the first
		{1200_000, 400_000, 1000_000}, // hardly sharper, and no contradiction
		{1100_000, 50_000, 1100_000},  // sharper
		{1000_000, 90_000, 1100_000},  // it may still be right
		{1300_000, 90_000, 1300_000},  // it cannot be any more
	} {
		if c.Update(tt.by, tt.doubt); c.By != tt.want {
			t.Errorf("after %d ± %d: %d, want %d", tt.by, tt.doubt, c.By, tt.want)
		}
	}
}
