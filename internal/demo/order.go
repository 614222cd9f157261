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
	noUser   = answer{http.StatusUnauthorized, 40100, "open the product page first: it gives you a uid"}
	notSold  = answer{http.StatusNotFound, 40400, "no such item"}
	shutting = answer{http.StatusServiceUnavailable, 50300, "the shop is closing"}

	// These are given behind gate = "reserve" alone.
	noUnit    = answer{http.StatusForbidden, 40300, "orders come through the gateway, with a unit that it holds"}
	declined  = answer{http.StatusPaymentRequired, 40200, "the payment was declined"}
	cancelled = answer{http.StatusConflict, 40903, "this order was cancelled"}
	fellOver  = answer{http.StatusInternalServerError, 50000, "something broke"}
)

// order answers one order. When its answer dawdles, the order itself is done, and no request is in the shop any more.
func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	a, id, m := s.visit(r)
	if m == dawdles {
		s.dawdle(r.Context())
	}
	a.write(w, id)
}

// visit stands in line and writes an order down, where there is a unit for it.
func (s *Shop) visit(r *http.Request) (a answer, id string, m fault) {
	came := time.Now()
	inside := s.books.beginRequest()
	defer s.books.endRequest()
	user, serial := userOf(r), s.reservedOrder(r)
	switch {
	case user == "":
		return noUser, "", none
	case r.PathValue("sku") != s.SKU:
		return notSold, "", none
	case s.Reserved && serial == "":
		return noUnit, "", none
	case s.Reserved:
		s.books.arrive(serial)
	case s.Naive && inside > naiveWorkers:
		return fellOver, "", none
	case s.Naive && s.left.Load() <= 0:
		return soldOut, "", none
	}
	if !s.wait(s.till.ReserveN(came, 1).DelayFrom(came) + s.Service) {
		return shutting, "", none
	}
	if s.Reserved {
		return s.book(serial, user)
	}
	a, id = s.buy(user)
	return a, id, none
}

// naiveWorkers is how many requests a naive shop bears at once.
const naiveWorkers = 500

// buy takes one unit for a user who has none yet. The stock decides, the books only write down.
func (s *Shop) buy(user string) (a answer, id string) {
	if !s.books.begin(user) {
		return already, ""
	}
	if s.Naive {
		s.left.Add(-1) // it was read when the request arrived
	} else if !s.Stock.Sell(s.SKU, 1) {
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
