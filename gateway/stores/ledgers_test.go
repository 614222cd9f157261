package stores_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/gateway/stores"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// everyStore runs a test on memory and on Redis: the API is the same.
func everyStore(t *testing.T, test func(t *testing.T, s *ledger.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, storetest.Ledger(t)) })
	t.Run("redis", func(t *testing.T) { test(t, onRedis(t, redistest.Start(t))) })
}

func onRedis(t *testing.T, server *redistest.Server) *ledger.Store {
	t.Helper()
	r, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Events: 1000, Options: redisconn.Options{
		Addresses: []string{server.Addr}, PoolSize: 4, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: 100, BreakerPause: time.Second,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestLedgers_OperatorSetsLedgers(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 2)
		k.Says(404, storetest.Words("no such SKU", "if it was ever sold: sluice stock recover 1001",
			"if it is new: sluice stock set 1001 UNITS"), "GET", "/stock/1001", "")
		k.Says(404, storetest.Words("no such SKU"), "POST", "/stock/1001", `{"add": 5}`)
		k.Says(404, storetest.Words("no such SKU"), "POST", "/stock/1001", `{"state": "paused"}`)
		k.Says(200, storetest.Words(`"left":10`, `"on_sale":true`, `"total":10`, `"limit":2`, `"state":"on"`), "POST",
			"/stock/1001", `{"set": 10}`)
		k.Hold("1001", "k-1", "7", 2, storetest.FarOff)
		k.Hold("1001", "k-2", "8", 1, storetest.FarOff)
		k.Says(200, storetest.Words(`"sold"`), "POST", "/reservations/k-2/confirm", "")
		k.Says(200, storetest.Words(`"left":7`, `"held":2`, `"sold":1`, `"free":7`), "GET", "/stock/1001", "")
		k.Says(409, storetest.Words("2 held", "1 sold"), "POST", "/stock/1001", `{"set": 2}`)
		k.Says(200, storetest.Words(`"total":3`, `"limit":2`), "POST", "/stock/1001", `{"set": 3}`)
		k.Says(200, storetest.Words(`"total":3`, `"limit":0`), "POST", "/stock/1001", `{"set": 3, "limit": 0}`)
		k.Says(200, storetest.Words(`"total":3`, `"limit":0`), "POST", "/stock/1001", `{"set": 3}`)
		k.Says(200, storetest.Words(`"total":8`), "POST", "/stock/1001", `{"add": 5}`)
		k.Says(200, storetest.Words(`"on_sale":false`, `"paused"`), "POST", "/stock/1001", `{"state": "paused"}`)
		k.Says(200, storetest.Words(`"on_sale":true`), "POST", "/stock/1001", `{"state": "on"}`)
		k.Says(200, storetest.Words(`"sku":"1001"`, `"total":8`), "GET", "/stock", "")
		if all := k.Ask("GET", "/stock?limit=1", "").Body.String(); strings.Count(all, `"sku"`) != 1 {
			t.Errorf("a list of one: %s", all)
		}
	})
}

func TestLedgers_StockThatNoLedgerCanHoldIsTheCallersFault(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
	before := k.Stock("1001")
	for _, body := range []string{
		`{"set": -1}`, `{"set": 1000000000000000}`, `{"set": 1, "limit": -1}`, `{"limit": 1}`, `{"add": 1, "limit": 1}`,
		`{"add": 0}`,
		`{"set": 1, "add": 1}`, `{"state": "off"}`, `{"state": "on", "set": 1}`, `{"reconciled": true}`,
		`{"state": "on", "reconciled": true}`,
		`{"set": 1.5}`, `{"set": "1"}`, `{"sett": 1}`, `{"set": 1, "states": "on"}`, `{"set": 1} {"set": 2}`, `{}`, ``, `[]`,
		`{"set": ` + strings.Repeat(" ", 5000) + `1}`,
	} {
		k.Says(400, storetest.Words("not valid"), "POST", "/stock/1001", body)
	}
	k.Says(400, storetest.Words("Idempotency-Key"), "POST", "/stock/1001", `{"set": 1}`, "Idempotency-Key", "x")
	k.Says(400, storetest.Words("Idempotency-Key"), "POST", "/stock/1001", `{"add": 1}`, "Idempotency-Key", "a b")
	k.Says(400, storetest.Words("no request can name it"), "POST", "/stock/%7Ba%7D", `{"set": 1}`)
	k.Says(400, storetest.Words("limit"), "GET", "/stock?limit=0", "")
	k.Says(400, storetest.Words("kind"), "GET", "/stock?kind=both", "")
	if after := k.Stock("1001"); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
	if strings.Contains(k.Log.String(), "sku=a") || strings.Count(k.Log.String(), "changed") != 1 {
		t.Errorf("what was rejected is in the log as if it were done: %s", k.Log)
	}
}

