package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/redistest"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/link"
)

// counter is a control API over ledgers, as an operator and a shop ask it.
type counter struct {
	t       *testing.T
	store   ledger.Store
	api     *admin.API
	handler http.Handler
	log     *bytes.Buffer
}

// atCounter opens a counter over a store; perUser is what is configured for a person.
func atCounter(t *testing.T, s ledger.Store, perUser int) *counter {
	c := config.Default()
	c.Stock.Reserve.PerUser = perUser
	k := &counter{t: t, store: s, log: &bytes.Buffer{}}
	k.api = &admin.API{Ledgers: ledgersOf(c, k.store, nil), Log: slog.New(slog.NewTextHandler(k.log, nil))}
	k.handler = k.api.Handler()
	return k
}

func (k *counter) ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	k.t.Helper()
	r := httptest.NewRequest(method, "http://localhost/api/v1"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4711"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, r)
	return w
}

// says asks, and wants a status and each of the words in the answer.
func (k *counter) says(status int, words []string, method, path, body string, header ...string) {
	k.t.Helper()
	w := k.ask(method, path, body, header...)
	kind := "application/json"
	if status != 200 {
		kind = "application/problem+json"
	}
	if w.Code != status || w.Header().Get("Content-Type") != kind {
		k.t.Errorf("%s %s %s: %d %s, want %d %s: %s", method, path, body, w.Code, w.Header().Get("Content-Type"), status, kind, w.Body)
	}
	for _, word := range words {
		if !strings.Contains(w.Body.String(), word) {
			k.t.Errorf("%s %s %s: %s does not say %s", method, path, body, w.Body, word)
		}
	}
}

func words(w ...string) []string { return w }

// Deadlines that no clock of a test machine comes near.
const (
	longAgo = 1_000_000_000_000 // Unix ms: 2001
	farOff  = 9_000_000_000_000 // 2255
)

// hold reserves units until a time.
func (k *counter) hold(sku, serial, user string, quantity, until int64) {
	k.t.Helper()
	var codes [1]ledger.Code
	_, err := k.store.Reserve(k.t.Context(), sku, 0, longAgo, until, []ledger.Item{{Serial: serial, User: user, Quantity: quantity}}, codes[:])
	if err != nil || codes[0] != ledger.Held {
		k.t.Fatalf("hold %s: %d, %v", serial, codes[0], err)
	}
}

func (k *counter) stock(sku string) ledger.Stock {
	k.t.Helper()
	s, _, err := k.store.Look(k.t.Context(), sku)
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

// everyStore runs a test on memory and on Redis: the API is the same.
func everyStore(t *testing.T, test func(t *testing.T, s ledger.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, ledger.NewMemory()) })
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t)
		r, err := ledger.NewRedis(ledger.RedisOptions{Events: 1000, Options: link.Options{
			Addresses: []string{server.Addr}, PoolSize: 4, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
			BreakerErrors: 100, BreakerPause: time.Second,
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		test(t, r)
	})
}

func TestOperatorSetsLedgers(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 2)
		k.says(404, words("no such SKU", "setting its total makes one"), "GET", "/stock/1001", "")
		k.says(404, words("no such SKU"), "POST", "/stock/1001", `{"add": 5}`)
		k.says(404, words("no such SKU"), "POST", "/stock/1001", `{"state": "paused"}`)
		k.says(200, words(`"left":10`, `"on_sale":true`, `"total":10`, `"limit":2`, `"state":"on"`), "POST", "/stock/1001", `{"set": 10}`)
		k.hold("1001", "k-1", "7", 2, farOff)
		k.hold("1001", "k-2", "8", 1, farOff)
		k.says(200, words(`"confirmed"`), "POST", "/reservations/k-2/confirm", "")
		k.says(200, words(`"left":7`, `"held":2`, `"sold":1`, `"free":7`), "GET", "/stock/1001", "")
		k.says(409, words("2 held", "1 sold"), "POST", "/stock/1001", `{"set": 2}`)
		k.says(200, words(`"total":3`, `"limit":2`), "POST", "/stock/1001", `{"set": 3}`)
		k.says(200, words(`"total":3`, `"limit":0`), "POST", "/stock/1001", `{"set": 3, "limit": 0}`)
		k.says(200, words(`"total":3`, `"limit":0`), "POST", "/stock/1001", `{"set": 3}`)
		k.says(200, words(`"total":8`), "POST", "/stock/1001", `{"add": 5}`)
		k.says(200, words(`"on_sale":false`, `"paused"`), "POST", "/stock/1001", `{"state": "paused"}`)
		k.says(200, words(`"on_sale":true`), "POST", "/stock/1001", `{"state": "on"}`)
		k.says(200, words(`"sku":"1001"`, `"total":8`), "GET", "/stock", "")
		if all := k.ask("GET", "/stock?limit=1", "").Body.String(); strings.Count(all, `"sku"`) != 1 {
			t.Errorf("a list of one: %s", all)
		}
	})
}

