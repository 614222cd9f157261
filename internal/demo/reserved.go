package demo

import (
	"fmt"
	"net/http"
)

// reservedOrder gives the serial under which the gate holds a unit for this request; "" when it holds none: then the
// request did not come through the gate, which no client can pretend, since the gate drops what clients send as
// Sluice-*.
func (s *Shop) reservedOrder(r *http.Request) (serial string) {
	h := r.Header
	if h.Get("Sluice-Sku") != s.SKU || h.Get("Sluice-Quantity") != "1" {
		return ""
	}
	return h.Get("Idempotency-Key")
}

// book writes an order down whose unit the gate has taken. The shop asks no stock: it trusts the gate, and counts.
func (s *Shop) book(serial, user string) (a answer, id string, m fault) {
	if m = mishapOf(user); m == declines {
		return declined, "", m
	}
	id, ok := s.books.place(serial, user)
	switch {
	case !ok:
		return cancelled, "", none
	case m == breaks:
		return fellOver, "", m
	}
	return taken, id, m
}

// bySerial tells the gate's resolver whether there is an order: 200 or 404, and after a 404 there never will be one.
// What comes through the gate is a client's question, who must not cancel anything.
func (s *Shop) bySerial(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Via") != "" {
		http.Error(w, "only the gateway may ask, directly", http.StatusForbidden)
		return
	}
	id, ok := s.books.orderOf(r.PathValue("serial"))
	if !ok {
		http.Error(w, "no such order, and there never will be", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, "{\"order\":%q}\n", id)
}