func TestLedgers_AdditionWithAKeyIsDoneOnce(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 1)
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
		for range 3 {
			k.Says(200, storetest.Words(`"total":8`), "POST", "/stock/1001", `{"add": 3}`, "Idempotency-Key", "truck-17")
		}
		k.Says(200, storetest.Words(`"total":11`), "POST", "/stock/1001", `{"add": 3}`, "Idempotency-Key", "truck-18")
	})
}

// What froze a ledger is not healed by an operator who presses resume.
func TestLedgers_FrozenLedgerOpensOnlyWhenItIsRecovered(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 1)
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
		k.Says(200, storetest.Words("frozen"), "POST", "/stock/1001", `{"state": "frozen"}`)
		epoch := k.Stock("1001").Epoch
		k.Says(200, storetest.Words("frozen"), "POST", "/stock/1001", `{"state": "frozen"}`)
		if again := k.Stock("1001").Epoch; again != epoch {
			t.Errorf("asking twice raised the epoch from %d to %d", epoch, again)
		}
		for _, state := range []string{"on", "paused", "ended"} {
			k.Says(409, storetest.Words("sluice stock recover 1001"), "POST", "/stock/1001", `{"state": "`+state+`"}`)
		}
		k.Says(200, storetest.Words(`"state":"frozen"`), "POST", "/stock/1001/recover", `{"state": "on"}`)
		k.Says(200, storetest.Words(`"on_sale":true`), "POST", "/stock/1001/recover", `{"state": "on", "apply": true}`)
		k.Says(200, storetest.Words("paused"), "POST", "/stock/1001", `{"state": "paused"}`)
		k.Says(200, storetest.Words("paused"), "POST", "/stock/1001/recover", `{"state": "on", "apply": true}`)
		for _, state := range []string{"paused", "ended"} {
			k.Says(200, storetest.Words("frozen"), "POST", "/stock/1001", `{"state": "frozen"}`)
			k.Says(200, storetest.Words(`"state":"`+state), "POST", "/stock/1001/recover",
				`{"state": "`+state+`", "apply": true}`)
		}
		k.Says(400, storetest.Words("state is on, paused"), "POST", "/stock/1001/recover", `{"state": "frozen"}`)
		k.Says(400, storetest.Words("stays frozen"), "POST", "/stock/1001/recover", `{"total": 5, "state": "on"}`)
	})
}

func TestLedgers_EachOpOnAReservationIsDoneOnce(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 0)
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 100}`)
		for _, serial := range []string{"confirm", "release", "refund"} {
			k.Hold("1001", serial, "7", 1, storetest.FarOff)
		}
		k.Says(200, nil, "POST", "/reservations/refund/confirm", "")
		for op, state := range map[string]string{"confirm": "sold", "release": "released", "refund": "refunded"} {
			path := "/reservations/" + op + "/" + op
			k.Says(200, storetest.Words(`"changed":true`, `"state":"`+state+`"`, `"sku":"1001"`, `"serial":"`+op+`"`), "POST",
				path, "")
			for range 3 {
				k.Says(200, storetest.Words(`"changed":false`, `"state":"`+state+`"`), "POST", path+"?sku=1001", "")
			}
		}
		k.Says(200, storetest.Words(`"changed":false`, `"state":"refunded"`), "POST", "/reservations/refund/release", "")
		if s := k.Stock("1001"); s.Held != 0 || s.Sold != 1 {
			t.Errorf("%d held, %d sold; want 0 and 1", s.Held, s.Sold)
		}
	})
}

func TestLedgers_RejectionSaysWhatToDoInstead(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 0)
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 100}`)
		k.Hold("1001", "sold", "7", 1, storetest.FarOff)
		k.Hold("1001", "gone", "7", 1, storetest.FarOff)
		k.Says(200, nil, "POST", "/reservations/sold/confirm", "")
		k.Says(200, nil, "POST", "/reservations/gone/release", "")
		k.Says(409, storetest.Words("sold", "refund it"), "POST", "/reservations/sold/release", "")
		k.Says(409, storetest.Words("cancel the order at the shop"), "POST", "/reservations/gone/confirm", "")
		k.Says(409, storetest.Words("nothing is left to do"), "POST", "/reservations/gone/refund", "")
		k.Says(404, storetest.Words("no such reservation"), "POST", "/reservations/nobody/confirm", "")
		k.Says(404, storetest.Words("sluice stock recover 1001"), "POST", "/reservations/nobody/confirm?sku=1001", "")
		k.Says(404, storetest.Words("no such SKU"), "POST", "/reservations/nobody/confirm?sku=1002", "")
		k.Says(404, storetest.Words("no such reservation"), "GET", "/reservations/nobody?sku=1001", "")
		k.Says(400, storetest.Words("visible ASCII"), "GET", "/reservations/a%20b", "")
		k.Says(400, storetest.Words("no request can name it"), "GET", "/reservations/a?sku=a%20b", "")
		if s := k.Stock("1001"); s.Held != 0 || s.Sold != 1 {
			t.Errorf("%d held, %d sold; want 0 and 1", s.Held, s.Sold)
		}
	})
}

