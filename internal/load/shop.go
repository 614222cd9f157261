package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// ShopOptions say what a shop sells, what it can bear, and how it answers.
type ShopOptions struct {
	Units     int64         // for sale in all; more orders than these are oversold
	Capacity  int           // orders that it works on at a time; others wait in line, without an end
	Latency   time.Duration // what it works on one
	MaxInside int           // requests that it bears at a time, and answers 500 to others; 0 = any number

	// Who takes the units. Without any of these the shop counts by itself.

	Reserved bool // the gateway; the shop books each serial once
	Naive    bool // the shop reads how many are left when a request arrives, and takes one off when it is done

	// Take takes one unit off the stock that the gateway reads; false = there is none. On an error the order is made.
	Take func(context.Context) (bool, error)

	SKU   string                            // where Reserved: what is not for one unit of it is rejected; "" = any
	User  func(*fasthttp.RequestCtx) string // who buys, once each unless Reserved; nil = it is not known
	Fault func(n int64, user string) Fault  // what goes wrong with the n-th request, from 1; nil = nothing
	Page  func(*fasthttp.RequestCtx) bool   // answers what is no order, and reports that; nil = health checks alone
	Again bool                              // an order that it does not know may still come: until its Sluice-Deadline

	Status   int    // of an order that was made, with Body
	Body     string // likewise; "" = 200, a code, and the order's number
	Confirms bool   // it says that the order is final, since its status does not
	Teaches  bool   // it says that it is sold out
}

// Fault is what goes wrong with an order.
type Fault uint8

// Faults of a shop.
const (
	NoFault  Fault = iota
	Fails          // no order is made, and the answer is 500
	Declined       // the payment is declined: no order
	Breaks         // the order is made, and then the answer is 500
	Slow           // the order is made, and the answer comes after slowAnswer
)

// slowAnswer is more than a gateway before such a shop waits.
const slowAnswer = 3 * time.Second

// Failing has a part of the orders fail, evenly spread.
func Failing(part float64) func(int64, string) Fault {
	return func(n int64, _ string) Fault {
		if int64(float64(n)*part) > int64(float64(n-1)*part) {
			return Fails
		}
		return NoFault
	}
}

// Shop is a stand-in for the shop, on a loopback port of its own. It counts what it sells by itself, apart from the
// stock: an oversold unit shows even when the stock is wrong. It is safe for concurrent use.
type Shop struct {
	o        ShopOptions
	listener net.Listener
	server   fasthttp.Server
	places   chan struct{}
	closing  chan struct{} // closed by Close: no request waits any longer
	closed   sync.Once
	served   sync.WaitGroup

	start    atomic.Int64 // Unix ns
	came     Series
	sold     Series
	inFlight gauge
	working  gauge
	requests atomic.Int64
	failed   atomic.Int64
	broke    atomic.Int64 // orders whose unit could not be taken off the stock that the gateway reads
	left     atomic.Int64 // where the shop counts by itself
	waited   *Stopwatch
	worked   *Stopwatch
	books    books
}

