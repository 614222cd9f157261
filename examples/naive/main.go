// Command naive is a shop with the usual defect: it reads the stock, works for a while, and then takes a unit. A crowd
// makes it oversell. The tutorial (docs/tutorial.md) starts with it and puts Sluice in front.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	workers  = 30                     // orders at the same time
	work     = 100 * time.Millisecond // what one order takes: payment, database, mail
	patience = 50 * time.Millisecond
)

type shop struct {
	redis   *redis.Client
	workers chan struct{}
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	select {
	case s.workers <- struct{}{}:
		defer func() { <-s.workers }()
	case <-time.After(patience):
		http.Error(w, "too many orders", http.StatusServiceUnavailable)
		return
	}
	if r.Header.Get("Sluice-Sku") != "" { // gate = "reserve": Sluice holds the unit
		time.Sleep(work)
		w.WriteHeader(http.StatusCreated)
		return
	}
	key := "seckill:stock:" + r.PathValue("sku")
	left, err := s.redis.Get(r.Context(), key).Int()
	if err != nil || left <= 0 {
		http.Error(w, "sold out", http.StatusConflict)
		return
	}
	time.Sleep(work) // meanwhile other orders read the same number
	if err := s.redis.Decr(r.Context(), key).Err(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func main() {
	stock, address := "127.0.0.1:6379", "127.0.0.1:9000"
	if len(os.Args) == 3 { // naive ADDRESS REDIS
		address, stock = os.Args[1], os.Args[2]
	}
	s := &shop{redis: redis.NewClient(&redis.Options{Addr: stock}), workers: make(chan struct{}, workers)}
	if err := s.redis.Ping(context.Background()).Err(); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /api/seckill/{sku}/order", s.order)
	http.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a shop") })
	log.Fatal(http.ListenAndServe(address, nil)) //nolint:gosec // a shop of a tutorial needs no time-outs
}
