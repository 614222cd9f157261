package queue

import (
	"log/slog"
	"sync"
	"time"
)

// stall knows since when orders wait and no instance is granted a place for one. It is safe for concurrent use.
type stall struct {
	mu        sync.Mutex
	since     time.Time // zero = orders are delivered, or none waits
	asked     time.Time // when places were asked for in vain last
	delivered int64     // by all instances, at since
	said      bool      // in the log
}

// askedLately is for how long it is known that nothing is granted. Consumers that have gone ask for nothing more.
const askedLately = time.Minute

// note takes in whether places were asked for in vain, and how many orders all instances have delivered.
func (s *stall) note(now time.Time, inVain bool, delivered int64, lawful time.Duration, log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if inVain {
		if now.Sub(s.asked) > askedLately {
			s.since, s.said = time.Time{}, false
		}
		s.asked = now
	}
	switch {
	case inVain && s.since.IsZero(), inVain && s.delivered != delivered && !s.said:
		s.since, s.delivered = now, delivered
	case inVain && s.delivered == delivered && !s.said && now.Sub(s.since) > lawful:
		s.said = true
		log.Error("orders wait, nothing is granted: no order of the queue goes to the upstream; compare the clock of Redis "+
			"with this machine's", "for", now.Sub(s.since).Round(time.Second))
	case inVain && s.delivered == delivered:
	default:
		if s.said {
			log.Info("orders of the queue go to the upstream again", "after", now.Sub(s.since).Round(time.Second))
		}
		s.since, s.said = time.Time{}, false
	}
}

// Stalled is for how long orders have waited while no instance was granted a place, where that is longer than a pause,
// a place and the rate explain; else 0.
func (d *Deliverer) Stalled(now time.Time) time.Duration {
	d.stall.mu.Lock()
	defer d.stall.mu.Unlock()
	if d.stall.said && now.Sub(d.stall.asked) <= askedLately {
		return now.Sub(d.stall.since)
	}
	return 0
}

// noteGrant notes whether places were asked for in vain.
func (d *Deliverer) noteGrant(now time.Time, inVain bool) {
	d.stall.note(now, inVain, d.lines.total().Delivered, d.longestWait(), d.live().Log)
}

// longest is for how long an attempt of any instance may have a place.
func (s *shared) longest() time.Duration {
	const ofOthers = time.Minute // whose upstream.timeout may be longer
	return max(4*s.live().Timeout+s.live().Grace+time.Second, ofOthers)
}

// longestWait is for how long no place may be granted while orders wait: all are taken, or the upstream wants a pause,
// and then the rate allows the next one.
func (s *shared) longestWait() time.Duration {
	wait := max(s.longest(), mostPause) + 5*time.Second
	if rate := s.live().Rate; rate > 0 {
		wait += time.Duration(float64(time.Second) / rate)
	}
	return wait
}
