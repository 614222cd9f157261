package loadtest

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

	"sluice/internal/crowd"
)

// ShopOptions say what the stand-in can bear, and how it answers.
type ShopOptions struct {
	Units    int64
	Capacity int           // orders that it works on at a time; who comes more waits, without end
	Latency  time.Duration // what it works on one
	Errors   float64       // the part of orders of which it answers 500 and makes none

	Reserved bool                        // the gate takes the units
	Again    bool                        // an order that it does not know may still come: until its Sluice-Deadline
	Take     func(context.Context) error // takes one off the stock that the gate reads; nil = it reads none
	Status   int                         // of an order that was made; 0 = 200
	Body     string                      // likewise
	Confirms bool                        // it says that the order is final, since its status does not
	Teaches  bool                        // it says that it is sold out
}

// Shop is a stand-in for the shop, on a loopback port of its own. It counts what it sells by itself.
type Shop struct {
	o        ShopOptions
	listener net.Listener
	server   fasthttp.Server
	places   chan struct{}
	served   sync.WaitGroup

	start    atomic.Int64 // Unix ns
	came     crowd.Series
	inFlight gauge
	working  gauge
	requests atomic.Int64
	failed   atomic.Int64
	broke    atomic.Int64 // orders whose unit could not be taken off the stock that the gate reads
	waited   *crowd.Stopwatch
	worked   *crowd.Stopwatch
	sold     crowd.Series

	mu      sync.Mutex
	first   time.Time
	latest  time.Time
	last    time.Time // of the last unit that there was
	orders  int64
	again   int64
	serials map[string]bool // false = cancelled: there never will be an order
}