// OpenShop starts a shop. The caller closes it.
func OpenShop(o ShopOptions) (*Shop, error) {
	if o.Capacity < 1 || o.Latency < 0 || o.Units < 0 || o.Reserved && o.Naive ||
		o.Take != nil && (o.Reserved || o.Naive) {
		return nil, errors.New("open shop: it needs a capacity, one that takes the units, no negative units and latency")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	s := &Shop{o: o, listener: ln, places: make(chan struct{}, o.Capacity), closing: make(chan struct{}),
		waited: NewStopwatch(), worked: NewStopwatch(), books: newBooks()}
	s.left.Store(o.Units)
	s.Begin(time.Now())
	s.server = fasthttp.Server{Handler: s.serve, NoDefaultServerHeader: true, NoDefaultDate: true,
		IdleTimeout: time.Minute, CloseOnShutdown: true, Logger: silent{}}
	s.served.Go(func() { _ = s.server.Serve(ln) }) // ends with Close
	return s, nil
}

// silent drops what breaks: the crowd sees and counts it.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Addr is the shop's host:port.
func (s *Shop) Addr() string { return s.listener.Addr().String() }

// Close answers those who wait with 503, ends every connection and returns when the shop has stopped.
func (s *Shop) Close() {
	s.closed.Do(func() {
		close(s.closing)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.listener.Close() // the server does not know it before Serve has begun
		_ = s.server.ShutdownWithContext(ctx)
	})
	s.served.Wait()
}

// longestSale is how long requests and sales are told apart by time.
const longestSale = 30 * time.Minute

// Begin says when the sale begins. The crowd comes afterwards.
func (s *Shop) Begin(start time.Time) {
	s.came, s.sold = newSeries(longestSale), newSeries(longestSale)
	s.start.Store(start.UnixNano())
}

func (s *Shop) since() time.Duration { return time.Duration(time.Now().UnixNano() - s.start.Load()) }

// StatusPath is where the shop tells the gateway of an order by its serial, which follows.
const StatusPath = "/orders/by-serial/"

func (s *Shop) serve(ctx *fasthttp.RequestCtx) {
	switch serial, status := strings.CutPrefix(string(ctx.Path()), StatusPath); {
	case status && s.o.Reserved:
		s.answerStatus(ctx, serial)
	case s.o.Page != nil && s.o.Page(ctx):
	case s.o.Page == nil && ctx.IsGet() && len(ctx.Request.Header.Peek("Via")) == 0: // a health check: it comes by itself
	case s.order(ctx) == Slow:
		s.wait(slowAnswer)
	}
}

// answerStatus says whether there is an order. Where there is none there never will be one, unless it may come again.
// What comes through the gateway is a client's question, who must not cancel anything.
func (s *Shop) answerStatus(ctx *fasthttp.RequestCtx, serial string) {
	if h := &ctx.Request.Header; len(h.Peek("X-Forwarded-For"))+len(h.Peek("Via")) > 0 {
		ctx.Error("only the gateway may ask, directly", fasthttp.StatusForbidden)
		return
	}
	id, ok := s.books.orderOf(serial, !s.o.Again)
	if !ok {
		ctx.Error("no such order", fasthttp.StatusNotFound)
		return
	}
	ctx.SetContentType("application/json; charset=utf-8")
	fmt.Fprintf(ctx, "{\"order\":%q}\n", id)
}

// Answer is an answer to an order, with the codes that Chinese shops put into the body.
type Answer struct {
	Status, Code int
	Message      string
}

// Answers of a shop.
var (
	Taken     = Answer{fasthttp.StatusOK, 0, "ok"}
	NoStock   = Answer{fasthttp.StatusConflict, codeSoldOut, "sold out"}
	Already   = Answer{fasthttp.StatusConflict, codeHadOne, "you have bought this already"}
	NoUser    = Answer{fasthttp.StatusUnauthorized, 40100, "open the product page first: it gives you a uid"}
	NotSold   = Answer{fasthttp.StatusNotFound, 40400, "no such item"}
	Closing   = Answer{fasthttp.StatusServiceUnavailable, 50300, "the shop is closing"}
	noUnit    = Answer{fasthttp.StatusForbidden, 40300, "orders come through the gateway, with a unit that it holds"}
	declined  = Answer{fasthttp.StatusPaymentRequired, 40200, "the payment was declined"}
	cancelled = Answer{fasthttp.StatusConflict, 40903, "this order was cancelled"}
	broken    = Answer{fasthttp.StatusInternalServerError, 50000, "something broke"}
)

// Write answers a request; order is the order's number, "" = there is none.
func (a Answer) Write(ctx *fasthttp.RequestCtx, order string) {
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetStatusCode(a.Status)
	if order != "" {
		fmt.Fprintf(ctx, "{\"code\":%d,\"msg\":%q,\"order\":%q}\n", a.Code, a.Message, order)
		return
	}
	fmt.Fprintf(ctx, "{\"code\":%d,\"msg\":%q}\n", a.Code, a.Message)
}

// order answers one order. When a slow answer is to follow, no request is in the shop any more.
func (s *Shop) order(ctx *fasthttp.RequestCtx) Fault {
	s.came.Count(s.since())
	inside := s.inFlight.add(1)
	defer s.inFlight.add(-1)
	a, id, fault := s.visit(ctx, s.requests.Add(1), inside)
	switch {
	case a == Taken && s.o.Body != "":
		ctx.SetContentType("application/json")
		ctx.SetStatusCode(s.o.Status)
		ctx.SetBodyString(s.o.Body)
	default:
		a.Write(ctx, id)
	}
	switch {
	case a == Taken && s.o.Confirms:
		ctx.Response.Header.Set("Sluice-Order", "confirmed")
	case a == NoStock && s.o.Teaches:
		ctx.Response.Header.Set("Sluice-Order", "sold-out")
	}
	return fault
}

// visit stands in line and makes an order, where there is a unit for it.
func (s *Shop) visit(ctx *fasthttp.RequestCtx, n, inside int64) (a Answer, id string, _ Fault) {
	user, serial := "", string(ctx.Request.Header.Peek("Idempotency-Key"))
	if s.o.User != nil {
		user = s.o.User(ctx)
	}
	switch {
	case s.o.User != nil && user == "":
		return NoUser, "", NoFault
	case s.o.Reserved && !s.holdsUnit(ctx, serial):
		return noUnit, "", NoFault
	case s.o.Reserved:
		s.books.arrive(serial)
	case s.o.MaxInside > 0 && inside > int64(s.o.MaxInside):
		return broken, "", NoFault
	case s.o.Naive && s.left.Load() <= 0:
		return NoStock, "", NoFault
	}
	came := time.Now()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-s.closing:
		return Closing, "", NoFault
	}
	begun := time.Now()
	s.waited.Observe(begun.Sub(came))
	s.working.add(1)
	defer s.working.add(-1)
	defer func() { s.worked.Observe(time.Since(begun)) }()
	if !s.wait(s.o.Latency) {
		return Closing, "", NoFault
	}
	fault := NoFault
	if s.o.Fault != nil {
		fault = s.o.Fault(n, user)
	}
	switch {
	case fault == Fails:
		s.failed.Add(1)
		return broken, "", fault
	case fault == Declined:
		return declined, "", fault
	case s.late(ctx):
		return cancelled, "", NoFault
	}
	switch a, id = s.sell(serial, user); {
	case a != Taken:
		return a, "", NoFault
	case fault == Breaks:
		return broken, "", fault
	}
	return a, id, fault
}