func TestAStockThatNoLedgerCanHoldIsTheCallersFault(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 1)
	k.says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
	before := k.stock("1001")
	for _, body := range []string{
		`{"set": -1}`, `{"set": 1000000000000000}`, `{"set": 1, "limit": -1}`, `{"limit": 1}`, `{"add": 1, "limit": 1}`, `{"add": 0}`,
		`{"set": 1, "add": 1}`, `{"state": "off"}`, `{"state": "on", "set": 1}`, `{"reconciled": true}`, `{"set": 1, "reconciled": true}`,
		`{"set": 1.5}`, `{"set": "1"}`, `{"sett": 1}`, `{"set": 1, "states": "on"}`, `{"set": 1} {"set": 2}`, `{}`, ``, `[]`, `{"set": ` + strings.Repeat(" ", 5000) + `1}`,
	} {
		k.says(400, words("not valid"), "POST", "/stock/1001", body)
	}
	k.says(400, words("Idempotency-Key"), "POST", "/stock/1001", `{"set": 1}`, "Idempotency-Key", "x")
	k.says(400, words("Idempotency-Key"), "POST", "/stock/1001", `{"add": 1}`, "Idempotency-Key", "a b")
	k.says(400, words("no request can name it"), "POST", "/stock/%7Ba%7D", `{"set": 1}`)
	k.says(400, words("limit"), "GET", "/stock?limit=0", "")
	k.says(400, words("kind"), "GET", "/stock?kind=both", "")
	if after := k.stock("1001"); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
	if strings.Contains(k.log.String(), "sku=a") || strings.Count(k.log.String(), "changed") != 1 {
		t.Errorf("what was refused is in the log as if it were done: %s", k.log)
	}
}

func TestAnAdditionWithAKeyIsDoneOnce(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 1)
		k.says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
		for range 3 {
			k.says(200, words(`"total":8`), "POST", "/stock/1001", `{"add": 3}`, "Idempotency-Key", "truck-17")
		}
		k.says(200, words(`"total":11`), "POST", "/stock/1001", `{"add": 3}`, "Idempotency-Key", "truck-18")
	})
}

// What froze a ledger is not healed by an operator who presses resume.
func TestAFrozenLedgerOpensOnlyWhenItIsReconciled(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 1)
		k.says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
		k.says(200, words("frozen"), "POST", "/stock/1001", `{"state": "frozen"}`)
		epoch := k.stock("1001").Epoch
		k.says(200, words("frozen"), "POST", "/stock/1001", `{"state": "frozen"}`)
		if again := k.stock("1001").Epoch; again != epoch {
			t.Errorf("asking twice raised the epoch from %d to %d", epoch, again)
		}
		for _, state := range []string{"on", "paused", "ended"} {
			k.says(409, words("adopt", "reconciled"), "POST", "/stock/1001", `{"state": "`+state+`"}`)
		}
		k.says(200, words(`"on_sale":true`), "POST", "/stock/1001", `{"state": "on", "reconciled": true}`)
	})
}

func TestEachOpOnAReservationIsDoneOnce(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 0)
		k.says(200, nil, "POST", "/stock/1001", `{"set": 100}`)
		for _, serial := range []string{"confirm", "release", "refund"} {
			k.hold("1001", serial, "7", 1, farOff)
		}
		k.says(200, nil, "POST", "/reservations/refund/confirm", "")
		for op, state := range map[string]string{"confirm": "confirmed", "release": "released", "refund": "refunded"} {
			path := "/reservations/" + op + "/" + op
			k.says(200, words(`"changed":true`, `"state":"`+state+`"`, `"sku":"1001"`, `"serial":"`+op+`"`), "POST", path, "")
			for range 3 {
				k.says(200, words(`"changed":false`, `"state":"`+state+`"`), "POST", path+"?sku=1001", "")
			}
		}
		if s := k.stock("1001"); s.Held != 0 || s.Sold != 1 {
			t.Errorf("%d held, %d sold; want 0 and 1", s.Held, s.Sold)
		}
	})
}

