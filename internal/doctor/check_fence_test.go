package doctor

import (
	"strings"
	"testing"
	"time"

	"sluice/config"
)

func TestHoldThatAnOrderCanOutlastIsNoFence(t *testing.T) {
	for hold, warned := range map[time.Duration]bool{10 * time.Second: true, 11 * time.Second: false} {
		c := config.Default()
		c.Stock.Reserve.OnNotFound, c.Stock.Reserve.ReservationTTL, c.Upstream.Timeout = "release_after_ttl", hold,
			10*time.Second
		said := examined(c, (*Report).checkReserve)
		if got := strings.Contains(said, `on_not_found is "release_after_ttl", but`); got != warned {
			t.Errorf("hold %v: warned: %v\n%s", hold, got, said)
		}
	}
}