// holdsUnit tells whether the gateway holds a unit for a request. No client can pretend it, since the gateway drops
// what clients send as Sluice-*.
func (s *Shop) holdsUnit(ctx *fasthttp.RequestCtx, serial string) bool {
	h := &ctx.Request.Header
	return serial != "" &&
		(s.o.SKU == "" || string(h.Peek("Sluice-Sku")) == s.o.SKU && string(h.Peek("Sluice-Quantity")) == "1")
}

// late reports an order that is made no more, since it may come again.
func (s *Shop) late(ctx *fasthttp.RequestCtx) bool {
	deadline, err := strconv.ParseInt(string(ctx.Request.Header.Peek("Sluice-Deadline")), 10, 64)
	return s.o.Again && err == nil && time.Now().UnixMilli() >= deadline
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

// sell makes an order of one unit: where there is one, for a user who has none yet; behind a gateway that reserves, for
// a serial that was not cancelled. The stock that the gateway reads hears of it before the buyer does.
func (s *Shop) sell(serial, user string) (a Answer, id string) {
	if s.o.Reserved {
		id, made, ok := s.books.place(serial, user)
		if made {
			s.sold.Count(s.since())
		}
		if !ok {
			return cancelled, ""
		}
		return Taken, id
	}
	known := s.o.User != nil
	if known && !s.books.begin(user) {
		return Already, ""
	}
	if !s.take() {
		s.books.abandon(user)
		return NoStock, ""
	}
	s.sold.Count(s.since())
	return Taken, s.books.write(user)
}

// take takes one unit off the stock.
func (s *Shop) take() bool {
	switch {
	case s.o.Take != nil:
		ok, err := s.o.Take(context.Background())
		if err != nil {
			s.broke.Add(1)
		}
		return ok || err != nil
	case s.o.Naive:
		s.left.Add(-1) // it was read when the request arrived
		return true
	}
	return s.left.Add(-1) >= 0
}

// gauge is a number and the highest that it was. It is safe for concurrent use.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) (now int64) {
	now = g.now.Add(n)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	return now
}
