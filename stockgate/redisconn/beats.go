package redisconn

import (
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Beats follows a call that one goroutine makes again and again: whether Redis answered the last one, and how often it
// did. It logs when Redis is lost and found. It is safe for concurrent use, but for Record.
type Beats struct {
	log              *slog.Logger
	lost, found      string // what is logged
	answered, failed atomic.Uint64
	state            atomic.Uint32 // 0 = not called yet
}

const (
	beatAnswered = 1
	beatLost     = 2
)

// NewBeats returns one that logs these texts when Redis is lost, and when it is found again.
func NewBeats(log *slog.Logger, lost, found string) *Beats {
	return &Beats{log: log, lost: lost, found: found}
}

// Record notes how a call ended.
func (b *Beats) Record(err error) {
	before := b.state.Load()
	if err != nil {
		b.failed.Add(1)
		if b.state.Store(beatLost); before != beatLost {
			b.log.Warn(b.lost, "err", err)
		}
		return
	}
	b.answered.Add(1)
	if b.state.Store(beatAnswered); before == beatLost {
		b.log.Info(b.found)
	}
}

// Up reports whether Redis answered the last call.
func (b *Beats) Up() bool { return b.state.Load() == beatAnswered }

// Away reports whether Redis did not answer the last call.
func (b *Beats) Away() bool { return b.state.Load() == beatLost }

// Collect sends the calls by whether Redis answered, and whether it answered the last one where up is not nil.
func (b *Beats) Collect(ch chan<- prometheus.Metric, calls, up *prometheus.Desc) {
	ch <- prometheus.MustNewConstMetric(calls, prometheus.CounterValue, float64(b.answered.Load()), "answered")
	ch <- prometheus.MustNewConstMetric(calls, prometheus.CounterValue, float64(b.failed.Load()), "lost")
	if up == nil {
		return
	}
	is := 0.0
	if b.Up() {
		is = 1
	}
	ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, is)
}
