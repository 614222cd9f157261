package demo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/load"
	"sluice/internal/testkit"
)

// long is more patience than any of these sales takes.
const long = 50 * time.Second

func TestCrowd_BuysWhatThereIsAndNoMore(t *testing.T) {
	shop := quickShop(t, 5, holding(5))
	r := sell(t, shop, shop.Addr(), 50, long)
	if r.Shop.Orders != 5 || r.Home[load.Bought] != 5 || r.Home[load.SoldOut] != 45 || r.Shop.Oversold != 0 {
		t.Errorf("sold %d, bought %d, told sold out %d, oversold %d; want 5, 5, 45, 0", r.Shop.Orders, r.Home[load.Bought],
			r.Home[load.SoldOut], r.Shop.Oversold)
	}
	if r.Requests != 50 || r.Admitted != 50 || r.Shop.Requests != 50 || r.Gated {
		t.Errorf("asked %d, admitted %d, received %d, gated %v; want 50 each and no gate", r.Requests, r.Admitted,
			r.Shop.Requests, r.Gated)
	}
	if r.Answer.Count != 50 {
		t.Errorf("timed %d answers, want 50", r.Answer.Count)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

func TestCrowd_OversellShowsHoweverWrongTheStockIs(t *testing.T) {
	shop := quickShop(t, 5, bottomless)
	r := sell(t, shop, shop.Addr(), 50, long)
	if r.Shop.Oversold != 45 {
		t.Errorf("oversold %d, want 45", r.Shop.Oversold)
	}
	r.Gated = true // only a shop behind Sluice is promised anything
	if r.Err() == nil || !strings.Contains(r.String(), "BROKEN: oversold 45") {
		t.Errorf("the report does not say so: %v\n%s", r.Err(), r)
	}
}

// All shoppers who arrive before the last unit is paid have read that units are left.
func TestNaiveShop_OversellsAndIsOverloaded(t *testing.T) {
	shop := open(t, load.ShopOptions{Units: 5, Naive: true, Capacity: 1000, Latency: 3 * time.Second})
	r := sell(t, shop, shop.Addr(), naiveWorkers+100, long)
	if r.Shop.Oversold == 0 || r.Overloaded == 0 || r.Shop.Twice != 0 {
		t.Errorf("oversold %d, overloaded %d, sold twice %d", r.Shop.Oversold, r.Overloaded, r.Shop.Twice)
	}
	if r.Shop.Orders != r.Home[load.Bought] {
		t.Errorf("%d orders, and %d shoppers were told one", r.Shop.Orders, r.Home[load.Bought])
	}
}

func TestCrowd_RejectedShoppersPressAgainOneRequestAtATime(t *testing.T) {
	shop := quickShop(t, 5, holding(5))
	var mu sync.Mutex
	asked, inside := map[string]int{}, map[string]int{}
	front := inFront(t, shop, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		asked[who(r)]++
		inside[who(r)]++
		if inside[who(r)] > 1 {
			t.Errorf("%s has two requests under way", who(r))
		}
		first := asked[who(r)] == 1
		mu.Unlock()
		defer func() { mu.Lock(); inside[who(r)]--; mu.Unlock() }()
		if first {
			reject(w, http.StatusTooManyRequests, "window")
			return
		}
		next.ServeHTTP(w, r)
	})
	r := sell(t, shop, front, 20, long)
	if len(asked) != 20 || r.Requests != 40 || load.Sum(r.Rejected) != 20 || r.Admitted != 20 {
		t.Errorf("%d shoppers asked %d times, %d rejected, %d admitted; want 20, 40, 20, 20", len(asked), r.Requests,
			load.Sum(r.Rejected), r.Admitted)
	}
	if len(r.Rejected) != 1 || r.Rejected["window"] != 20 || !r.Gated {
		t.Errorf("rejected %v, gated %v", r.Rejected, r.Gated)
	}
	if r.Home[load.Bought] != 5 || r.Home[load.SoldOut] != 15 || r.Err() != nil {
		t.Errorf("bought %d, sold out %d, %v; want 5, 15, nil", r.Home[load.Bought], r.Home[load.SoldOut], r.Err())
	}
}

func TestCrowd_WhoHearsSoldOutFromTheGateGoesHome(t *testing.T) {
	shop := quickShop(t, 0, holding(0))
	front := inFront(t, shop, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		reject(w, http.StatusConflict, "sold_out")
	})
	r := sell(t, shop, front, 30, long)
	if r.Home[load.SoldOut] != 30 || r.Requests != 30 || r.Admitted != 0 || r.Shop.Requests != 0 || r.Err() != nil {
		t.Errorf("sold out %d, asked %d, admitted %d, received %d, %v; want 30, 30, 0, 0, nil", r.Home[load.SoldOut],
			r.Requests, r.Admitted, r.Shop.Requests, r.Err())
	}
}

