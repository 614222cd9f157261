package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

const cartRoutes = `
[[route]]
name = "order"
match = "POST /orders"
gate = "reserve"
sku = "$json_items.*.sku_id"
quantity = "$json_items.*.qty"
user = "$cookie_uid"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// cartShop books each order that reaches it, and tells the truth when it is asked for a line of one. A serial that it
// does not know then is none of its orders ever after.
type cartShop struct {
	mu     sync.Mutex
	orders map[string]string // Sluice-Sku by serial
	denied map[string]bool
	units  map[string]int // of confirmed orders, by user
	twice  int
	status int           // of the answer to an order
	mute   chan struct{} // nil = it tells of its orders at once, else when this is closed
	url    string
}

func openCartShop(t *testing.T, mishap func() bool) *cartShop {
	t.Helper()
	s := &cartShop{orders: map[string]string{}, denied: map[string]bool{}, units: map[string]int{}, status: 200}
	doors := http.NewServeMux()
	doors.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		status := s.take(r)
		if status == 200 && mishap != nil && mishap() {
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
	})
	doors.HandleFunc("GET /by-serial/{serial}", func(w http.ResponseWriter, r *http.Request) {
		if s.mute != nil {
			select {
			case <-s.mute:
			case <-r.Context().Done():
				return
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		serial := r.PathValue("serial")
		lines, known := s.orders[serial]
		if want, _ := url.ParseQuery(lines); !want.Has(r.URL.Query().Get("sku")) {
			s.denied[serial] = s.denied[serial] || !known
			http.NotFound(w, r)
		}
	})
	server := httptest.NewServer(doors)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *cartShop) take(r *http.Request) int {
	_, _ = io.Copy(io.Discard, r.Body)
	serial := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied[serial] || s.status != 200 {
		return max(s.status, http.StatusConflict)
	}
	lines := r.Header.Get("Sluice-Sku")
	if has, known := s.orders[serial]; known && has != lines {
		return http.StatusConflict
	} else if known {
		s.twice++
	}
	s.orders[serial] = lines
	user, _ := r.Cookie("uid")
	n, _ := strconv.Atoi(r.Header.Get("Sluice-Quantity"))
	s.units[user.Value] += n
	return 200
}

// settings are those of a gate before the shop.
func (s *cartShop) settings() string {
	return "upstream.targets = " + quoted(s.url) + "\nstock.reserve.status_url = " +
		strconv.Quote(s.url+"/by-serial/{serial}?sku={sku}") + "\nstock.reserve.on_not_found = \"cancel_then_release\"\n" +
		"stock.reserve.max_per_user = 0\nstock.reserve.reservation_ttl = \"2s\"\n"
}

// cartLine is an element of an order's array.
type cartLine struct {
	SKU string `json:"sku_id"`
	Qty int    `json:"qty"`
}

// orderCart sends an order and returns its status, reason and the SKU that the answer names.
func orderCart(client *http.Client, front, user, key string, lines []cartLine) (status int, reason, sku string) {
	body, _ := json.Marshal(map[string]any{"items": lines})
	r, _ := http.NewRequest("POST", "http://"+front+"/orders", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Cookie", "uid="+user)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", ""
	}
	defer resp.Body.Close()
	var said struct {
		SKU string `json:"sku"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&said)
	return resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), said.SKU
}

// cartRecords are the states of the lines of each serial, by SKU.
func cartRecords(t *testing.T, r *redistest.Server, skus []string) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, sku := range skus {
		records, err := r.Client.HGetAll(context.Background(), "sluice:shop:{"+sku+"}:r").Result()
		if err != nil {
			t.Fatal(err)
		}
		for serial, record := range records {
			if all[serial] == nil {
				all[serial] = map[string]string{}
			}
			quantity, _, _ := strings.Cut(strings.Split(record, "|")[1], "/")
			all[serial][sku] = record[:1] + quantity
		}
	}
	return all
}

func setUnits(t *testing.T, file string, units int, skus ...string) {
	t.Helper()
	for _, sku := range skus {
		ok(t, "stock", "set", "--config", file, sku, strconv.Itoa(units))
	}
}

