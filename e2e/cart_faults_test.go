package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// patient are the settings of a gate that releases only what the shop does not know after the deadline.
func (s *cartShop) patient() string {
	return strings.ReplaceAll(s.settings(), "cancel_then_release", "release_after_deadline")
}

// The second cart has no line of the first one in it, and the shop has an order of its key. So the key alone would
// confirm what the first cart took.
func TestCart_KeyOfTwoCartsConfirmsNoLineWithoutAnOrder(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	shop.mute = make(chan struct{}) // nothing is found out before the second cart came
	g := gate(t, redisAt(r), boundless, shop.patient(), cartRoutes)
	setUnits(t, g.file, 5, "a", "b", "c", "d")
	shop.status = http.StatusInternalServerError
	orderCart(g.client, g.front, "1", "k", []cartLine{{"a", 1}, {"b", 1}})
	shop.status = 200
	status, _, _ := orderCart(g.client, g.front, "1", "k", []cartLine{{"c", 1}, {"d", 1}})
	close(shop.mute)
	if status != 200 {
		t.Fatalf("the second cart: %d", status)
	}
	soon(t, "the first cart came to nothing, the second one is sold", func() bool {
		return ledgerOf(t, r, "a") == account{5, 0, 0} && ledgerOf(t, r, "b") == account{5, 0, 0} &&
			ledgerOf(t, r, "c") == account{5, 0, 1} && ledgerOf(t, r, "d") == account{5, 0, 1}
	})
}

func TestCart_StateIsThatOfTheWholeCart(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	g := gate(t, redisAt(r), boundless, shop.settings(), cartRoutes)
	setUnits(t, g.file, 5, "a", "b")
	setUnits(t, g.file, 1, "c")
	orderCart(g.client, g.front, "1", "k", []cartLine{{"a", 1}, {"b", 1}, {"c", 2}})
	soon(t, "a cart of which some lines were never reserved is released", func() bool {
		return strings.Contains(g.ask("GET", "/.sluice/orders/k?sku=a&sku=b&sku=c").body, `"state":"released"`)
	})
	if text := g.ask("GET", "/.sluice/orders/unheard?sku=a&sku=b").body; !strings.Contains(text, `"none"`) {
		t.Errorf("of a cart that was never asked for: %s", text)
	}
	shop.status = http.StatusInternalServerError
	orderCart(g.client, g.front, "1", "open", []cartLine{{"a", 1}, {"b", 1}})
	g.control("POST", "/api/v1/reservations/open/confirm?sku=a", "")
	text := g.ask("GET", "/.sluice/orders/open?sku=a&sku=b").body
	wrong := !strings.Contains(text, `"held"`) || strings.Contains(text, "1970")
	if ledgerOf(t, r, "b").held == 1 && wrong {
		t.Errorf("one line is sold, the other held: %s", text)
	}
}

func TestCart_RefundOfAllLinesOrNone(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	g := gate(t, redisAt(r), boundless, shop.settings(), cartRoutes)
	setUnits(t, g.file, 5, "a", "b")
	post := func(path, body string) (int, string) {
		t.Helper()
		a := g.control("POST", "/api/v1/"+path, body)
		return a.status, a.body
	}
	shop.status = http.StatusConflict
	orderCart(g.client, g.front, "1", "k", []cartLine{{"a", 1}, {"b", 1}})
	soon(t, "the cart is released", func() bool { return ledgerOf(t, r, "b").held+ledgerOf(t, r, "a").held == 0 })
	const order = `{"orders": [{"serial": "k", "user": "1", "quantity": 1}], "apply": true}`
	if status, text := post("stock/a/recover", order); status != 200 {
		t.Fatalf("recover: %d %s", status, text)
	}
	if status, text := post("reservations/k/refund?sku=a&sku=b", ""); status != 409 || !strings.Contains(text, `\"b\"`) {
		t.Errorf("the refund: %d %s", status, text)
	}
	if a := ledgerOf(t, r, "a"); a.sold != 1 {
		t.Errorf("a line was refunded: %+v", a)
	}
	post("stock/b/recover", order)
	post("reservations/k/refund?sku=a", "")
	if status, text := post("reservations/k/refund?sku=a&sku=b", ""); status != 200 {
		t.Errorf("the refund that broke off: %d %s", status, text)
	}
	if a, b := ledgerOf(t, r, "a"), ledgerOf(t, r, "b"); a.sold+b.sold != 0 {
		t.Errorf("lines are left: %+v %+v", a, b)
	}
}

// forgetSince returns what puts the ledger of a SKU back to where it is now: a Redis that was killed before its disk
// had the rest.
func forgetSince(t *testing.T, r *redistest.Server, sku string) (forget func()) {
	t.Helper()
	ctx, then := context.Background(), map[string]string{}
	keys := func() []string { return r.Client.Keys(ctx, "sluice:shop:{"+sku+"}:*").Val() }
	for _, key := range keys() {
		then[key] = r.Client.Dump(ctx, key).Val()
	}
	return func() {
		t.Helper()
		r.Client.Del(ctx, keys()...)
		for key, value := range then {
			if err := r.Client.Restore(ctx, key, 0, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The gate and the newest part of the first ledger are gone together, so that no one knows of the lock. The client
// tries again before anything is found out.
func TestCart_LostLockNeverLeavesHalfACart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		booked bool
		want   int
	}{{"the shop has the order", true, 1}, {"the shop has no order", false, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			shop := openCartShop(t, func() bool { return true })
			if !c.booked {
				shop.status = http.StatusInternalServerError
			}
			shop.mute = make(chan struct{}) // nothing is found out before the second attempt
			first := gate(t, redisAt(r), boundless, shop.patient(), cartRoutes)
			setUnits(t, first.file, 5, "a", "b", "c")
			cart := []cartLine{{"a", 1}, {"b", 1}, {"c", 1}}
			forgetA, forgetC := forgetSince(t, r, "a"), forgetSince(t, r, "c")
			orderCart(first.client, first.front, "1", "k", cart)
			first.die()
			forgetA()
			forgetC()
			second := gate(t, redisAt(r), boundless, shop.patient(), cartRoutes)
			if _, reason, _ := orderCart(second.client, second.front, "1", "k", cart); reason != "in_progress" {
				t.Errorf("the second attempt hears %q", reason)
			}
			close(shop.mute)
			want := account{5, 0, c.want}
			soon(t, "all lines are decided alike", func() bool {
				return ledgerOf(t, r, "a") == want && ledgerOf(t, r, "b") == want && ledgerOf(t, r, "c") == want
			})
			if len(shop.orders) != c.want || shop.twice > 0 {
				t.Errorf("the shop has %v, %d came twice", shop.orders, shop.twice)
			}
		})
	}
}
