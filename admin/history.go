package admin

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/proxy/metrics"
)

const (
	keptSeconds = 600 // 10 minutes
	maxStreams  = 32  // of events at a time; a browser's tabs can share one
)

// History looks at the gate's traffic and metrics once a second, and remembers ten minutes of what they said. It
// promises that its memory is fixed, however many look, and that a slow listener delays no other. It is safe for
// concurrent use.
type History struct {
	traffic       func() metrics.Traffic
	metrics       prometheus.Gatherer
	stop, stopped chan struct{}

	mu      sync.Mutex
	ring    [keptSeconds]encodedSecond
	n       int           // seconds ever
	now     *reading      // the latest
	news    chan struct{} // closed with the next second
	streams int
	day     minutes
	skus    map[string]*moments // those of now, so as many as the metrics have
}

// encodedSecond is one second, as it is and as it is answered.
type encodedSecond struct {
	second *Second
	json   json.RawMessage
}

// NewHistory returns a Watch over traffic and metrics that looks until it is closed. Of metrics it gathers all, whether
// it shows them or not.
func NewHistory(traffic func() metrics.Traffic, metrics prometheus.Gatherer) *History {
	w := &History{traffic: traffic, metrics: metrics, stop: make(chan struct{}), stopped: make(chan struct{}),
		news: make(chan struct{}), skus: map[string]*moments{}}
	w.now = w.read()
	w.now.updateMoments(w.skus, 0)
	go w.run()
	return w
}

// Close ends the looking, and every stream of events.
func (w *History) Close() {
	close(w.stop)
	<-w.stopped
}

// run looks at the end of each second of the wall clock, so that the seconds of several instances are the same.
func (w *History) run() {
	defer close(w.stopped)
	last := time.Now()
	for {
		next := time.Now().Truncate(time.Second).Add(time.Second)
		select {
		case <-w.stop:
			return
		case <-time.After(time.Until(next)):
		}
		now := time.Now()
		w.addSecond(now.Unix(), now.Sub(last).Seconds())
		last = now
	}
}

func (w *History) read() *reading {
	families, _ := w.metrics.Gather() // what could be gathered is there beside an error
	return read(w.traffic(), families)
}

// addSecond notes the second that ends at at. A clock that was set back has its seconds left out.
func (w *History) addSecond(at int64, span float64) {
	now := w.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n > 0 && w.ring[(w.n-1)%keptSeconds].second.At == at {
		at++ // the timer was a little early, and then right
	}
	s := between(w.now, now, at, span)
	w.now = now
	text, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a second that is no JSON: " + err.Error())
	}
	w.ring[w.n%keptSeconds] = encodedSecond{s, text}
	w.n++
	w.day.add(s)
	now.updateMoments(w.skus, at)
	close(w.news)
	w.news = make(chan struct{})
}

// latest is the second that ended last; nil = none has.
func (w *History) latest() *Second {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n == 0 {
		return nil
	}
	return w.ring[(w.n-1)%keptSeconds].second
}

// after are the seconds that end after at, the oldest first, and news, which is closed when there is another.
func (w *History) after(at int64) (seconds []encodedSecond, news <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := w.n - 1; i >= max(0, w.n-keptSeconds) && w.ring[i%keptSeconds].second.At > at; i-- {
		seconds = append(seconds, w.ring[i%keptSeconds])
	}
	slices.Reverse(seconds)
	return seconds, w.news
}

// since is what was done between two Unix seconds, by whole minutes of the last day, and when SKUs were sold first and
// last.
func (w *History) since(from, to int64) (Tally, map[string]moments) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]moments, len(w.skus))
	for sku, m := range w.skus {
		seen[sku] = *m
	}
	return w.day.sum(from, to), seen
}

// acquireListener takes a place among those who listen; leave gives it back.
func (w *History) acquireListener() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams == maxStreams {
		return false
	}
	w.streams++
	return true
}

func (w *History) releaseListener() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams--
}

// count adds to l what it did.
func (w *History) count(l *Limit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s *Second
	if w.n > 0 {
		s = w.ring[(w.n-1)%keptSeconds].second
	}
	// all keyed rates reject for the same reason: theirs are counted apart
	if len(l.Reasons) == 1 && l.Reasons[0] == "rate" {
		l.Rejected, l.Observed = w.now.rateRejected[l.Name], w.now.rateObserved[l.Name]
		if s != nil {
			l.RejectedPerSecond, l.ObservedPerSecond = perSecondOf(s.rateRejected[l.Name], s.Span),
				perSecondOf(s.rateObserved[l.Name], s.Span)
		}
		return
	}
	for _, reason := range l.Reasons {
		l.Rejected += w.now.rejected[reason] + w.now.series["rejected_connections_total"][reason]
		l.Observed += w.now.observed[reason] + w.now.series["observed_connection_rejections_total"][reason]
		if s != nil {
			l.RejectedPerSecond += perSecondOf(s.Rejected[reason]+s.RejectedConnections[reason], s.Span)
			l.ObservedPerSecond += perSecondOf(s.Observed[reason], s.Span)
		}
	}
}

func perSecondOf(n int64, span float64) float64 {
	if span <= 0 {
		return 0
	}
	return float64(n) / span
}