func TestCart_AllLinesAreReservedOrNone(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	g := gate(t, redisAt(r), boundless, shop.settings(), cartRoutes)
	setUnits(t, g.file, 5, "a", "b&c", "d")
	ask := func(user, key string, lines ...cartLine) (int, string, string) {
		return orderCart(g.client, g.front, user, key, lines)
	}
	many := make([]cartLine, 17)
	for i := range many {
		many[i] = cartLine{fmt.Sprint("s", i), 1}
	}
	for _, c := range []struct {
		user, key string
		lines     []cartLine
		status    int
		reason    string
		sku       string
	}{
		{"1", "one", []cartLine{{"d", 1}, {"a", 1}, {"b&c", 1}, {"a", 1}}, 200, "", ""},
		{"1", "one", []cartLine{{"a", 2}, {"b&c", 1}, {"d", 1}}, 200, "confirmed", "a"},
		{"1", "one", []cartLine{{"a", 1}, {"d", 1}}, 422, "key_reused", "a"},
		{"1", "one", []cartLine{{"a", 2}, {"b&c", 1}}, 422, "key_reused", "a"},
		{"1", "one", []cartLine{{"a", 2}, {"b&c", 1}, {"d", 2}}, 422, "key_reused", "a"},
		{"1", "one", []cartLine{{"a", 2}}, 422, "key_reused", "a"},
		{"1", "one", []cartLine{{"d", 1}}, 422, "key_reused", "d"},
		{"2", "two", []cartLine{{"a", 1}, {"d", 5}}, 409, "sold_out", "d"},
		{"2", "", []cartLine{{"a", 1}, {"d", 5}}, 409, "sold_out", "d"},
		{"2", "three", []cartLine{{"a", 1}, {"nothing", 1}}, 404, "unknown_sku", "nothing"},
		{"3", "", []cartLine{{"d", 1}, {"b&c", 2}}, 200, "", ""},
		{"3", "", many, 400, "bad_request", ""},
		{"3", "", nil, 400, "bad_request", ""},
		{"3", "", []cartLine{{"a", 1}, {"d", 0}}, 400, "bad_request", ""},
		{"4", "four", []cartLine{{"d", 1}}, 200, "", ""},
	} {
		soon(t, "nothing is under way", func() bool {
			return ledgerOf(t, r, "a").held+ledgerOf(t, r, "b&c").held+ledgerOf(t, r, "d").held == 0
		})
		status, reason, sku := ask(c.user, c.key, c.lines...)
		if status != c.status || reason != c.reason || c.sku != "" && sku != c.sku {
			t.Errorf("%s %q %v: %d %s %q, want %d %s %q", c.user, c.key, c.lines, status, reason, sku, c.status, c.reason, c.sku)
		}
	}
	want := map[string]account{"a": {5, 0, 2}, "b&c": {5, 0, 3}, "d": {5, 0, 3}}
	soon(t, "the ledgers are right", func() bool {
		return ledgerOf(t, r, "a") == want["a"] && ledgerOf(t, r, "b&c") == want["b&c"] && ledgerOf(t, r, "d") == want["d"]
	})
	if told := shop.orders["one"]; told != "a=2&b%26c=1&d=1" {
		t.Errorf("the shop is told %q", told)
	}
}

func TestCart_ResponseAndOperatorsSettleAllLines(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	g := gate(t, redisAt(r), boundless, shop.settings(), cartRoutes)
	setUnits(t, g.file, 5, "a", "b")
	cart := []cartLine{{"b", 2}, {"a", 1}}
	shop.status = http.StatusConflict
	orderCart(g.client, g.front, "1", "rejected", cart)
	soon(t, "all lines are released", func() bool {
		return ledgerOf(t, r, "a") == account{5, 0, 0} && ledgerOf(t, r, "b") == account{5, 0, 0}
	})
	shop.status = 200
	orderCart(g.client, g.front, "1", "made", cart)
	soon(t, "all lines are sold", func() bool {
		return ledgerOf(t, r, "a") == account{5, 0, 1} && ledgerOf(t, r, "b") == account{5, 0, 2}
	})
	if text := g.ask("GET", "/.sluice/orders/made?sku=a&sku=b").body; !strings.Contains(text, `"sold"`) {
		t.Errorf("the state is %s", text)
	}
	both := "?" + url.Values{"sku": {"a", "b"}}.Encode()
	for _, c := range []struct {
		op     string
		status int
	}{{"release", 409}, {"refund", 200}, {"refund", 200}, {"confirm", 409}} {
		if a := g.control("POST", "/api/v1/reservations/made/"+c.op+both, ""); a.status != c.status {
			t.Errorf("%s: %d %s", c.op, a.status, a.body)
		}
	}
	if a, b := ledgerOf(t, r, "a"), ledgerOf(t, r, "b"); a != (account{5, 0, 0}) || b != (account{5, 0, 0}) {
		t.Errorf("after the refund: %+v, %+v", a, b)
	}
}
