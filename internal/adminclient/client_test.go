package adminclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/gateway/stores"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
)

// status is that of HTTP; a port may have its digits, but never three alone.
var status = regexp.MustCompile(`\b40\d\b`)

// A command says the same whether it works on Redis itself or through a gate.
func TestClient_BothWaysToALedgerSayTheSame(t *testing.T) {
	direct, done, err := Local(storetest.Reserving(redistest.Start(t).Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	gate := httptest.NewServer(k.Handler)
	defer gate.Close()
	base, over := NewHTTP(gate.URL, time.Minute)
	for name, to := range map[string]Client{"redis": direct, "gate": {Base: base, HTTP: over}} {
		t.Run(name, func(t *testing.T) {
			stock := func(change any, want string) {
				t.Helper()
				var now admin.Stock
				if err := to.Call(t.Context(), "POST", "/stock/1001", change, &now); err != nil ||
					stores.DescribeStock(now) != want {
					t.Errorf("%v: %q, %v; want %q", change, stores.DescribeStock(now), err, want)
				}
			}
			rejects := func(method, path string, in any, want string) {
				t.Helper()
				var out map[string]any
				if err := to.Call(t.Context(), method, path, in, &out); err == nil || !strings.Contains(err.Error(), want) ||
					status.MatchString(err.Error()) {
					t.Errorf("%s %s: %v, want %s and no status", method, path, err, want)
				}
			}
			rejects("GET", "/stock/1001", nil, "if it is new: sluice stock set 1001 UNITS")
			stock(map[string]int{"set": 5}, "1001\t5\tfree of 5: 0 held, 0 sold; 1 a person")
			stock(map[string]int{"set": 7, "limit": 0}, "1001\t7\tfree of 7: 0 held, 0 sold")
			stock(map[string]string{"state": "paused"}, "1001\t7\tfree of 7: 0 held, 0 sold  (paused)")
			stock(map[string]string{"state": "on"}, "1001\t7\tfree of 7: 0 held, 0 sold")
			var out admin.Recovery
			in := map[string]any{"orders": []admin.Order{{Serial: "a/b", User: "7", Quantity: 2}}, "apply": true}
			if err := to.Call(t.Context(), "POST", "/stock/1001/recover", in, &out); err != nil || out.Units != 2 {
				t.Errorf("recover: %+v, %v", out, err)
			}
			var found admin.Reservation
			if err := to.Call(t.Context(), "GET", "/reservations/a%2Fb?sku=1001", nil, &found); err != nil ||
				stores.DescribeReservation(found) != "a/b\t1001\tsold\t2\t7" {
				t.Errorf("get: %q, %v", stores.DescribeReservation(found), err)
			}
			rejects("POST", "/reservations/a%2Fb/release?sku=1001", nil, "refund it")
			rejects("GET", "/reservations/nobody?sku=1001", nil, "no such reservation")
			rejects("POST", "/stock/1001", map[string]int{"set": 1}, "2 sold")
		})
	}
}

func TestClient_AnswerThatIsNoneIsSaidToBe(t *testing.T) {
	shop := httptest.NewServer(http.NotFoundHandler())
	defer shop.Close()
	base, over := NewHTTP(shop.URL, time.Minute)
	var out any
	err := Client{Base: base, HTTP: over}.Call(t.Context(), "GET", "/stock", nil, &out)
	if err == nil || !strings.Contains(err.Error(), "is this the admin address of a gateway?") {
		t.Errorf("a shop: %v", err)
	}
	locked := storetest.NewAPI(t, storetest.Ledger(t), 1)
	locked.Control.Token = "hush"
	to := inProcess(locked.Control.Handler())
	err = to.Call(t.Context(), "GET", "/stock", nil, &out)
	if err == nil || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("without the token: %v", err)
	}
	to.Token = "hash"
	err = to.Call(t.Context(), "GET", "/stock", nil, &out)
	if err == nil || !strings.Contains(err.Error(), "another token") {
		t.Errorf("with a wrong token: %v", err)
	}
	to.Token = "hush"
	err = to.Call(t.Context(), "GET", "/stock", nil, &out)
	if err != nil {
		t.Errorf("with the token: %v", err)
	}
	base, over = NewHTTP(testkit.FreeAddress(t), time.Minute)
	if err = (Client{Base: base, HTTP: over}).Call(context.Background(), "GET", "/stock", nil, &out); err == nil ||
		!strings.Contains(err.Error(), "no gateway answers") {
		t.Errorf("nobody: %v", err)
	}
}

func TestClient_UserCannotDisturbTheTerminal(t *testing.T) {
	for user, want := range map[string]string{"": "-", "7": "7", "王小明": "王小明", "a\x1b[2Jb": `"a\x1b[2Jb"`,
		"a\tb": `"a\tb"`, "a\u202eb": `"a\u202eb"`} {
		if got := stores.PrintableName(user); got != want {
			t.Errorf("%q: %s, want %s", user, got, want)
		}
	}
}
