package demo

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/internal/load"
	"sluice/internal/testkit"
)

// reservedShop sells units that a gate takes.
func reservedShop(t *testing.T, units int64) *load.Shop {
	t.Helper()
	return open(t, load.ShopOptions{Units: units, Reserved: true, Capacity: 8, Latency: time.Millisecond})
}

// orderBy is an order of a user under a serial, as a gate sends it.
func orderBy(t *testing.T, shop *load.Shop, user, serial string) (status int, body string) {
	t.Helper()
	resp, body := ask(t, "POST", "http://"+shop.Addr()+"/api/seckill/1001/order",
		"Cookie", "uid="+user, "Idempotency-Key", serial, "Sluice-Sku", "1001", "Sluice-Quantity", "1")
	return resp.StatusCode, body
}

// bySerial asks the shop as a resolver does.
func bySerial(t *testing.T, shop *load.Shop, serial string, header ...string) (status int) {
	t.Helper()
	resp, _ := ask(t, "GET", "http://"+shop.Addr()+"/orders/by-serial/"+serial, header...)
	return resp.StatusCode
}

func TestReserved_OrdersThatBringNoUnitAreRejected(t *testing.T) {
	shop := reservedShop(t, 5)
	for name, header := range map[string][]string{
		"nothing of the gate's": {},
		"no serial":             {"Sluice-Sku", "1001", "Sluice-Quantity", "1"},
		"no SKU":                {"Idempotency-Key", "a", "Sluice-Quantity", "1"},
		"another SKU":           {"Idempotency-Key", "a", "Sluice-Sku", "1002", "Sluice-Quantity", "1"},
		"no quantity":           {"Idempotency-Key", "a", "Sluice-Sku", "1001"},
		"two":                   {"Idempotency-Key", "a", "Sluice-Sku", "1001", "Sluice-Quantity", "2"},
	} {
		resp, _ := ask(t, "POST", "http://"+shop.Addr()+"/api/seckill/1001/order", append(header, "Cookie", "uid=a")...)
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", name, resp.StatusCode)
		}
	}
	if b := shop.Totals(); b.Orders != 0 || b.Again != 0 {
		t.Errorf("orders %d, again %d; want 0, 0", b.Orders, b.Again)
	}
}

func TestReserved_SerialIsOneOrderHoweverOftenItComes(t *testing.T) {
	shop := reservedShop(t, 5)
	first, order := orderBy(t, shop, "a", "s1")
	again, same := orderBy(t, shop, "a", "s1")
	if first != 200 || again != 200 || order != same || !strings.Contains(order, `"order":"D000001"`) {
		t.Errorf("%d %s, then %d %s; want the same order twice", first, order, again, same)
	}
	if b := shop.Totals(); b.Orders != 1 || b.Again != 1 || b.Requests != 2 {
		t.Errorf("orders %d, again %d, received %d; want 1, 1, 2", b.Orders, b.Again, b.Requests)
	}
}

// The shop does not ask who has bought: the gate said that this user may. Its books tell when the gate was wrong.
func TestReserved_SecondOrderOfAUserAndOrdersBeyondTheUnitsShowInTheBooks(t *testing.T) {
	shop := reservedShop(t, 1)
	for _, serial := range []string{"s1", "s2"} {
		if status, body := orderBy(t, shop, "a", serial); status != 200 {
			t.Errorf("%s: %d %s", serial, status, body)
		}
	}
	if b := shop.Totals(); b.Orders != 2 || b.Twice != 1 || b.Oversold != 1 {
		t.Errorf("orders %d, twice %d, oversold %d; want 2, 1, 1", b.Orders, b.Twice, b.Oversold)
	}
}

func TestReserved_OrderThatIsSaidNotToExistNeverWill(t *testing.T) {
	shop := reservedShop(t, 5)
	if got := bySerial(t, shop, "late"); got != 404 {
		t.Errorf("a serial that never came: %d, want 404", got)
	}
	if status, _ := orderBy(t, shop, "a", "late"); status != 409 {
		t.Errorf("the order that came after the 404: %d, want 409", status)
	}
	if status, _ := orderBy(t, shop, "b", "there"); status != 200 || bySerial(t, shop, "there") != 200 {
		t.Errorf("an order that exists is not found: %d", status)
	}
	if b := shop.Totals(); b.Orders != 1 {
		t.Errorf("%d orders, want 1", b.Orders)
	}
}

// A shopper who asks through the gate must not cancel what is on its way.
func TestReserved_ClientsCannotCancelBySerial(t *testing.T) {
	shop := reservedShop(t, 5)
	for _, header := range [][]string{{"X-Forwarded-For", "198.51.100.1"}, {"Via", "1.1 sluice"}} {
		if got := bySerial(t, shop, "mine", header...); got != 403 {
			t.Errorf("%v: %d, want 403", header, got)
		}
	}
	if status, _ := orderBy(t, shop, "a", "mine"); status != 200 {
		t.Errorf("the order: %d, want 200", status)
	}
	if resp, _ := ask(t, "GET", "http://"+quickShop(t, 1, holding(1)).Addr()+
		"/orders/by-serial/x"); resp.StatusCode != 404 {
		t.Errorf("a shop that guards its own stock answers %d", resp.StatusCode)
	}
}

func TestReserved_MishapsAreTheSameShoppersAlways(t *testing.T) {
	counted := map[load.Fault]int{}
	for i := range 10_000 {
		counted[mishapOf(userName(i))]++
	}
	if counted[load.Declined] != 200 || counted[load.Breaks] != 100 || counted[load.Slow] != 100 {
		t.Errorf("of 10000 shoppers %d are declined, %d hear 500, %d hear nothing; want 200, 100, 100",
			counted[load.Declined], counted[load.Breaks], counted[load.Slow])
	}
	for _, user := range []string{"", "QX4WQ2MC5YXHHEHPJ3KNJ6PR5I", "shopper-", "shopper-x", "19"} {
		if m := mishapOf(user); m != load.NoFault {
			t.Errorf("%q of no crowd has mishap %d", user, m)
		}
	}
}

func TestReserved_MishapsLeaveTheBooksAsTheyMust(t *testing.T) {
	shop := reservedShop(t, 5)
	if status, _ := orderBy(t, shop, userName(declinedOf50), "s1"); status != 402 || bySerial(t, shop, "s1") != 404 {
		t.Errorf("a declined order: %d, and it must not exist", status)
	}
	if status, _ := orderBy(t, shop, userName(brokenOf100), "s2"); status != 500 || bySerial(t, shop, "s2") != 200 {
		t.Errorf("an order that ends in 500: %d, and it must exist", status)
	}
	if b := shop.Totals(); b.Orders != 1 {
		t.Errorf("%d orders, want 1", b.Orders)
	}
}

func TestReserved_SlowAnswerLeavesTheShopFree(t *testing.T) {
	shop := reservedShop(t, 5)
	done := make(chan int)
	go func() {
		status, _ := orderBy(t, shop, userName(slowOf100), "s1")
		done <- status
	}()
	testkit.Eventually(t, "it is written", func() bool { return shop.Totals().Orders == 1 && shop.Totals().UnderWay == 0 })
	select {
	case status := <-done:
		t.Errorf("answered %d at once", status)
	default:
	}
	shop.Close() // ends the waiting
	if status := <-done; status != 200 {
		t.Errorf("answered %d, want 200", status)
	}
}

// userName names the i-th shopper of a crowd.
func userName(i int) string { return fmt.Sprintf(shopperPrefix+"%07d", i) }