// A release that comes before its order must keep that order out.
func TestLedgers_ReleaseOfANamedSKULeavesATombstone(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 0)
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 1}`)
		before := time.Now()
		k.Says(404, storetest.Words("no such reservation"), "POST", "/reservations/late/release", "")
		k.Says(200, storetest.Words(`"changed":true`, `"released"`), "POST", "/reservations/late/release?sku=1001", "")
		var codes [1]ledger.Code
		if r, ok, err := k.Store.Find(t.Context(), "1001", "late"); err != nil || !ok ||
			r.Deadline < before.Add(ledger.KeepReleased).UnixMilli() {
			t.Errorf("it is forgotten at %d: %v", r.Deadline, err)
		}
		if _, err := k.Store.Reserve(t.Context(), "1001", 0, storetest.LongAgo, storetest.FarOff,
			[]ledger.Item{{Serial: "late", Quantity: 1}}, codes[:]); err != nil || codes[0] != ledger.Released {
			t.Errorf("the late order: %d, %v", codes[0], err)
		}
	})
}

// A frozen ledger may have lost an order that an instance tells later. The shop that cancels it meanwhile is not told
// that there is none: it would not say so again.
func TestLedgers_FrozenLedgerDoesNotSayThatThereIsNoOrder(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 0)
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 1}`)
		k.Says(200, nil, "POST", "/stock/1002", `{"set": 1}`)
		k.Says(200, storetest.Words("frozen"), "POST", "/stock/1002", `{"state": "frozen"}`)
		again := storetest.Words("1002 does not know it", "say it again")
		for _, op := range []string{"confirm", "refund"} {
			path := "/reservations/lost/" + op
			k.Says(502, again, "POST", path, "")
			k.Says(502, again, "POST", path+"?sku=1002", "")
			k.Says(502, again, "POST", path+"?sku=1002&sku=1001", "")
			k.Says(404, storetest.Words("no such reservation"), "POST", path+"?sku=1001", "")
		}
	})
}

