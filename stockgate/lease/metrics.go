package lease

import "github.com/prometheus/client_golang/prometheus"

func partDesc() *prometheus.Desc {
	return prometheus.NewDesc("sluice_fleet_limit_part_ratio",
		"Part of a limit of the fleet that this instance has of each key that is not busy; 0 = none yet.",
		[]string{"limit"}, nil)
}

// Describe tells the metrics of Keepers.
func Describe(to chan<- *prometheus.Desc) { to <- partDesc() }

// Collect tells the parts that were told last.
func (k *Keeper) Collect(to chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, b := range k.budgets {
		to <- prometheus.MustNewConstMetric(partDesc(), prometheus.GaugeValue, max(b.base, 0), name)
	}
}
