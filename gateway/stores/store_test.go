package stores_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/admin"
	"sluice/gateway/stores"
	"sluice/internal/embedredis"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/stockgate"
)

// control is a control API over an empty memory, and a way to post to it.
func control(t *testing.T) (post func(sku, body string) (status int, answer string), memory *stockgate.Redis) {
	t.Helper()
	memory = storetest.Shop(t)
	api := admin.API{Store: stores.NewStore(memory), Log: slog.New(slog.DiscardHandler)}
	handler := api.Handler()
	return func(sku, body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/stock/"+sku, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}, memory
}

func TestStore_StockThatCannotBeIsTheCallersFault(t *testing.T) {
	post, memory := control(t)
	for _, c := range []struct {
		sku, body string
		status    int
		says      string
	}{
		{"1001", `{"set": 3}`, 200, `"left":3`},
		{"1001", `{"set": -3}`, 400, "0 or more"},
		{"a%20b", `{"set": 3}`, 400, "no request can name it"},
		{"%7Ba%7D", `{"set": 3}`, 400, "no request can name it"},
		{"%00", `{"set": 3}`, 400, "no request can name it"},
		{strings.Repeat("x", 129), `{"set": 3}`, 400, "no request can name it"},
		{"1002", `{"add": 3}`, 404, "no such SKU"},
	} {
		status, answer := post(c.sku, c.body)
		if status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s: %d %s, want %d and %q", c.sku, c.body, status, answer, c.status, c.says)
		}
		if strings.Count(answer, "no such SKU") > 1 {
			t.Errorf("%s %s: it says the same twice: %s", c.sku, c.body, answer)
		}
	}
	if all, err := memory.List(t.Context(), 10); err != nil || len(all) != 1 || all[0].SKU != "1001" || all[0].Left != 3 {
		t.Errorf("the stock is now %v, %v; want 3 of 1001 alone", all, err)
	}
}

func TestStore_ListShowsStockThatCannotBeRead(t *testing.T) {
	s := embedredis.Start()
	t.Cleanup(s.Stop)
	for sku, units := range map[string]string{"1001": "3", "1002": "abc"} {
		testkit.Check(t, s.Set("seckill:stock:"+sku, units))
	}
	all, err := stores.NewStore(storetest.ShopIn(t, s)).List(t.Context(), 10)
	if err != nil || len(all) != 2 || all[0].Left != 3 || all[0].Fault != "" {
		t.Fatalf("%+v, %v; want two SKUs", all, err)
	}
	line := stores.DescribeStock(all[1])
	if !strings.HasPrefix(line, "1002\t-\t") || !strings.HasSuffix(line, `"abc" is not an integer`) {
		t.Errorf("the line %q", line)
	}
}
