package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// bookshop is a shop behind gate = "reserve". It books each order by its serial, answers by its serial whether it has
// an order, and then never takes one that it has denied. What it does beside that is the test's to say.
type bookshop struct {
	url  string
	fail func(r *http.Request) bool // which orders it answers 500 and does not book; nil = none

	mu        sync.Mutex
	orders    map[string]string // serial -> user
	sold      map[string]int    // SKU -> orders
	came      map[string]int    // serial -> how often it was sent
	denied    map[string]bool
	uninvited int // orders without the gate's own words
	number    int // of the order that came last
}

// book starts a bookshop for the length of the test. mishap, unless it is nil, is told the how-many-th order this is
// after it was booked, and reports whether it has answered in the shop's place.
func book(t *testing.T, mishap func(n int, w http.ResponseWriter, r *http.Request) bool) *bookshop {
	t.Helper()
	s := &bookshop{orders: map[string]string{}, came: map[string]int{}, sold: map[string]int{}, denied: map[string]bool{}}
	doors := http.NewServeMux()
	doors.HandleFunc("POST /api/seckill/{sku}/order", func(w http.ResponseWriter, r *http.Request) {
		if s.fail != nil && s.fail(r) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		n, ok := s.take(r)
		switch {
		case !ok:
			http.Error(w, "not this one", http.StatusConflict)
		case mishap == nil || !mishap(n, w, r):
			fmt.Fprintln(w, "ordered")
		}
	})
	doors.HandleFunc("GET /orders/by-serial/{serial}", func(w http.ResponseWriter, r *http.Request) {
		if !s.knows(r.PathValue("serial")) {
			http.NotFound(w, r)
		}
	})
	server := httptest.NewServer(doors)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// take books an order.
func (s *bookshop) take(r *http.Request) (n int, ok bool) {
	serial, user := r.Header.Get("Idempotency-Key"), ""
	if c, err := r.Cookie("uid"); err == nil {
		user = c.Value
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	s.came[serial]++
	if serial == "" || r.Header.Get("Sluice-Sku") != r.PathValue("sku") || r.Header.Get("Sluice-Quantity") != "1" ||
		r.Header.Get("Sluice-Deadline") == "" {
		s.uninvited++
		return s.number, false
	}
	if s.denied[serial] {
		return s.number, false
	}
	if _, known := s.orders[serial]; !known {
		s.sold[r.PathValue("sku")]++
	}
	s.orders[serial] = user
	return s.number, true
}

// knows tells whether there is an order; if there is none, there never will be.
func (s *bookshop) knows(serial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.orders[serial]
	s.denied[serial] = !ok
	return ok
}

// booked is how many orders there are.
func (s *bookshop) booked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orders)
}

// audit fails the test when an order was sent twice, a user has two, or one came past the gate.
func (s *bookshop) audit(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for serial, n := range s.came {
		if n > 1 {
			t.Errorf("the shop was sent the order %s %d times", serial, n)
		}
	}
	users := map[string]int{}
	for _, user := range s.orders {
		if users[user]++; users[user] == 2 {
			t.Errorf("user %s has two orders", user)
		}
	}
	if s.uninvited > 0 {
		t.Errorf("%d orders came without the gate's headers", s.uninvited)
	}
}

func (s *bookshop) setting() string {
	return "upstream.targets = " + quoted(s.url) +
		"\nstock.reserve.on_not_found = \"cancel_then_release\"\nstock.reserve.status_url = " +
		fmt.Sprintf("%q", s.url+"/orders/by-serial/{serial}")
}
