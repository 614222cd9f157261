package main

import (
	"fmt"
	"strconv"
)

// load is a crowd and the fleet that it meets: all that one point of a curve depends on.
type load struct {
	Gate        string `json:"gate"`               // by its name in gateKinds
	Instances   int    `json:"instances"`          // of the gate
	Connections int    `json:"connections"`        // of the crowd, spread over the instances
	Underway    int    `json:"under_way"`          // requests at a time; 0 = none
	Routes      int    `json:"routes"`             // that take orders, of which each request chooses one
	Gone        int    `json:"skus_sold_out"`      // of which each request for one chooses one
	Open        int    `json:"skus_on_sale"`       // likewise
	Units       int    `json:"units,omitempty"`    // of each SKU on sale; 0 = as many as anybody asks for
	Keys        int    `json:"keys"`               // users who look at pages, counted by a rate
	Requests    int    `json:"requests,omitempty"` // in all; 0 = as many as fit into the time
	PagePart    int    `json:"pages,omitempty"`    // of a hundred requests so many are forwarded by a `pass` route,
	LimitedPart int    `json:"limited,omitempty"`  // so many are rejected by a keyed rate,
	GonePart    int    `json:"gone,omitempty"`     // so many are orders for a SKU that is sold out,
	OrderPart   int    `json:"orders,omitempty"`   // so many for one on sale, each by another user,
	CheckPart   int    `json:"checks,omitempty"`   // and so many for one on sale by a `check` route
}

// usual is the load that each axis varies in one way.
func usual() load {
	return load{Gate: "sluice", Instances: 1, Connections: 64, Underway: 64, Routes: 1, Gone: 1, Open: 1, Keys: 1000}
}

// with is the load after a change.
func (l load) with(change func(*load)) load {
	change(&l)
	return l
}

// request is what a request asks for.
type request int

const (
	aPage request = iota
	tooMany
	soldOut
	anOrder
	aCheck
)

// compose puts the n-th request into a.out.
func (a *requester) compose(n int64) (what request) {
	dice := a.dice.IntN(100)
	for _, part := range []int{a.PagePart, a.LimitedPart, a.GonePart, a.OrderPart} {
		if dice < part {
			break
		}
		dice -= part
		what++
	}
	out, user := a.out[:0], a.dice.IntN(a.Keys)
	switch what {
	case aPage:
		out = append(out, "GET /item/1001"...)
	case tooMany:
		out = append(out, "GET /limited"...)
	case soldOut:
		sku := a.dice.IntN(a.Gone)
		if a.tour {
			sku = int(n) % a.Gone
		}
		out = a.order(out, "gone", sku)
	case anOrder:
		out = a.order(out, "open", a.dice.IntN(a.Open))
	case aCheck:
		sku := a.dice.IntN(a.Open)
		if a.tour {
			sku = int(n) % a.Open
		}
		out = fmt.Appendf(out, "POST /check/open-%d/order", sku)
	}
	out = append(out, " HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: crowd\r\n"+
		"Accept: application/json\r\nCookie: uid="...)
	if what == anOrder {
		out = append(append(out, a.run...), '-')
		out = strconv.AppendInt(append(strconv.AppendInt(out, int64(a.place), 10), '-'), n, 10)
	} else {
		out = strconv.AppendInt(append(out, 'u'), int64(user), 10)
	}
	if what >= soldOut {
		out = append(out, "\r\nContent-Length: 0"...)
	}
	a.out = append(out, "\r\n\r\n"...)
	return what
}

// order is the request line of an order, on one of the routes.
func (a *requester) order(out []byte, what string, sku int) []byte {
	out = strconv.AppendInt(append(out, "POST /order-"...), int64(a.dice.IntN(a.Routes)), 10)
	out = append(append(append(out, '/'), what...), '-')
	return append(strconv.AppendInt(out, int64(sku), 10), "/order"...)
}
