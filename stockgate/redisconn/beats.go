package redisconn

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Beats follows a call that one goroutine makes again and again: whether Redis answered the last one, and how often it
// did. It logs when Redis is lost and found. It is safe for concurrent use, but for Record.
type Beats struct {
	log              *slog.Logger
	lost, found      string // what is logged
	answered, failed atomic.Uint64
	state            atomic.Uint32 // 0 = not called yet
	losses           LossLog
}

// lossEvery is how often a LossLog names a loss at most.
const lossEvery = 10 * time.Second

// LossLog logs that Redis is lost and found, at most one loss in 10 s: a slow Redis is lost and found many times in a
// second. It is not safe for concurrent use.
type LossLog struct {
	at    time.Time // of the last line
	since int       // losses since then
	said  bool      // the log says that Redis is lost
}

// Lost logs that Redis is lost at now, unless it is too early; the next call that fails does so then. begins says that
// Redis answered the call before. text begins with "cannot reach Redis", which a late answer does not show.
func (l *LossLog) Lost(log *slog.Logger, now time.Time, begins bool, text string, err error) {
	if begins {
		l.since++
	}
	if l.said || !l.at.IsZero() && now.Sub(l.at) < lossEvery {
		return
	}
	if isLate(err) {
		text = strings.Replace(text, "cannot reach Redis", "Redis answers later than stock.redis.timeout", 1)
	}
	log.Warn(text, "err", err, "losses", l.since, "fix", Remedy(err))
	l.at, l.since, l.said = now, 0, true
}

// Found logs that Redis is found again, if the log says that it is lost.
func (l *LossLog) Found(log *slog.Logger, text string, args ...any) {
	if l.said {
		log.Info(text, args...)
	}
	l.said = false
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
		b.state.Store(beatLost)
		b.losses.Lost(b.log, time.Now(), before != beatLost, b.lost, err)
		return
	}
	b.answered.Add(1)
	b.state.Store(beatAnswered)
	b.losses.Found(b.log, b.found)
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
