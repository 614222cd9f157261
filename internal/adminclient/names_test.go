package adminclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/proxy/param"
)

// Whatever a request can name, an operator can.
func TestNames_EverySKUThatIsSoldCanBeSet(t *testing.T) {
	direct, done, err := Local(storetest.Reserving(redistest.Start(t).Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	gate := httptest.NewServer(storetest.NewAPI(t, storetest.Ledger(t), 1).Handler)
	defer gate.Close()
	base, over := NewHTTP(gate.URL, time.Minute)
	for name, to := range map[string]Client{"redis": direct, "gate": {Base: base, HTTP: over}} {
		for _, sku := range []string{".", "..", "...", "%2e%2e", "%", "a/b", "//", "a/../b", "?", "#", "a&b=c", "a;b", "a+b",
			`a"b`, `a\b`, "$sku", "*", "-1", "王"} {
			if !param.ValidSKU([]byte(sku)) {
				t.Fatalf("%q is none", sku)
			}
			var now admin.Stock
			if err := to.Call(t.Context(), "POST", "/stock/"+Segment(sku), map[string]int{"set": 5}, &now); err != nil ||
				now.SKU != sku || now.Left != 5 {
				t.Errorf("%s: set %q: %+v, %v", name, sku, now, err)
			}
			if err := to.Call(t.Context(), "GET", "/stock/"+Segment(sku), nil, &now); err != nil || now.SKU != sku ||
				now.Left != 5 {
				t.Errorf("%s: get %q: %+v, %v", name, sku, now, err)
			}
		}
	}
}

// What is no UTF-8 would be another name in every answer.
func TestNames_NoSKUIsWhatJSONCannotTell(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	k.Says(400, storetest.Words("no request can name it"), "POST", "/stock/a%ff", `{"set": 1}`)
	k.Says(400, storetest.Words("no request can name it"), "GET", "/stock/a%ff", "")
}

// An answer that sends a command elsewhere is not followed: a change would become a question, and its answer be
// believed.
func TestNames_NoCommandFollowsARedirect(t *testing.T) {
	followed := false
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			followed = true
			_, _ = w.Write([]byte("{}"))
			return
		}
		http.Redirect(w, r, "/other", http.StatusMovedPermanently)
	}))
	defer front.Close()
	base, over := NewHTTP(front.URL, time.Minute)
	var now admin.Stock
	err := Client{Base: base, HTTP: over}.Call(t.Context(), "POST", "/stock/1001", map[string]int{"set": 5}, &now)
	if err == nil || !strings.Contains(err.Error(), "is this the admin address of a gateway?") || followed {
		t.Errorf("%v, followed: %v", err, followed)
	}
}
