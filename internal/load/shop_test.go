package load

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestShop_SerialIsOneOrder(t *testing.T) {
	shop, err := OpenShop(ShopOptions{Units: 5, Capacity: 1, Reserved: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	ask := func(method, path, serial string) int {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+shop.Addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", serial)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for i, c := range []struct {
		method, path, serial string
		want                 int
	}{
		{"POST", "/buy", "a", 200}, {"POST", "/buy", "a", 200}, {"GET", StatusPath + "a", "", 200},
		{"GET", StatusPath + "b", "", 404},
		{"POST", "/buy", "b", 409}, {"GET", "/healthz", "", 200},
	} {
		if got := ask(c.method, c.path, c.serial); got != c.want {
			t.Errorf("%d: %s %s %q: %d, want %d", i, c.method, c.path, c.serial, got, c.want)
		}
	}
	if a := shop.Totals(); a.Orders != 1 || a.Again != 1 || a.Remade != 1 {
		t.Errorf("%+v", a)
	}
}

// A load test that cannot begin closes its shop at once.
func TestShop_ClosesBeforeItServes(t *testing.T) {
	for range 200 {
		shop, err := OpenShop(ShopOptions{Capacity: 1, Units: 1})
		if err != nil {
			t.Fatal(err)
		}
		shop.Close()
	}
}

// Behind a queue with a fence an order that is not there yet may come again, until its deadline.
func TestShop_OrderMayComeAgainUntilItsDeadline(t *testing.T) {
	shop, err := OpenShop(ShopOptions{Units: 5, Capacity: 1, Reserved: true, Again: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	ask := func(method, path string, deadline time.Time) int {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+shop.Addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "a")
		req.Header.Set("Sluice-Deadline", strconv.FormatInt(deadline.UnixMilli(), 10))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	past, future := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	if late, unknown, made := ask("POST", "/buy", past), ask("GET", StatusPath+"a", future),
		ask("POST", "/buy", future); late != 409 || unknown != 404 || made != 200 {
		t.Errorf("late %d, unknown %d, made %d", late, unknown, made)
	}
	if a := shop.Totals(); a.Orders != 1 || a.Again != 0 {
		t.Errorf("%+v", a)
	}
}

func TestShop_UsersNamedMoreThanOnceAreCountedOnce(t *testing.T) {
	if got := repeated([]string{"a", "b", "a", "c", "a", "b"}); got != 2 {
		t.Errorf("%d users, want 2", got)
	}
}