func TestCrowd_LostAnswerIsNoSecondOrder(t *testing.T) {
	shop := quickShop(t, 10, holding(10))
	var lost sync.Map
	front := inFront(t, shop, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if _, again := lost.LoadOrStore(who(r), true); again {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(discard{http.Header{}}, r)
		panic(http.ErrAbortHandler) // the order is made, and the connection breaks
	})
	r := sell(t, shop, front, 10, long)
	if r.Broken != 10 || r.Home[load.HadOne] != 10 || r.Shop.Orders != 10 || r.Shop.Twice != 0 || r.Err() != nil {
		t.Errorf("broken %d, had one %d, orders %d, twice %d, %v; want 10, 10, 10, 0, nil", r.Broken,
			r.Home[load.HadOne], r.Shop.Orders, r.Shop.Twice, r.Err())
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestCrowd_UnreachableFrontIsCountedAsBroken(t *testing.T) {
	shop := quickShop(t, 5, holding(5))
	r := sell(t, shop, testkit.FreeAddress(t), 10, 2*time.Second)
	if r.Broken < 10 || r.Broken != r.Requests || r.Home[load.GaveUp] != 10 || r.Err() != nil {
		t.Errorf("asked %d, broken %d, gave up %d, %v; want all broken, 10, nil", r.Requests, r.Broken,
			r.Home[load.GaveUp], r.Err())
	}
}

func TestCrowd_InterruptedSaleReportsWhatHappenedSoFar(t *testing.T) {
	shop := quickShop(t, 5, holding(5))
	var mu sync.Mutex
	ctx, interrupt := context.WithCancel(t.Context())
	waiting := 0
	front := inFront(t, shop, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		mu.Lock()
		if waiting++; waiting == 10 {
			interrupt()
		}
		mu.Unlock()
		<-r.Context().Done() // no request is answered
	})
	r, err := Crowd{Front: front, Shoppers: 10, Spread: time.Millisecond, GiveUpAfter: long}.Run(ctx, shop,
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Requests != 10 || r.Home[load.Bought] != 0 || r.Err() != nil {
		t.Errorf("interrupted %v, asked %d, bought %d, %v; want true, 10, 0, nil", r.Interrupted, r.Requests,
			r.Home[load.Bought], r.Err())
	}
	if !strings.Contains(r.String(), "Stopped early") {
		t.Errorf("the report does not say that it was stopped:\n%s", r)
	}
}

func TestCrowd_WithoutShoppersOrAFrontIsAnError(t *testing.T) {
	for _, c := range []Crowd{{}, {Front: "x"}, {Shoppers: 1}} {
		if _, err := c.Run(t.Context(), nil, io.Discard); err == nil {
			t.Errorf("%+v runs", c)
		}
	}
}

func TestCrowd_SameShopperAlwaysBehavesAlike(t *testing.T) {
	c := Crowd{Front: "127.0.0.1:1", Shoppers: 1000, Spread: time.Second}
	again := c.plan().Arrivals
	early := 0
	for i, comes := range c.plan().Arrivals {
		first, second := pause(i, 1, 0), pause(i, 1, 0)
		if comes != again[i] || first != second {
			t.Fatalf("shopper %d is not the same twice", i)
		}
		if comes < 0 || comes >= c.Spread {
			t.Fatalf("shopper %d comes after %v", i, comes)
		}
		if comes < c.Spread/4 {
			early++
		}
	}
	if early < 400 || early > 600 {
		t.Errorf("%d of 1000 come in the first quarter, want about half", early)
	}
}

func TestCrowd_PoliteShoppersWaitAsLongAsTheyAreTold(t *testing.T) {
	const told = 5 * time.Second
	for i := range 300 {
		p := pause(i, 1, told)
		if polite(i) && p < told+quickest {
			t.Errorf("polite shopper %d comes back after %v", i, p)
		}
		if !polite(i) && (p < quickest || p >= slowest) {
			t.Errorf("impatient shopper %d comes back after %v", i, p)
		}
	}
}
