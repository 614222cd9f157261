// Command go is a shop behind Sluice, as small as one can be: it verifies that the gate has taken the unit, makes each
// order once, and says what became of it. The lines to take over are order and signed; a map stands for the table of
// orders.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type shop struct {
	key []byte // what the gate signs with

	mu     sync.Mutex
	orders map[string]string // by serial: what was ordered
}

// signed reports whether the gate holds the units that r names.
func (s *shop) signed(r *http.Request) bool {
	h := r.Header.Get
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(strings.Join([]string{"v1", r.Method, r.RequestURI, h("Idempotency-Key"), h("Sluice-Sku"),
		h("Sluice-Quantity"), h("Sluice-Deadline")}, "\n")))
	return hmac.Equal([]byte("v1="+hex.EncodeToString(mac.Sum(nil))), []byte(h("Sluice-Signature")))
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	if !s.signed(r) {
		http.Error(w, "not from the gate", http.StatusForbidden)
		return
	}
	serial, what := r.Header.Get("Idempotency-Key"), r.Header.Get("Sluice-Quantity")+" of "+r.Header.Get("Sluice-Sku")
	deadline, err := strconv.ParseInt(r.Header.Get("Sluice-Deadline"), 10, 64)
	s.mu.Lock() // in a database: the transaction that inserts the order
	defer s.mu.Unlock()
	known, ok := s.orders[serial]
	if err != nil || !ok && time.Now().UnixMilli() > deadline || ok && known != what {
		w.Header().Set("Sluice-Order", "released") // there is no order, and there will be none: the units go back on sale
		http.Error(w, "too late", http.StatusConflict)
		return
	}
	s.orders[serial] = what // once, whatever comes again
	w.Header().Set("Sluice-Order", "confirmed")
	fmt.Fprintf(w, "ordered %s\n", what)
}

// bySerial is what the gate asks when an answer was lost: 200 = there is an order, 404 = there is none.
func (s *shop) bySerial(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what, ok := s.orders[r.PathValue("serial")]; ok {
		fmt.Fprintln(w, what)
		return
	}
	http.NotFound(w, r)
}

func main() {
	key := strings.TrimSpace(os.Getenv("SLUICE_SECRET"))
	if len(key) < 16 {
		log.Fatal("SLUICE_SECRET: the line of stock.reserve.secret_file, at least 16 bytes")
	}
	s := &shop{key: []byte(key), orders: map[string]string{}}
	http.HandleFunc("POST /api/seckill/{sku}/order", s.order)
	http.HandleFunc("GET /orders/by-serial/{serial}", s.bySerial)
	address := "127.0.0.1:" + os.Getenv("PORT")
	log.Fatal(http.ListenAndServe(address, nil))
}