func TestARefusalSaysWhatToDoInstead(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 0)
		k.says(200, nil, "POST", "/stock/1001", `{"set": 100}`)
		k.hold("1001", "sold", "7", 1, farOff)
		k.hold("1001", "gone", "7", 1, farOff)
		k.says(200, nil, "POST", "/reservations/sold/confirm", "")
		k.says(200, nil, "POST", "/reservations/gone/release", "")
		k.says(409, words("confirmed", "refund it"), "POST", "/reservations/sold/release", "")
		k.says(409, words("cancel the order at the shop"), "POST", "/reservations/gone/confirm", "")
		k.says(409, words("nothing is left to do"), "POST", "/reservations/gone/refund", "")
		k.says(404, words("no such reservation"), "POST", "/reservations/nobody/confirm", "")
		k.says(404, words("adopt it"), "POST", "/reservations/nobody/confirm?sku=1001", "")
		k.says(404, words("no such SKU"), "POST", "/reservations/nobody/confirm?sku=1002", "")
		k.says(404, words("no such reservation"), "GET", "/reservations/nobody?sku=1001", "")
		k.says(400, words("visible ASCII"), "GET", "/reservations/a%20b", "")
		k.says(400, words("no request can name it"), "GET", "/reservations/a?sku=a%20b", "")
		if s := k.stock("1001"); s.Held != 0 || s.Sold != 1 {
			t.Errorf("%d held, %d sold; want 0 and 1", s.Held, s.Sold)
		}
	})
}

// A release that comes before its order must keep that order out.
func TestAReleaseOfANamedSKULeavesATombstone(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 0)
		k.says(200, nil, "POST", "/stock/1001", `{"set": 1}`)
		before := time.Now()
		k.says(404, words("no such reservation"), "POST", "/reservations/late/release", "")
		k.says(200, words(`"changed":true`, `"released"`), "POST", "/reservations/late/release?sku=1001", "")
		var codes [1]ledger.Code
		if r, ok, err := k.store.Find(t.Context(), "1001", "late"); err != nil || !ok || r.Deadline < before.Add(keepReleased).UnixMilli() {
			t.Errorf("it is forgotten at %d: %v", r.Deadline, err)
		}
		if _, err := k.store.Reserve(t.Context(), "1001", 0, longAgo, farOff, []ledger.Item{{Serial: "late", Quantity: 1}}, codes[:]); err != nil || codes[0] != ledger.Released {
			t.Errorf("the late order: %d, %v", codes[0], err)
		}
	})
}

func TestASerialOfTwoSKUsMustBeNamedWithOne(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 0)
	for _, sku := range []string{"1001", "1002"} {
		k.says(200, nil, "POST", "/stock/"+sku, `{"set": 5}`)
		k.hold(sku, "twice", "7", 1, farOff)
	}
	k.says(409, words("1001", "1002", "sku="), "GET", "/reservations/twice", "")
	k.says(409, words("sku="), "POST", "/reservations/twice/release", "")
	if a, b := k.stock("1001"), k.stock("1002"); a.Held != 1 || b.Held != 1 {
		t.Fatal("a release that named no SKU released something")
	}
	k.says(200, words(`"sku":"1002"`, `"held"`), "GET", "/reservations/twice?sku=1002", "")
	k.says(200, words(`"sku":"1002"`, `"released"`), "POST", "/reservations/twice/release?sku=1002", "")
	if a, b := k.stock("1001"), k.stock("1002"); a.Held != 1 || b.Held != 0 {
		t.Errorf("%d and %d held, want 1 and 0", a.Held, b.Held)
	}
}

func TestAnOrderOfTheShopIsAdopted(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 0)
		k.says(404, words("no such SKU"), "POST", "/reservations/a/adopt", `{"sku": "1001", "quantity": 1}`)
		k.says(200, nil, "POST", "/stock/1001", `{"set": 2}`)
		k.hold("1001", "held", "7", 1, farOff)
		k.says(409, words("held already", "confirm it"), "POST", "/reservations/held/adopt", `{"sku": "1001", "user": "8", "quantity": 1}`)
		k.says(409, words("held already"), "POST", "/reservations/held/adopt", `{"sku": "1001", "user": "7", "quantity": 2}`)
		k.says(200, words(`"changed":true`, `"confirmed"`), "POST", "/reservations/held/adopt", `{"sku": "1001", "user": "7", "quantity": 1}`)
		k.says(200, words(`"changed":false`), "POST", "/reservations/held/adopt", `{"sku": "1001", "user": "7", "quantity": 1}`)
		k.says(200, words(`"over_total":true`), "POST", "/reservations/lost/adopt", `{"sku": "1001", "user": "9", "quantity": 2}`)
		k.says(200, words(`"left":-1`), "GET", "/stock/1001", "")
		k.says(200, words(`"user":"9"`, `"quantity":2`, `"confirmed"`), "GET", "/reservations/lost", "")
		for _, body := range []string{``, `{}`, `{"sku": "1001"}`, `{"sku": "1001", "quantity": 0}`, `{"sku": "{}", "quantity": 1}`, `{"sku": "1001", "quantity": 1000000001}`,
			`{"sku": "1001", "user": "a\nb", "quantity": 1}`, `{"sku": "1001", "user": "` + strings.Repeat("u", 257) + `", "quantity": 1}`} {
			k.says(400, words("not valid"), "POST", "/reservations/bad/adopt", body)
		}
		if !strings.Contains(k.log.String(), "level=ERROR") {
			t.Errorf("nothing alarms that more is sold than there is: %s", k.log)
		}
	})
}

