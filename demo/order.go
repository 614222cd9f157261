package demo

import (
	"fmt"
	"net/http"
	"time"
)

// answer is one of the shop's answers to an order, with the codes that Chinese shops put into the body.
type answer struct {
	status, code int
	msg          string
}

var (
	taken    = answer{http.StatusOK, 0, "ok"}
	soldOut  = answer{http.StatusConflict, 40901, "sold out"}
	already  = answer{http.StatusConflict, 40902, "you have bought this already"}
	nobody   = answer{http.StatusUnauthorized, 40100, "open the product page first: it gives you a uid"}
	notSold  = answer{http.StatusNotFound, 40400, "no such item"}
	shutting = answer{http.StatusServiceUnavailable, 50300, "the shop is closing"}
)

// order stands in line, takes a unit, and writes the order down.
func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	s.books.enter()
	defer s.books.leave()
	user := userOf(r)
	switch {
	case user == "":
		nobody.write(w, "")
		return
	case r.PathValue("sku") != s.SKU:
		notSold.write(w, "")
		return
	case !s.wait(s.till.join(came)):
		shutting.write(w, "")
		return
	}
	a, id := s.buy(user)
	s.books.took.record(time.Since(came))
	a.write(w, id)
}

// buy takes one unit for a user who has none yet. The stock decides, the books only write down.
func (s *Shop) buy(user string) (a answer, id string) {
	if !s.books.begin(user) {
		return already, ""
	}
	if !s.Stock.Take(s.SKU, 1) {
		s.books.abandon(user)
		return soldOut, ""
	}
	return taken, s.books.write(user)
}

// wait reports whether the time passed; the shop closing ends it early.
func (s *Shop) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.closing:
		return false
	}
}

func (a answer) write(w http.ResponseWriter, order string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	if order != "" {
		fmt.Fprintf(w, "{\"code\":%d,\"msg\":%q,\"order\":%q}\n", a.code, a.msg, order)
		return
	}
	fmt.Fprintf(w, "{\"code\":%d,\"msg\":%q}\n", a.code, a.msg)
}

// uidCookie carries who buys; the product page sets it.
const uidCookie = "uid"

// maxUser is the longest user in bytes.
const maxUser = 64

// userOf gives the user of a request; "" when it names none, or none that could be one of the page's.
func userOf(r *http.Request) string {
	c, err := r.Cookie(uidCookie)
	if err != nil || len(c.Value) > maxUser {
		return ""
	}
	return c.Value
}
