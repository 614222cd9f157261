package demo

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/load"
)

func TestMain(m *testing.M) {
	// fasthttp ends these some seconds after its server, or never.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// shelf is a stock that tells the truth.
type shelf struct{ left atomic.Int64 }

func (s *shelf) take(context.Context) (bool, error) {
	for {
		left := s.left.Load()
		if left < 1 {
			return false, nil
		}
		if s.left.CompareAndSwap(left, left-1) {
			return true, nil
		}
	}
}

// bottomless is a stock that never says no.
func bottomless(context.Context) (bool, error) { return true, nil }

// holding is a stock of n units.
func holding(n int64) func(context.Context) (bool, error) {
	s := &shelf{}
	s.left.Store(n)
	return s.take
}

// quickShop sells units of SKU 1001, fast enough for a test.
func quickShop(t *testing.T, units int64, take func(context.Context) (bool, error)) *load.Shop {
	t.Helper()
	return open(t, load.ShopOptions{Units: units, Take: take, Capacity: 8, Latency: time.Millisecond})
}

func open(t *testing.T, o load.ShopOptions) *load.Shop {
	t.Helper()
	s, err := OpenShop(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sell lets so many shoppers at the front, all within 50 ms.
func sell(t *testing.T, shop *load.Shop, front string, shoppers int, patience time.Duration) Report {
	t.Helper()
	c := Crowd{Front: front, Shoppers: shoppers, Spread: 50 * time.Millisecond, GiveUpAfter: patience}
	r, err := c.Run(t.Context(), shop, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inFront starts a front that answers by itself or hands on to the shop.
func inFront(t *testing.T, shop *load.Shop, gate func(w http.ResponseWriter, r *http.Request, next http.Handler)) (
	addr string) {
	t.Helper()
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shop.Addr()})
	idle := &http.Transport{}
	next.Transport = idle
	next.ErrorLog = log.New(io.Discard, "", 0)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gate(w, r, next) }))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close(); idle.CloseIdleConnections() })
	return s.Listener.Addr().String()
}

// reject answers as the gate does.
func reject(w http.ResponseWriter, status int, reason string) {
	w.Header().Set(load.ReasonHeader, reason)
	w.WriteHeader(status)
}

// who is the uid of a request.
func who(r *http.Request) string {
	c, err := r.Cookie(uidCookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// String is the result as the command writes it.
func (r Report) String() string {
	var b strings.Builder
	_ = writeResults(&b, r)
	return b.String()
}
