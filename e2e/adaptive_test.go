package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// strained is a shop with workers, before whom requests wait inside; past twice as many it spends time on the crowd
// itself.
type strained struct {
	*shop
	free    chan struct{} // one for each worker
	serving atomic.Int64  // ns
	inside  atomic.Int64
	served  atomic.Int64
}

const workers = 20

func strain(t *testing.T) *strained {
	s := &strained{free: make(chan struct{}, workers)}
	s.serving.Store(int64(20 * time.Millisecond))
	s.shop = open(t, func(_ http.ResponseWriter, r *http.Request) {
		crowd := s.inside.Add(1)
		defer s.inside.Add(-1)
		s.free <- struct{}{}
		defer func() { <-s.free }()
		serving := time.Duration(s.serving.Load())
		time.Sleep(serving * time.Duration(max(crowd, 2*workers)) / (2 * workers)) // what an order takes
		s.served.Add(1)
	})
	return s
}

// moment is what a strained shop did in a tenth of a second.
type moment struct{ inside, served, capacity float64 }

const tenth = 100 * time.Millisecond

// Real time, 26 s, in 10 of which the shop is slow. With -update it draws the picture of docs/limits.md anew.
func TestConcurrency_AdaptiveLimitBesideAFixedOne(t *testing.T) {
	testkit.Nightly(t, "it measures a shop for 26 s")
	var shops [2]*strained
	var crowd sync.WaitGroup
	stop := make(chan struct{})
	for i, adaptive := range []string{"false", "true"} {
		shops[i] = strain(t)
		g := gate(t, shops[i].setting(), unlimited, `limits.connection.max_connections_per_ip = 10000
limits.concurrency.max_in_flight = 200
limits.concurrency.adaptive = `+adaptive, threeRoutes)
		for range 300 {
			crowd.Go(func() { press(g, stop) })
		}
	}
	fixed, adaptive := film(shops)
	close(stop)
	crowd.Wait()
	slow := func(f []moment) (served, could float64) {
		for _, m := range f[80:180] {
			served, could = served+m.served, could+m.capacity
		}
		return served, could
	}
	for name, f := range map[string][]moment{"fixed": fixed, "adaptive": adaptive} {
		served, could := slow(f)
		t.Logf("%s: while the shop is slow it answers %.0f of the %.0f that it could: %.1f%%", name, served, could,
			100*served/could)
	}
	if !*update {
		return
	}
	if err := os.WriteFile(filepath.FromSlash(root+"/docs/adaptive.svg"), []byte(draw(fixed, adaptive)),
		0o644); err != nil {
		t.Fatal(err)
	}
}

// film looks at both shops ten times a second: 8 s of a good day, 10 s of three times the latency, and 8 s again.
func film(shops [2]*strained) (fixed, adaptive []moment) {
	var films [2][]moment
	var before [2]int64
	tick := time.NewTicker(tenth)
	defer tick.Stop()
	for i := range 260 {
		for _, s := range shops {
			if i == 80 {
				s.serving.Store(int64(60 * time.Millisecond))
			} else if i == 180 {
				s.serving.Store(int64(20 * time.Millisecond))
			}
		}
		<-tick.C
		for j, s := range shops {
			served := s.served.Load()
			could := workers * float64(tenth) / float64(s.serving.Load())
			films[j] = append(films[j], moment{float64(s.inside.Load()), float64(served - before[j]), could})
			before[j] = served
		}
	}
	return films[0], films[1]
}

// press orders again and again.
func press(g *running, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		r, _ := http.NewRequest("POST", "http://"+g.front+"/order", nil)
		resp, err := g.client.Do(r)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			time.Sleep(tenth) // a client's pause after a rejection
		}
	}
}