// The ledger of a SKU is gone with an order that the shop gives back. An operator makes the ledger again, and takes the
// order: the shop must say it again then.
func TestLedgers_LostLedgerDoesNotSayThatThereIsNoOrder(t *testing.T) {
	server := redistest.Start(t)
	k := storetest.NewAPI(t, onRedis(t, server), 0)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 1}`)
	k.Says(404, storetest.Words("no such reservation"), "POST", "/reservations/sold/refund", "")
	k.Says(200, nil, "POST", "/stock/1002", `{"set": 1}`)
	if err := server.Client.Del(t.Context(), "sluice:shop:{1002}:s", "sluice:shop:{1002}:q").Err(); err != nil {
		t.Fatal(err)
	}
	k.Says(409, storetest.Words("its ledger is gone"), "POST", "/reservations/sold/refund?sku=1002", "")
	k.Says(502, storetest.Words("1002", "say it again"), "POST", "/reservations/sold/refund", "")
}

func TestLedgers_SerialOfTwoSKUsMustBeNamedWithOne(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 0)
	for _, sku := range []string{"1001", "1002"} {
		k.Says(200, nil, "POST", "/stock/"+sku, `{"set": 5}`)
		k.Hold(sku, "twice", "7", 1, storetest.FarOff)
	}
	k.Says(409, storetest.Words("1001", "1002", "sku="), "GET", "/reservations/twice", "")
	k.Says(409, storetest.Words("sku="), "POST", "/reservations/twice/release", "")
	if a, b := k.Stock("1001"), k.Stock("1002"); a.Held != 1 || b.Held != 1 {
		t.Fatal("a release that named no SKU released something")
	}
	k.Says(200, storetest.Words(`"sku":"1002"`, `"held"`), "GET", "/reservations/twice?sku=1002", "")
	k.Says(200, storetest.Words(`"sku":"1002"`, `"released"`), "POST", "/reservations/twice/release?sku=1002", "")
	if a, b := k.Stock("1001"), k.Stock("1002"); a.Held != 1 || b.Held != 0 {
		t.Errorf("%d and %d held, want 1 and 0", a.Held, b.Held)
	}
}

func TestLedgers_OrderOfTheShopIsAdopted(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 0)
		take := func(status int, serial, user string, quantity int, words ...string) {
			k.Says(status, storetest.Words(words...), "POST", "/stock/1001/recover", fmt.Sprintf(
				`{"apply": true, "orders": [{"serial": %q, "user": %q, "quantity": %d}]}`, serial, user, quantity))
		}
		take(404, "a", "", 1, "no such SKU")
		k.Says(200, nil, "POST", "/stock/1001", `{"set": 2}`)
		k.Hold("1001", "held", "7", 1, storetest.FarOff)
		take(200, "held", "8", 1, "held already", "confirm it", `"units":0`)
		take(200, "held", "7", 2, "held already", `"units":0`)
		take(200, "held", "7", 1, `"held":1`, `"units":1`, `"conflicts":[]`)
		take(200, "held", "7", 1, `"sold":1`, `"units":0`)
		k.Says(200, storetest.Words("frozen"), "POST", "/stock/1001", `{"state": "frozen"}`)
		k.Says(200, storetest.Words("sold already", `"state":"frozen"`), "POST", "/stock/1001/recover",
			`{"apply": true, "state": "on", "orders": [{"serial": "held", "user": "8", "quantity": 1}]}`)
		k.Says(200, storetest.Words(`"state":"on"`), "POST", "/stock/1001/recover", `{"apply": true, "state": "on"}`)
		take(200, "lost", "9", 2, `"unknown":1`, `"units":2`, `"left":-1`)
		k.Says(200, storetest.Words(`"user":"9"`, `"quantity":2`, `"sold"`), "GET", "/reservations/lost", "")
		for _, order := range []string{`{}`, `{"serial": "a"}`, `{"serial": "a", "quantity": 0}`, `{"quantity": 1}`,
			`{"serial": "a", "quantity": 1000000001}`, `{"serial": "a", "user": "a\nb", "quantity": 1}`,
			`{"serial": "a", "user": "` + strings.Repeat("u", 257) + `", "quantity": 1}`} {
			k.Says(400, storetest.Words("not valid"), "POST", "/stock/1001/recover", `{"apply": true, "orders": [`+order+`]}`)
		}
		for _, body := range []string{``, `{"orders": 1}`, `{"none": true}`, `{"limit": 2}`, `{"total": -1}`,
			`{"apply": true} x`} {
			k.Says(400, storetest.Words("not valid"), "POST", "/stock/1001/recover", body)
		}
		k.Says(400, storetest.Words("no request can name it"), "POST", "/stock/%7B%7D/recover", `{}`)
		if !strings.Contains(k.Log.String(), "level=ERROR") {
			t.Errorf("nothing alarms that more is sold than there is: %s", k.Log)
		}
	})
}

// The list is what an operator works through by hand: what was due first comes first, and nothing else is in it.
func TestLedgers_ListOfTheUnknownIsWhatMustBeDecided(t *testing.T) {
	everyStore(t, func(t *testing.T, s *ledger.Store) {
		k := storetest.NewAPI(t, s, 0)
		for _, sku := range []string{"1001", "1002"} {
			k.Says(200, nil, "POST", "/stock/"+sku, `{"set": 10}`)
		}
		k.Hold("1002", "second", "7", 1, storetest.LongAgo+2000)
		k.Hold("1001", "first", "7", 1, storetest.LongAgo+1000)
		k.Hold("1001", "third", "7", 1, storetest.LongAgo+3000)
		k.Hold("1001", "waits", "7", 1, storetest.FarOff)
		k.Hold("1001", "sold", "7", 1, storetest.LongAgo)
		k.Says(200, nil, "POST", "/reservations/sold/confirm", "")
		for query, want := range map[string]string{
			"?state=unknown":                  "first second third",
			"?state=unknown&sku=1001":         "first third",
			"?state=unknown&limit=2":          "first second +",
			"?state=held":                     "first second third waits",
			"?state=sold":                     "sold",
			"?state=released":                 "",
			"":                                "first second third waits sold",
			"?sku=1001&state=unknown&limit=1": "first +",
		} {
			var all struct {
				Reservations []admin.Reservation
				More         bool
			}
			if err := json.Unmarshal(k.Ask("GET", "/reservations"+query, "").Body.Bytes(), &all); err != nil {
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
		k.Says(200, storetest.Words(`"deadline":"2001-09-09T01:46:41Z"`, `"overdue":true`, `"state":"held"`), "GET",
			"/reservations/first", "")
		k.Says(200, storetest.Words(`"overdue":false`), "GET", "/reservations/waits", "")
		k.Says(400, storetest.Words("state"), "GET", "/reservations?state=lost", "")
		k.Says(400, storetest.Words("limit"), "GET", "/reservations?limit=10001", "")
		k.Says(404, storetest.Words("no such SKU"), "GET", "/reservations?sku=1003", "")
	})
}

func TestLedgers_EachChangeIsInTheLogWithWhoAndWhat(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 5}`)
	k.Hold("1001", "k-1", "7", 1, storetest.FarOff)
	k.Says(200, nil, "POST", "/reservations/k-1/confirm", "")
	for _, want := range []string{
		`from=127.0.0.1:4711 sku=1001 change="set 5" before=none after="total 5, held 0, sold 0, limit 1, on, `,
		`from=127.0.0.1:4711 sku=1001 serial=k-1 op=confirm before=held after=sold changed=true`,
	} {
		if !strings.Contains(k.Log.String(), want) {
			t.Errorf("no %s in %s", want, k.Log)
		}
	}
	if strings.Contains(k.Log.String(), "user") {
		t.Errorf("a user is in the log: %s", k.Log)
	}
}

