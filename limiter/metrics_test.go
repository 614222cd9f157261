package limiter

import (
	"net/netip"
	"sluice/internal/testkit"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetrics_WindowsAreCountedOnceAndNotTheirRejections(t *testing.T) {
	w := NewWindowLimiter(tenMs(0), Caps{All: 3, PerSKU: 2})
	for range 5 {
		w.Acquire(0, []byte("a")) // fills its window
	}
	for range 5 {
		w.Acquire(0, []byte("b")) // one, which fills that of all
	}
	w.Acquire(10*ms, []byte("b"))
	want := map[string]float64{
		"sluice_windows_total sku": 3, "sluice_windows_total all": 2,
		"sluice_windows_saturated_total sku": 1, "sluice_windows_saturated_total all": 1,
	}
	if diff := cmp.Diff(want, testkit.Series(t, w)); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestMetrics_GaugesShowWhatIsTakenNow(t *testing.T) {
	p, c := NewConcurrencyLimiter(7, 0), NewConnLimiter(0, 0)
	p.Acquire(false, 0, nil)
	c.Open(netip.Addr{})
	c.Open(netip.Addr{})
	want := map[string]float64{
		"sluice_queue_length": 0, "sluice_upstream_in_flight_limit": 7, "sluice_gated_in_flight": 1, "sluice_connections": 2,
		"sluice_queue_waits_total admitted": 0, "sluice_queue_waits_total timed_out": 0, "sluice_queue_waits_total gone": 0,
		"sluice_queue_waits_total displaced": 0,
	}
	if diff := cmp.Diff(want, testkit.Series(t, p, c)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