// The list is what somebody works through by hand: what was due first comes first, and nothing else is in it.
func TestListOfTheUnknownIsWhatMustBeDecided(t *testing.T) {
	everyStore(t, func(t *testing.T, s ledger.Store) {
		k := atCounter(t, s, 0)
		for _, sku := range []string{"1001", "1002"} {
			k.says(200, nil, "POST", "/stock/"+sku, `{"set": 10}`)
		}
		k.hold("1002", "second", "7", 1, longAgo+2000)
		k.hold("1001", "first", "7", 1, longAgo+1000)
		k.hold("1001", "third", "7", 1, longAgo+3000)
		k.hold("1001", "waits", "7", 1, farOff)
		k.hold("1001", "sold", "7", 1, longAgo)
		k.says(200, nil, "POST", "/reservations/sold/confirm", "")
		for query, want := range map[string]string{
			"?state=unknown":                  "first second third",
			"?state=unknown&sku=1001":         "first third",
			"?state=unknown&limit=2":          "first second +",
			"?state=held":                     "first second third waits",
			"?state=confirmed":                "sold",
			"?state=released":                 "",
			"":                                "first second third waits sold",
			"?sku=1001&state=unknown&limit=1": "first +",
		} {
			var all struct {
				Reservations []admin.Reservation
				More         bool
			}
			if err := json.Unmarshal(k.ask("GET", "/reservations"+query, "").Body.Bytes(), &all); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range all.Reservations {
				got = append(got, r.Serial)
			}
			if all.More {
				got = append(got, "+")
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", query, strings.Join(got, " "), want)
			}
		}
		k.says(200, words(`"deadline":"2001-09-09T01:46:41Z"`, `"overdue":true`, `"state":"held"`), "GET", "/reservations/first", "")
		k.says(200, words(`"overdue":false`), "GET", "/reservations/waits", "")
		k.says(400, words("state"), "GET", "/reservations?state=lost", "")
		k.says(400, words("limit"), "GET", "/reservations?limit=10001", "")
		k.says(404, words("no such SKU"), "GET", "/reservations?sku=1003", "")
	})
}

func TestEachChangeIsInTheLogWithWhoAndWhat(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 1)
	k.says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
	k.hold("1001", "k-1", "7", 1, farOff)
	k.says(200, nil, "POST", "/reservations/k-1/confirm", "")
	for _, want := range []string{
		`from=127.0.0.1:4711 sku=1001 change="set 5" before=none after="total 5, held 0, sold 0, limit 1, on, 1-1"`,
		`from=127.0.0.1:4711 sku=1001 serial=k-1 op=confirm before=held after=confirmed changed=true`,
	} {
		if !strings.Contains(k.log.String(), want) {
			t.Errorf("no %s in %s", want, k.log)
		}
	}
	if strings.Contains(k.log.String(), "user") {
		t.Errorf("users are nobody's business in a log: %s", k.log)
	}
}

func TestWhereBothKindsAreKeptNoLedgerIsMadeByMistake(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 1)
	shop := stockgate.NewMemory()
	if err := shop.Set(t.Context(), "2002", 4); err != nil {
		t.Fatal(err)
	}
	k.says(404, words("all of them reserve"), "GET", "/stock/2002?kind=layout", "")
	k.api.Store = store{shop, shop}
	k.says(409, words("kind=ledger", "kind=layout"), "POST", "/stock/2002", `{"set": 9}`)
	k.says(404, words("kind=layout"), "GET", "/stock/2002", "")
	k.says(200, words(`"left":4`), "GET", "/stock/2002?kind=layout", "")
	k.says(200, words(`"left":9`), "POST", "/stock/2002?kind=layout", `{"set": 9}`)
	k.says(200, words(`"total":3`), "POST", "/stock/2002?kind=ledger", `{"set": 3}`)
	k.says(200, words(`"total":2`), "POST", "/stock/2002", `{"set": 2}`)
	k.says(200, words(`"left":9`), "GET", "/stock?kind=layout", "")
	k.says(400, words("the shop keeps this stock"), "POST", "/stock/2002?kind=layout", `{"state": "paused"}`)
	k.says(400, words("Idempotency-Key"), "POST", "/stock/2002?kind=layout", `{"add": 1}`, "Idempotency-Key", "x")
	k.api.Ledgers = nil
	k.says(404, words("reserve"), "GET", "/stock/2002?kind=ledger", "")
	k.says(404, words("reserve"), "GET", "/reservations", "")
	k.says(200, words(`"left":9`), "GET", "/stock/2002", "")
}
