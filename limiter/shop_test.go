package limiter

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shop is one with workers and a line before them: a request that finds no free worker waits inside.
type shop struct {
	mu      sync.Mutex
	workers int
	serving time.Duration // of one request, on average
	jitter  float64
	inside  int
	line    []chan struct{}
	area    float64 // in flight * seconds
	since   time.Time
	served  int
	random  *rand.Rand
}

func (s *shop) move(by int) {
	now := time.Now()
	s.area += float64(s.inside) * now.Sub(s.since).Seconds()
	s.since = now
	s.inside += by
}

func (s *shop) serve() {
	s.mu.Lock()
	s.move(1)
	if s.inside > s.workers {
		turn := make(chan struct{})
		s.line = append(s.line, turn)
		s.mu.Unlock()
		<-turn
		s.mu.Lock()
	}
	took := time.Duration(float64(s.serving) * (1 + s.jitter*(s.random.ExpFloat64()-1)))
	s.mu.Unlock()
	time.Sleep(took) // of the bubble, as all times here
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(-1)
	s.served++
	for busy := s.inside - len(s.line); busy < s.workers && len(s.line) > 0; busy++ {
		close(s.line[0])
		s.line = s.line[1:]
	}
}

// moment is what a shop did in one second.
type moment struct {
	goodput  float64 // answers, as a share of what its workers can do
	inFlight float64 // on average
	limit    int
}

// look tells what the shop did since the last look.
func (s *shop) look(limit int) moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(0)
	seen := moment{float64(s.served) / float64(s.workers) * s.serving.Seconds(), s.area, limit}
	s.served, s.area = 0, 0
	return seen
}

func (s *shop) become(workers int, serving time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers, s.serving = workers, serving
}

// usual is what the shop of these tests is on a good day.
const (
	usualWorkers = 64
	usualServing = 20 * time.Millisecond
)

// tripled plays 10 s of a good day, 10 s in which the shop has other workers or other times, and 10 s of a good day
// again, with more shoppers than it can serve; it returns the 30 seconds one by one.
func tripled(t *testing.T, a *Adaptive, p *ConcurrencyLimiter, workers int, serving time.Duration, jitter float64) (
	seconds []moment,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() int64 { return int64(time.Since(start)) }
		s := &shop{
			jitter: jitter, since: start, random: rand.New(rand.NewPCG(1, 2)),
			workers: usualWorkers, serving: usualServing,
		}
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range 400 {
			all.Go(func() { visit(s, a, p, now, stop) })
		}
		all.Go(func() {
			for ; !closed(stop); time.Sleep(20 * time.Millisecond) { // of the bubble
				a.Tick(now())
			}
		})
		for range 3 {
			for range 10 {
				time.Sleep(time.Second) // of the bubble
				seconds = append(seconds, s.look(p.Max()))
			}
			s.become(workers, serving)
			workers, serving = usualWorkers, usualServing
		}
		close(stop)
		all.Wait()
	})
	return seconds
}

// visit is one shopper who comes back until the end.
func visit(s *shop, a *Adaptive, p *ConcurrencyLimiter, now func() int64, stop chan struct{}) {
	for !closed(stop) {
		if p.Acquire(false, 200*time.Millisecond, nil) != Admitted {
			time.Sleep(50 * time.Millisecond) // of the bubble
			continue
		}
		begun := now()
		s.serve()
		a.Answered(now(), time.Duration(now()-begun))
		p.Release()
	}
}

func closed(stop chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// mean is what some seconds have in common.
func mean(seconds []moment) (m moment) {
	for _, s := range seconds {
		m.goodput += s.goodput / float64(len(seconds))
		m.inFlight += s.inFlight / float64(len(seconds))
	}
	return m
}