// OpenShop starts a shop. The caller closes it.
func OpenShop(o ShopOptions) (*Shop, error) {
	if o.Capacity < 1 || o.Latency < 0 || o.Errors < 0 || o.Errors > 1 || o.Units < 1 {
		return nil, errors.New("open shop: it needs units, a capacity, and no negative latency")
	}
	if o.Status == 0 {
		o.Status = fasthttp.StatusOK
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	s := &Shop{o: o, listener: ln, places: make(chan struct{}, o.Capacity), serials: map[string]bool{},
		waited: crowd.NewStopwatch(), worked: crowd.NewStopwatch()}
	s.server = fasthttp.Server{Handler: s.serve, NoDefaultServerHeader: true, NoDefaultDate: true,
		IdleTimeout: time.Minute, CloseOnShutdown: true, Logger: silent{}}
	s.served.Go(func() { _ = s.server.Serve(ln) }) // ends with Close
	return s, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Addr is the shop's host:port.
func (s *Shop) Addr() string { return s.listener.Addr().String() }

// Close ends it.
func (s *Shop) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.listener.Close() // the server does not know it before Serve has begun
	_ = s.server.ShutdownWithContext(ctx)
	s.served.Wait()
}

// begin says when the sale begins. The crowd comes afterwards.
func (s *Shop) begin(start time.Time) {
	s.came, s.sold = crowd.NewSeries(longest), crowd.NewSeries(longest)
	s.start.Store(start.UnixNano())
}

func (s *Shop) since() time.Duration { return time.Duration(time.Now().UnixNano() - s.start.Load()) }

// StatusPath is where the shop tells of an order by its serial, which follows.
const StatusPath = "/.loadtest/orders/"

func (s *Shop) serve(ctx *fasthttp.RequestCtx) {
	switch path := string(ctx.Path()); {
	case strings.HasPrefix(path, StatusPath):
		s.answerStatus(ctx, strings.TrimPrefix(path, StatusPath))
	case ctx.IsGet() && len(ctx.Request.Header.Peek("Via")) == 0: // a health check: it comes by itself
	default:
		s.order(ctx)
	}
}

// answerStatus says whether there is an order. Where there is none there never will be one, unless it may come again.
func (s *Shop) answerStatus(ctx *fasthttp.RequestCtx, serial string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serials[serial] {
		if !s.o.Again {
			s.serials[serial] = false
		}
		ctx.SetStatusCode(fasthttp.StatusNotFound)
	}
}

// order works on one order for its time, in one of the places.
func (s *Shop) order(ctx *fasthttp.RequestCtx) {
	s.came.Count(s.since())
	n := s.requests.Add(1)
	s.inFlight.add(1)
	defer s.inFlight.add(-1)
	came := time.Now()
	s.places <- struct{}{}
	begun := time.Now()
	s.waited.Observe(begun.Sub(came))
	s.working.add(1)
	defer func() {
		took := time.Since(begun)
		s.worked.Observe(took)
		s.working.add(-1)
		<-s.places
	}()
	time.Sleep(s.o.Latency)
	if s.fails(n) {
		s.failed.Add(1)
		ctx.Error(`{"code":50000}`, fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	if s.late(ctx) {
		ctx.Error(`{"code":40903}`, fasthttp.StatusConflict)
		return
	}
	switch s.sell(string(ctx.Request.Header.Peek("Idempotency-Key"))) {
	case made:
		ctx.SetStatusCode(s.o.Status)
		ctx.SetBodyString(s.o.Body)
		if s.o.Confirms {
			ctx.Response.Header.Set("Sluice-Order", "confirmed")
		}
	case rejected:
		ctx.SetStatusCode(fasthttp.StatusConflict)
		ctx.SetBodyString(`{"code":40901}`)
		if s.o.Teaches {
			ctx.Response.Header.Set("Sluice-Order", "sold-out")
		}
	}
}

// late reports an order that is made no more, since it may come again.
func (s *Shop) late(ctx *fasthttp.RequestCtx) bool {
	deadline, err := strconv.ParseInt(string(ctx.Request.Header.Peek("Sluice-Deadline")), 10, 64)
	return s.o.Again && err == nil && time.Now().UnixMilli() >= deadline
}

// fails spreads the errors evenly.
func (s *Shop) fails(n int64) bool {
	return int64(float64(n)*s.o.Errors) > int64(float64(n-1)*s.o.Errors)
}

type sale int

const (
	made sale = iota
	rejected
)

// sell makes an order of one unit, where there is one; behind a gate that reserves, where the gate holds one. The stock
// that the gate reads hears of it before the buyer does, as with a real shop.
func (s *Shop) sell(serial string) sale {
	s.mu.Lock()
	order, known := s.serials[serial]
	switch {
	case s.o.Reserved && known:
		s.again++
		s.mu.Unlock()
		if order {
			return made
		}
		return rejected
	case !s.o.Reserved && s.orders >= s.o.Units:
		s.mu.Unlock()
		return rejected
	}
	if s.o.Reserved {
		s.serials[serial] = true
	}
	s.orders++
	now := time.Now()
	s.latest = now
	if s.orders == 1 {
		s.first = now
	}
	if s.orders == s.o.Units {
		s.last = now
	}
	s.mu.Unlock()
	s.sold.Count(s.since())
	if s.o.Take != nil && s.o.Take(context.Background()) != nil {
		s.broke.Add(1)
	}
	return made
}

// Account is what the shop has seen.
type Account struct {
	Requests     int64       `json:"requests"`
	Orders       int64       `json:"orders"`
	Oversold     int64       `json:"oversold"`
	Again        int64       `json:"sent_twice"`
	Failed       int64       `json:"failed"`
	Unwritten    int64       `json:"unwritten,omitempty"` // orders that the stock which the gate reads does not know
	UnderWay     int64       `json:"under_way,omitempty"` // when the load test ended
	PeakInFlight int64       `json:"peak_in_flight"`
	PeakWorking  int64       `json:"peak_working"`
	PeakPer10ms  int64       `json:"peak_requests_per_10ms"`
	PeakPerS     int64       `json:"peak_requests_per_second"`
	Busy         float64     `json:"busy"` // of its capacity, while it sold
	Capacity     int         `json:"capacity"`
	Works        crowd.Times `json:"works"`
	Waits        crowd.Times `json:"waits"` // within the shop, for a place
}

func (s *Shop) account() (a Account, first, last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a = Account{
		Requests: s.requests.Load(), Orders: s.orders, Oversold: max(0, s.orders-s.o.Units), Again: s.again,
		Failed: s.failed.Load(), Unwritten: s.broke.Load(), UnderWay: s.inFlight.now.Load(),
		PeakInFlight: s.inFlight.most.Load(), PeakWorking: s.working.most.Load(), PeakPer10ms: s.came.Peak(1),
		PeakPerS: s.came.Peak(100),
		Capacity: s.o.Capacity, Works: s.worked.Times(), Waits: s.waited.Times(),
	}
	start := time.Unix(0, s.start.Load())
	if !s.first.IsZero() {
		first = s.first.Sub(start)
		if whole := (s.latest.Sub(s.first) + s.o.Latency).Seconds() * float64(s.o.Capacity); whole > 0 {
			a.Busy = min(1, float64(s.orders)*s.worked.Mean().Seconds()/whole)
		}
	}
	if !s.last.IsZero() {
		last = s.last.Sub(start)
	}
	return a, first, last
}

// gauge is a number and the highest that it was. It is safe for concurrent use.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
}
