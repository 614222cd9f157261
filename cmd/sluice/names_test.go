package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/proxy/param"
	"sluice/stockgate/ledger"
)

// Whatever a request can name, an operator can.
func TestEverySKUThatIsSoldCanBeSet(t *testing.T) {
	direct, done, err := within(reserving(redistest.Start(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	gate := httptest.NewServer(atCounter(t, ledger.NewMemory(), 1).handler)
	defer gate.Close()
	base, over := caller(gate.URL, time.Minute)
	for name, to := range map[string]client{"redis": direct, "gate": {base: base, http: over}} {
		for _, sku := range []string{".", "..", "...", "%2e%2e", "%", "a/b", "//", "a/../b", "?", "#", "a&b=c", "a;b", "a+b",
			`a"b`, `a\b`, "$sku", "*", "-1", "王"} {
			if !param.ValidSKU([]byte(sku)) {
				t.Fatalf("%q is none", sku)
			}
			var now admin.Stock
			if err := to.call(t.Context(), "POST", "/stock/"+segment(sku), map[string]int{"set": 5}, &now); err != nil ||
				now.SKU != sku || now.Left != 5 {
				t.Errorf("%s: set %q: %+v, %v", name, sku, now, err)
			}
			if err := to.call(t.Context(), "GET", "/stock/"+segment(sku), nil, &now); err != nil || now.SKU != sku ||
				now.Left != 5 {
				t.Errorf("%s: get %q: %+v, %v", name, sku, now, err)
			}
		}
	}
}

// What is no UTF-8 would be another name in every answer.
func TestNoSKUIsWhatJSONCannotTell(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 1)
	k.says(400, words("no request can name it"), "POST", "/stock/a%ff", `{"set": 1}`)
	k.says(400, words("no request can name it"), "GET", "/stock/a%ff", "")
}

// An answer that sends a command elsewhere is not followed: a change would become a question, and its answer be
// believed.
func TestNoCommandFollowsARedirect(t *testing.T) {
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
	base, over := caller(front.URL, time.Minute)
	var now admin.Stock
	err := client{base: base, http: over}.call(t.Context(), "POST", "/stock/1001", map[string]int{"set": 5}, &now)
	if err == nil || !strings.Contains(err.Error(), "is this the admin address of a gate?") || followed {
		t.Errorf("%v, followed: %v", err, followed)
	}
}

func TestAPageInsteadOfAnAnswerIsSaidToBe(t *testing.T) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	defer shop.Close()
	if err := command(t, "stock get 1001 --admin "+shop.URL); err == nil ||
		!strings.Contains(err.Error(), "is this the admin address of a gate?") {
		t.Errorf("a shop: %v", err)
	}
}

// An address stands on the command line as in the configuration.
func TestAPortAloneIsOfThisMachine(t *testing.T) {
	gate := httptest.NewServer(atCounter(t, ledger.NewMemory(), 1).handler)
	defer gate.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(gate.URL, "http://"), ":")
	if err := command(t, "stock list --admin :"+port); err != nil {
		t.Error(err)
	}
}

func TestNamesThatNobodyHasAreMisuse(t *testing.T) {
	for _, words := range [][]string{
		{"reservation", "get", ""}, {"reservation", "confirm", ".."}, {"reservation", "release", ".", "--sku", "1001"},
		{"reservation", "refund", "a b"}, {"reservation", "adopt", "", "--sku", "1001"},
		{"reservation", "get", strings.Repeat("k", 129)},
		{"stock", "add", "1001", "20", "--key", ""}, // a script that has left the name empty would add each time
	} {
		var c commands
		if _, _, err := commandTree("sluice", "", &c).parse(words); err == nil {
			t.Errorf("%q is accepted", words)
		}
	}
}
