package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Two gates sell carts of 20 SKUs while they and Redis are killed at random. Of ten carts one has a key that another
// cart used a moment ago. SLUICE_CARTS=10000 is the long form.
func TestCart_NothingIsOversoldNorHalfTakenWhateverDies(t *testing.T) {
	testkit.Nightly(t, "it kills at random moments")
	orders := 400
	if n, err := strconv.Atoi(os.Getenv("SLUICE_CARTS")); err == nil {
		orders = n
	}
	r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	shop := openCartShop(t, func() bool { return rand.IntN(20) == 0 })
	var skus []string
	for i := range 20 {
		skus = append(skus, fmt.Sprintf("s%02d", i))
	}
	gates, fronts := make([]*running, 2), make([]string, 2)
	for i := range gates {
		var addresses string
		addresses, fronts[i] = fixed(t)
		folder := fmt.Sprintf("server.state_dir = %q", t.TempDir())
		gates[i] = gate(t, addresses, folder, redisAt(r), boundless, shop.settings(), cartRoutes)
	}
	units := max(5, orders/6) // most of what is asked for, so that it sells nearly to the end
	setUnits(t, gates[0].file, units, skus...)
	killed := sellCarts(t, orders, skus, fronts, gates, r, shop)
	thaw(t, gates[0], r, skus)
	inTime(t, 3*time.Minute, "nothing is held", func() bool {
		thaw(t, gates[0], r, skus)
		return !slices.ContainsFunc(skus, func(sku string) bool { return ledgerOf(t, r, sku).held > 0 })
	})
	shop.mu.Lock()
	defer shop.mu.Unlock()
	for _, sku := range skus {
		if a := ledgerOf(t, r, sku); a.sold > a.total {
			t.Errorf("%s is oversold: %+v", sku, a)
		}
	}
	half := 0
	for serial, lines := range cartRecords(t, r, skus) {
		text := shop.orders[serial]
		want, _ := url.ParseQuery(text)
		for sku, state := range lines {
			if want.Has(sku) && state != "C"+want.Get(sku) || !want.Has(sku) && state[0] != 'X' {
				half++
				t.Errorf("serial %s of %s: %s, and the shop has %q", serial, sku, state, text)
			}
		}
		for sku := range want {
			if lines[sku] == "" {
				half++
				t.Errorf("serial %s has no line of %s, and the shop has %q", serial, sku, text)
			}
		}
	}
	if shop.twice > 0 || half > 0 || len(shop.orders) == 0 {
		t.Errorf("%d orders, %d came twice, %d half taken", len(shop.orders), shop.twice, half)
	}
	t.Logf("%d carts asked for, %d orders made, %d gates and Redis killed", orders, len(shop.orders), killed)
}

// sellCarts asks for so many carts, and kills gates and Redis meanwhile.
func sellCarts(t *testing.T, orders int, skus, fronts []string, gates []*running, r *redistest.Server,
	shop *cartShop) (killed int) {
	t.Helper()
	next, over := make(chan int), make(chan struct{})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			client := &http.Client{Timeout: 3 * time.Second}
			defer client.CloseIdleConnections()
			for n := range next {
				user, key, reuses := fmt.Sprint("u", n%200), "", n%10 == 0
				if n%2 == 0 {
					key = fmt.Sprint("k", n)
				}
				lines := someLines(skus)
				for range 4 {
					status, reason, _ := orderCart(client, fronts[rand.IntN(2)], user, key, lines)
					if reason == "confirmed" && !shop.has(key, lines) {
						t.Errorf("key %s with %v is said to be confirmed", key, lines)
					}
					if (status == 200 || status == 409) && !reuses {
						break
					}
					if time.Sleep(50 * time.Millisecond); reuses { // a client's pause
						lines = someLines(skus)
					}
				}
			}
		})
	}
	go func() {
		defer close(over)
		for n := range orders {
			next <- n
			time.Sleep(4 * time.Millisecond) // a client's pause
		}
		close(next)
		all.Wait()
	}()
	for {
		select {
		case <-over:
			return killed
		case <-time.After(time.Duration(200+rand.IntN(600)) * time.Millisecond):
		}
		if killed++; rand.IntN(4) == 0 {
			r.Kill()
			r.Restart()
			thaw(t, gates[0], r, skus)
			continue
		}
		i := rand.IntN(2)
		gates[i].die()
		gates[i] = gates[i].again(t)
	}
}

func someLines(skus []string) (lines []cartLine) {
	for range 1 + rand.IntN(5) {
		lines = append(lines, cartLine{skus[rand.IntN(len(skus))], 1 + rand.IntN(2)})
	}
	return lines
}

// has reports whether the shop has an order of exactly these lines under a serial.
func (s *cartShop) has(serial string, lines []cartLine) bool {
	units := map[string]int{}
	for _, l := range lines {
		units[l.SKU] += l.Qty
	}
	want := url.Values{}
	for sku, n := range units {
		want.Set(sku, strconv.Itoa(n))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders[serial] == want.Encode()
}

// thaw opens ledgers that wait for an instance which has died: Redis writes every change to disk, and has lost nothing.
func thaw(t *testing.T, g *running, r *redistest.Server, skus []string) {
	t.Helper()
	for _, sku := range skus {
		if state := r.Client.HGet(context.Background(), "sluice:shop:{"+sku+"}:s", "state").Val(); state == "frozen" {
			run(t, "", "stock", "recover", "--config", g.file, "--from", "none", "--apply", sku)
		}
	}
}
