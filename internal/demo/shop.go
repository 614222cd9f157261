// Package demo holds a flash sale to try Sluice with nothing installed: a small shop of limited
// capacity, a crowd that wants to buy more than there is, and a result in ten lines that has to add up.
//
// The shop counts its orders itself, apart from the stock, so that an oversold unit shows even when
// the stock is wrong, and an order that the gate's ledger does not know, or knows in vain. Where the gate takes the
// units a few orders go wrong on purpose: that is when books cease to balance. The report tells what was seen and no
// more; Report.Err names the promise that was broken.
//
// It starts no gate and knows none of its packages: its caller puts one between crowd and shop, or
// not. It listens on loopback alone, keeps everything in memory, and is no benchmark: crowd,
// gate and shop share one machine.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// SKU is what a demonstration sells.
const SKU = "1001"

// Stock is what the shop takes units from.
type Stock interface {
	// Sell takes n units of the SKU, all or none, and reports whether it did. Many orders call it at once.
	Sell(sku string, n int64) bool
}

// ShopOptions say what is sold and how much the shop can bear.
type ShopOptions struct {
	SKU   string
	Units int64 // for sale in all; more orders than these are oversold
	Stock Stock // holds Units before the first order; nil where Reserved or Naive

	// Naive says that the shop reads how many units are left when a request arrives, and takes one off when the order is
	// done: every request that read it meanwhile buys too. It has 500 workers, and answers 500 to what comes when all are
	// busy.
	Naive bool

	// Reserved says that the gate takes the units (gate = "reserve"): the shop rejects what does not come with one,
	// books each order by its serial, once, and lets a few of a crowd's orders go wrong, as shops do.
	Reserved bool

	Rate    int           // orders that the shop completes in a second; 0 = 60
	Service time.Duration // what one order takes at least; 0 = 40 ms
}

// Shop is a small shop on a loopback port of its own: a product page at /, orders at
// /api/seckill/{sku}/order, and /healthz; where the gate reserves also /orders/by-serial/{serial}, which tells it
// whether there is an order. Else the shop guards its stock as those do that stand behind gate = "check": it takes the
// unit itself, once a user. It is safe for concurrent use.
type Shop struct {
	ShopOptions
	pages    pages
	till     *rate.Limiter // begins one order after another; who comes faster stands in a line without an end
	books    ledger
	left     atomic.Int64 // of a naive shop
	http     http.Server
	listener net.Listener
	closing  chan struct{} // closed by Close: no request waits in the line any longer
	closed   sync.Once
	served   sync.WaitGroup
}

// OpenShop starts a shop. The caller closes it.
func OpenShop(o ShopOptions) (*Shop, error) {
	if o.SKU == "" || (o.Stock == nil) != (o.Reserved || o.Naive) || o.Reserved && o.Naive || o.Units < 0 || o.Rate < 0 ||
		o.Service < 0 {
		return nil, errors.New("open shop: it needs a SKU, one of a stock, a gateway that reserves and a naive count, and " +
			"no negative units, rate or service")
	}
	if o.Rate == 0 {
		o.Rate = 60
	}
	if o.Service == 0 {
		o.Service = 40 * time.Millisecond
	}
	p, err := newPages(o.SKU)
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	s := &Shop{
		ShopOptions: o, pages: p, listener: ln, closing: make(chan struct{}),
		till: rate.NewLimiter(rate.Limit(o.Rate), 1),
		books: ledger{units: o.Units, buying: map[string]bool{},
			serials: serials{came: map[string]bool{}, orders: map[string]int{}, cancelled: map[string]bool{}}},
	}
	s.left.Store(o.Units)
	s.http.Handler = s.doors()
	s.http.ReadHeaderTimeout = 10 * time.Second
	s.http.ErrorLog = log.New(io.Discard, "", 0) // what breaks is seen by the crowd, and counted there
	s.served.Go(func() { _ = s.http.Serve(ln) }) // ends with ErrServerClosed, by Close
	return s, nil
}

func (s *Shop) doors() http.Handler {
	doors := http.NewServeMux()
	doors.HandleFunc("GET /{$}", s.serveProductPage)
	doors.HandleFunc("POST /api/seckill/{sku}/order", s.order)
	doors.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	if s.Reserved {
		doors.HandleFunc("GET /orders/by-serial/{serial}", s.bySerial)
	}
	return doors
}

// Addr is the shop's host:port.
func (s *Shop) Addr() string { return s.listener.Addr().String() }

// Totals is what the shop has written down so far.
func (s *Shop) Totals() ShopTotals { return s.books.read() }

// Orders are the buyers of the orders so far, by serial; none where the gate does not reserve.
func (s *Shop) Orders() map[string]string { return s.books.bySerial() }

// closeTime bounds the wait for answers that are being written when the shop closes.
const closeTime = time.Second

// Close answers those who wait in the line with 503, ends every connection and returns when the shop has stopped.
func (s *Shop) Close() {
	s.closed.Do(func() {
		close(s.closing)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close()
		}
	})
	s.served.Wait()
}
