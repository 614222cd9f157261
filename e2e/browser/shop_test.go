package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"
)

// order is one that a shop has.
type order struct {
	serial, user string
	at           time.Time
	times        int // how often it was sent
}

// shop sells what the gate has reserved, and shows the page of examples/client.
type shop struct {
	url string

	mu     sync.Mutex
	orders []*order
}

// trade opens a shop for the length of the test.
func trade(t *testing.T) *shop {
	t.Helper()
	page, err := os.ReadFile("../../examples/client/index.html")
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{}
	doors := http.NewServeMux()
	doors.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	doors.HandleFunc("GET /favicon.ico",
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	doors.HandleFunc("GET /item/{sku}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, bareForm, r.PathValue("sku"))
	})
	doors.HandleFunc("POST /api/seckill/{sku}/order", s.sell)
	doors.HandleFunc("POST /api/queued/{sku}", s.sell)
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

// bareForm is a page of a shop that has added nothing.
const bareForm = `<!doctype html><title>Item</title><form action="/api/seckill/%s/order" ` +
	`method="post"><button>Buy</button></form>`

// sell books the order. The SKUs "broken" and "stuck" are those whose orders it cannot answer.
func (s *shop) sell(w http.ResponseWriter, r *http.Request) {
	if sku := r.PathValue("sku"); sku == "broken" || sku == "stuck" {
		panic(http.ErrAbortHandler)
	}
	cookie, err := r.Cookie("uid")
	if err != nil {
		http.Error(w, "who are you?", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	serial := r.Header.Get("Idempotency-Key")
	for _, o := range s.orders {
		if o.serial == serial {
			o.times++
			return
		}
	}
	s.orders = append(s.orders, &order{serial, cookie.Value, time.Now(), 1})
	fmt.Fprintln(w, "ordered")
}

func (s *shop) knows(serial string) bool {
	for _, o := range s.booked() {
		if o.serial == serial {
			return true
		}
	}
	return false
}

// booked are its orders, as they came.
func (s *shop) booked() (all []order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		all = append(all, *o)
	}
	return all
}

func (s *shop) settings() string {
	return fmt.Sprintf("upstream.targets = [%q]\nstock.reserve.status_url = %q\n", s.url, s.url+
		"/orders/by-serial/{serial}")
}
