package loadtest

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/load"
)

func TestCrowd_ShapesOfACrowd(t *testing.T) {
	p := Crowd{Buyers: 10_001, Shape: Ramp, Spread: time.Minute}
	all := p.arrivals()
	if early, last := all[0], slices.Max(all); early > time.Second || last > time.Minute || last < 59*time.Second ||
		all[5000] < 29*time.Second || all[5000] > 31*time.Second {
		t.Errorf("a ramp from %v by %v to %v", early, all[5000], last)
	}
	p.Shape, p.Spread = Spike, time.Second
	all = p.arrivals()
	slices.Sort(all)
	if half := all[5000]; half < 950*time.Millisecond || half > 1050*time.Millisecond {
		t.Errorf("half of a spike by %v", half)
	}
	if quick, slow := all[1000], all[9900]; quick < 450*time.Millisecond || slow < 2*time.Second || slow > 5*time.Second {
		t.Errorf("a tenth by %v, all but one of a hundred by %v", quick, slow)
	}
	if !slices.Equal(p.arrivals(), p.arrivals()) {
		t.Error("the same plan makes two crowds")
	}
}

// unseen is a gate whose figures are not asked for.
type unseen struct{ err error }

func (u unseen) Read(context.Context) (GatewayReading, error) { return GatewayReading{}, u.err }

