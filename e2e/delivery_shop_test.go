package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lameShop makes an order of whatever it is asked for: it looks at no key. It hangs, and loses answers. What it keeps
// to is Sluice-Deadline.
type lameShop struct {
	server *httptest.Server
	hangs  float64       // share of orders that it takes slow for
	slow   time.Duration // at most
	loses  float64       // share of orders whose answer is lost after they were made
	answer func(w http.ResponseWriter, r *http.Request) (made bool)

	inside, most atomic.Int64
	attempts     atomic.Int64
	mu           sync.Mutex
	made         map[string]int // by serial
	bodies       map[string]string
	order        []string
}

func openLameShop(t *testing.T) *lameShop {
	t.Helper()
	s := &lameShop{made: map[string]int{}, bodies: map[string]string{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	return s
}

// settings are those of a gate before the shop, at a URL of its own, whose attempts time out soon.
func (s *lameShop) settings(target string) string {
	return fmt.Sprintf("upstream.targets = %s\nstock.reserve.status_url = \"%s/status/{serial}\"\n", quoted(target),
		s.server.URL) + `stock.reserve.on_not_found = "release_after_deadline"
stock.reserve.max_per_user = 1
upstream.timeout = "300ms"
upstream.response_header_timeout = "300ms"
upstream.queue_timeout = "300ms"
queue.grace = "400ms"
`
}

// patient are settings whose attempts a busy machine, too, ends in time.
func (s *lameShop) patient(target string) string {
	return strings.ReplaceAll(s.settings(target), `imeout = "300ms"`, `imeout = "20s"`)
}

func (s *lameShop) serve(w http.ResponseWriter, r *http.Request) {
	if serial, ok := strings.CutPrefix(r.URL.Path, "/status/"); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.made[serial] == 0 {
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
	now := s.inside.Add(1)
	defer s.inside.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	s.attempts.Add(1)
	body, _ := io.ReadAll(r.Body)
	if rand.Float64() < s.hangs {
		time.Sleep(time.Duration(rand.Int64N(int64(s.slow)))) // the shop's work
	} else if s.slow > 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Millisecond)))) // the shop's work
	}
	if s.answer != nil && !s.answer(w, r) {
		return
	}
	if !s.make(r, string(body)) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if rand.Float64() < s.loses {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close()
		}
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %s of %s", r.Header.Get("Idempotency-Key"), r.Header.Get("Cookie"))
}

// make makes an order, unless its deadline has passed.
func (s *lameShop) make(r *http.Request, body string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline, err := strconv.ParseInt(r.Header.Get("Sluice-Deadline"), 10, 64)
	if err != nil || time.Now().UnixMilli() >= deadline {
		return false
	}
	serial := r.Header.Get("Idempotency-Key")
	s.made[serial]++
	s.bodies[serial] = body
	s.order = append(s.order, serial)
	return true
}

// doubles are the serials of which more than one order was made.
func (s *lameShop) doubles() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for serial, n := range s.made {
		if n > 1 {
			list = append(list, serial)
		}
	}
	return list
}

func (s *lameShop) orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made)
}