func TestLedgers_WhereBothKindsAreKeptNoLedgerIsMadeByMistake(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 1)
	shop := storetest.Shop(t)
	if err := shop.Set(t.Context(), "2002", 4); err != nil {
		t.Fatal(err)
	}
	k.Says(404, storetest.Words("all of them reserve"), "GET", "/stock/2002?kind=layout", "")
	k.Control.Store = stores.NewStore(shop)
	k.Says(409, storetest.Words("--kind ledger", "--kind layout"), "POST", "/stock/2002", `{"set": 9}`)
	k.Says(404, storetest.Words("kind layout"), "GET", "/stock/2002", "")
	k.Says(200, storetest.Words(`"left":4`), "GET", "/stock/2002?kind=layout", "")
	k.Says(200, storetest.Words(`"left":9`), "POST", "/stock/2002?kind=layout", `{"set": 9}`)
	k.Says(200, storetest.Words(`"total":3`), "POST", "/stock/2002?kind=ledger", `{"set": 3}`)
	k.Says(200, storetest.Words(`"total":2`), "POST", "/stock/2002", `{"set": 2}`)
	k.Says(200, storetest.Words(`"left":9`), "GET", "/stock?kind=layout", "")
	k.Says(400, storetest.Words("the shop keeps this stock", "sluice stock set SKU 0"), "POST",
		"/stock/2002?kind=layout", `{"state": "paused"}`)
	k.Says(400, storetest.Words("Idempotency-Key"), "POST", "/stock/2002?kind=layout", `{"add": 1}`, "Idempotency-Key",
		"x")
	k.Control.Ledgers = nil
	k.Says(404, storetest.Words("reserve"), "GET", "/stock/2002?kind=ledger", "")
	k.Says(404, storetest.Words("reserve"), "GET", "/reservations", "")
	k.Says(200, storetest.Words(`"left":9`), "GET", "/stock/2002", "")
}