// through is a gate that hands on what it does not reject.
func through(t *testing.T, shop *load.Shop, rejects func(n int64, w http.ResponseWriter) bool) (front string) {
	t.Helper()
	var n atomic.Int64
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shop.Addr()})
	to.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rejects != nil && rejects(n.Add(1), w) {
			return
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func runCrowd(t *testing.T, ctx context.Context, o load.ShopOptions, buyers int,
	rejects func(int64, http.ResponseWriter) bool) Result {
	t.Helper()
	shop, err := load.OpenShop(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.Close)
	r, err := Run(ctx, Plan{
		Front: through(t, shop, rejects), Order: load.Order{Match: "/{sku}", ID: "1", SKU: "$path_sku", User: "$cookie_uid",
			Address: "X-Forwarded-For"},
		Crowd: Crowd{Buyers: buyers, Shape: Spike, Spread: 20 * time.Millisecond, GiveUpAfter: 30 * time.Second, Tries: 5,
			Connections: 32},
		Shop: shop, Gate: unseen{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCrowd_BuysWhatThereIs(t *testing.T) {
	r := runCrowd(t, t.Context(), load.ShopOptions{Units: 40, Capacity: 4, Latency: time.Millisecond}, 300, nil)
	if r.Shop.Orders != 40 || r.Buyer != (Home{Bought: 40, SoldOut: 260}) || r.Requests != 300 || !r.SoldOut ||
		r.Err() != nil {
		t.Errorf("%+v, %+v, %d requests, %v", r.Shop, r.Buyer, r.Requests, r.Err())
	}
	if r.Shop.PeakWorking > 4 || r.Shop.PeakInFlight < r.Shop.PeakWorking || r.LastUnit <= 0 || r.Order.Count != 300 {
		t.Errorf("%+v, sold out after %v", r.Shop, r.LastUnit)
	}
	if err := xml.Unmarshal(r.Plot(), new(struct{})); err != nil {
		t.Errorf("the plot is no XML: %v", err)
	}
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil || !strings.Contains(b.String(), "300: bought 40, sold out 260") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestCrowd_TheRejectedComeBackAFewTimes(t *testing.T) {
	busy := func(_ int64, w http.ResponseWriter) bool {
		w.Header().Set(load.ReasonHeader, "window")
		w.WriteHeader(429)
		return true
	}
	r := runCrowd(t, t.Context(), load.ShopOptions{Units: 1, Capacity: 1}, 10, busy)
	if r.Requests != 50 || r.Rejected["window"] != 50 || r.Buyer.GaveUp != 10 || r.Shop.Requests != 0 || r.SoldOut {
		t.Errorf("%d requests, %v, %+v", r.Requests, r.Rejected, r.Buyer)
	}
}

func TestCrowd_WhoIsToldNothingLooksWhatBecameOfIt(t *testing.T) {
	lost := func(n int64, w http.ResponseWriter) bool {
		switch n {
		case 1:
			w.Header().Set(load.ReasonHeader, "upstream_timeout")
			w.Header().Set("Link", `</orders/1>; rel="status"`)
			w.WriteHeader(504)
		case 2:
			_, _ = io.WriteString(w, `{"state":"held"}`)
		default:
			_, _ = io.WriteString(w, `{"state":"sold"}`)
		}
		return true
	}
	r := runCrowd(t, t.Context(), load.ShopOptions{Units: 1, Capacity: 1}, 1, lost)
	if r.Requests != 1 || r.StatusRequests != 2 || r.Buyer.Bought != 1 {
		t.Errorf("%d requests, %d looks, %+v", r.Requests, r.StatusRequests, r.Buyer)
	}
}

func TestCrowd_InterruptedCrowdGoesHomeAtOnce(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	hang := func(n int64, _ http.ResponseWriter) bool {
		if n == 5 {
			interrupt()
		}
		<-ctx.Done()
		return true
	}
	r := runCrowd(t, ctx, load.ShopOptions{Units: 1, Capacity: 1}, 50, hang)
	if !r.Interrupted || r.Buyer.GaveUp+r.Buyer.Bought+r.Buyer.Rejected == 0 {
		t.Errorf("%+v", r)
	}
}

func TestCrowd_EverybodyGoesHomeWhenPatienceEnds(t *testing.T) {
	shop, err := load.OpenShop(load.ShopOptions{Units: 1000, Capacity: 1, Latency: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	r, err := Run(t.Context(), Plan{
		Front: through(t, shop, nil), Order: load.Order{Match: "/{sku}", ID: "1", SKU: "$path_sku", User: "$cookie_uid",
			Address: "X-Forwarded-For"}, Shop: shop, Gate: unseen{},
		Crowd: Crowd{Buyers: 200, Shape: Ramp, Spread: 100 * time.Millisecond, GiveUpAfter: 900 * time.Millisecond, Tries: 1,
			Connections: 1},
	})
	if err != nil || r.Requests > 20 || r.Buyer.GaveUp+r.Buyer.Bought != 200 {
		t.Errorf("%d requests within a second, one after the other; %+v, %v", r.Requests, r.Buyer, err)
	}
}

func TestCrowd_EverybodyOfASlowSpikeComes(t *testing.T) {
	p := Crowd{Buyers: 10_000, Shape: Spike, Spread: 5 * time.Minute}
	if all := p.arrivals(); len(all) != p.Buyers || slices.Max(all) > p.comesWithin() {
		t.Errorf("%d of %d come, the last after %v", len(all), p.Buyers, slices.Max(all))
	}
}

func TestCrowd_ErrorsOfTheShopMakeNoOrder(t *testing.T) {
	r := runCrowd(t, t.Context(), load.ShopOptions{Units: 100, Capacity: 8, Fault: load.Failing(0.25)}, 100, nil)
	if r.Shop.Failed != 25 || r.Shop.Orders != 75 || r.Buyer.Unsure != 25 {
		t.Errorf("%+v, %+v", r.Shop, r.Buyer)
	}
}

func TestCrowd_PlanThatIsNoneIsAnError(t *testing.T) {
	good := Plan{Order: load.Order{Match: "/"}, Gate: unseen{errors.New("it is gone")},
		Crowd: Crowd{Buyers: 1, Shape: Ramp, Spread: time.Second, GiveUpAfter: time.Second, Tries: 1, Connections: 1}}
	if _, err := Run(t.Context(), good); err == nil || err.Error() != "it is gone" {
		t.Error(err)
	}
	for _, spoil := range []func(*Plan){
		func(p *Plan) { p.Buyers = 0 }, func(p *Plan) { p.Buyers = 5_000_001 }, func(p *Plan) { p.Shape = "" },
		func(p *Plan) { p.GiveUpAfter = time.Hour },
		func(p *Plan) { p.Tries = 256 }, func(p *Plan) { p.Connections = 0 }, func(p *Plan) { p.Addresses = -1 },
	} {
		p := good
		spoil(&p)
		if _, err := Run(t.Context(), p); err == nil || err.Error() == "it is gone" {
			t.Errorf("%+v: %v", p, err)
		}
	}

}
