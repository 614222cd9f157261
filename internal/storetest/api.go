package storetest

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/stockgate/ledger"
)

// API is a control API over ledgers, as an operator and a shop ask it.
type API struct {
	t       *testing.T
	Store   *ledger.Store
	Control *admin.API
	Handler http.Handler
	Log     *bytes.Buffer
}

// NewAPI opens the API over a store; perUser is what is configured for a person.
func NewAPI(t *testing.T, s *ledger.Store, perUser int) *API {
	c := config.Default()
	c.Stock.Reserve.MaxPerUser = perUser
	a := &API{t: t, Store: s, Log: &bytes.Buffer{}}
	a.Control = &admin.API{Ledgers: stores.NewLedgers(c, a.Store, nil), Log: slog.New(slog.NewTextHandler(a.Log, nil))}
	a.Handler = a.Control.Handler()
	return a
}

// Ask sends one request and returns the response. header has names and values by turns.
func (a *API) Ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequest(method, "http://localhost/api/v1"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4711"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	return w
}

// Says asks, and wants a status and each of the words in the answer.
func (a *API) Says(status int, words []string, method, path, body string, header ...string) {
	a.t.Helper()
	w := a.Ask(method, path, body, header...)
	kind := "application/json"
	if status != 200 {
		kind = "application/problem+json"
	}
	if w.Code != status || w.Header().Get("Content-Type") != kind {
		a.t.Errorf("%s %s %s: %d %s, want %d %s: %s", method, path, body, w.Code, w.Header().Get("Content-Type"), status,
			kind, w.Body)
	}
	for _, word := range words {
		if !strings.Contains(w.Body.String(), word) {
			a.t.Errorf("%s %s %s: %s does not say %s", method, path, body, w.Body, word)
		}
	}
}

// Words lists what a response must contain.
func Words(w ...string) []string { return w }

// Deadlines that no clock of a test machine comes near.
const (
	LongAgo = 1_000_000_000_000 // Unix ms: 2001
	FarOff  = 9_000_000_000_000 // 2255
)

// Hold reserves units until a time.
func (a *API) Hold(sku, serial, user string, quantity, until int64) {
	a.t.Helper()
	var codes [1]ledger.Code
	_, err := a.Store.Reserve(a.t.Context(), sku, 0, LongAgo, until, []ledger.Item{{Serial: serial, User: user,
		Quantity: quantity}}, codes[:])
	if err != nil || codes[0] != ledger.Held {
		a.t.Fatalf("hold %s: %d, %v", serial, codes[0], err)
	}
}

// Stock reads the ledger of a SKU.
func (a *API) Stock(sku string) ledger.Stock {
	a.t.Helper()
	s, _, err := a.Store.ReadStock(a.t.Context(), sku)
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// Reserving is a configuration whose one route reserves units in the Redis at addresses.
func Reserving(addresses ...string) *config.Config {
	c := config.Default()
	c.Name, c.Stock.Source = "shop", "redis"
	c.Stock.Redis.Addresses = addresses
	c.Stock.Redis.Timeout = 5 * time.Second // the machine may be busy
	c.Routes = []config.Route{{Name: "order", Match: "POST /order/{sku}", Gate: "reserve", SKU: "$path_sku",
		Quantity: "1"}}
	return c
}
