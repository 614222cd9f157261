package stockgate

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// setUp runs commands of Redis' own, as the shop would; a tilde in a word is a space.
func setUp(t *testing.T, server *redistest.Server, commands ...string) {
	t.Helper()
	for _, c := range commands {
		var args []any
		for _, word := range strings.Split(c, " ") {
			args = append(args, strings.ReplaceAll(word, "~", " "))
		}
		testkit.Check(t, server.Client.Do(t.Context(), args...).Err())
	}
}

func TestFault_KeysThatHoldSomethingElseAreFaultsAndNeverStock(t *testing.T) {
	sold := layout.Options{Type: layout.HashSold, Key: "$sku", TotalField: "total", SoldField: "sold"}
	left := layout.Options{Type: layout.HashLeft, Key: "$sku", LeftField: "left"}
	counter := layout.Options{Type: layout.Counter, Key: "$sku"}
	status := layout.Options{Type: layout.Counter, Key: "$sku", StatusKey: "status:$sku", StatusOpen: []string{"1"}}
	for _, c := range []struct {
		layout layout.Options
		set    string
		names  string // what the error must name
	}{
		{counter, "SET x 1.5", `"1.5"`},
		{counter, "SET x 5~", `"5 "`},
		{counter, "SET x +5", `"+5"`},
		{counter, "SET x 007", `"007"`},
		{counter, "SET x 9223372036854775808", `"9223372036854775808"`},
		{counter, "SET x many", `"many"`},
		{counter, "HSET x total 1", "WRONGTYPE"},
		{left, "SET x 5", "WRONGTYPE"},
		{left, "HSET x other 5", "none of the layout's fields"},
		{left, "HSET x left five", `field "left"`},
		{sold, "HSET x total 5", `no field "sold"`},
		{sold, "HSET x sold 5", `no field "total"`},
		{sold, "HSET x total 5 sold x", `field "sold"`},
		{sold, "HSET x total -9223372036854775808 sold 1", "64-bit"},
		{status, "HSET status:x on 1", "WRONGTYPE"},
	} {
		t.Run(c.layout.Type+" "+c.set, func(t *testing.T) {
			server := redistest.Start(t)
			s := dial(t, server, c.layout)
			setUp(t, server, c.set)
			if c.layout.StatusKey != "" {
				setUp(t, server, "SET x 5")
			}
			r := readOne(t, s, "x")
			if r.Fault == nil || !strings.Contains(r.Fault.Error(), c.names) || !strings.Contains(r.Fault.Error(), `x"`) {
				t.Fatalf("read %+v, want a fault that names the key and %s", r, c.names)
			}
			o := options()
			g := open(t, o, s)
			if got := g.Enter(o.Now(), []byte("x"), nil); got != reject.StockError {
				t.Fatalf("enter: %v", got)
			}
		})
	}
}

// Some shops clear the stock when they set the flag.
func TestFault_FlagClosesASKUWhoseStockIsNone(t *testing.T) {
	for _, c := range []struct {
		layout layout.Options
		set    string
	}{
		{layout.Options{Type: layout.Counter, Key: "$sku"}, "SET x none"},
		{layout.Options{Type: layout.HashLeft, Key: "$sku", LeftField: "left"}, "SET x 5"},
		{layout.Options{Type: layout.HashSold, Key: "all", TotalField: "$sku", SoldField: "$(sku)_sold"}, "HSET all x 5"},
	} {
		t.Run(c.layout.Type, func(t *testing.T) {
			server := redistest.Start(t)
			c.layout.SoldOutFlag = "over:$sku"
			s := dial(t, server, c.layout)
			setUp(t, server, c.set, "SET over:x 1")
			o := options()
			o.AllowOnError = true
			if got := open(t, o, s).Enter(o.Now(), []byte("x"), nil); got != reject.SoldOut {
				t.Errorf("enter: %v, want sold out", got)
			}
		})
	}
}

func TestFault_OneFaultyKeySpoilsNoOther(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "$sku"})
	setUp(t, server, "HSET bad a 1", "SET good 5")
	out := make([]layout.Reading, 3)
	testkit.Check(t, s.Read(t.Context(), []string{"bad", "good", "none"}, out))
	if out[0].Fault == nil || out[1] != reading(5) || out[2].Exists || out[2].Fault != nil {
		t.Fatalf("read %+v", out)
	}
}

func TestFault_StatusAndFlagCloseASKU(t *testing.T) {
	field := layout.Options{
		Type: layout.HashSold, Key: "$sku", TotalField: "goods_count", SoldField: "goods_bought_num",
		StatusField: "goods_status", StatusOpen: []string{"1", "open"},
	}
	key := layout.Options{
		Type: layout.Counter, Key: "$sku", StatusKey: "on:$sku", StatusOpen: []string{"1"},
		SoldOutFlag: "MiaoshaKey:go$sku", SoldOutAt: -1, Prefix: "p:",
	}
	for _, c := range []struct {
		layout layout.Options
		set    []string
		want   reject.Reason
	}{
		{field, []string{"HSET x goods_count 5 goods_bought_num 2 goods_status 1"}, reject.Admitted},
		{field, []string{"HSET x goods_count 5 goods_bought_num 2 goods_status open"}, reject.Admitted},
		{field, []string{"HSET x goods_count 5 goods_bought_num 2 goods_status 0"}, reject.Paused},
		{field, []string{"HSET x goods_count 5 goods_bought_num 2"}, reject.Paused},
		{field, []string{"HSET x goods_count 5 goods_bought_num 5 goods_status 0"}, reject.SoldOut},
		{key, []string{"SET p:x 5", "SET p:on:x 1"}, reject.Admitted},
		{key, []string{"SET p:x 0", "SET p:on:x 1"}, reject.Admitted},
		{key, []string{"SET p:x -1", "SET p:on:x 1"}, reject.SoldOut},
		{key, []string{"SET p:x 5", "SET p:on:x 2"}, reject.Paused},
		{key, []string{"SET p:x 5"}, reject.Paused},
		{key, []string{"SET p:x 5", "SET p:on:x 1", "SET p:MiaoshaKey:gox true"}, reject.SoldOut},
		{key, []string{"SET p:on:x 1", "SET p:MiaoshaKey:gox true"}, reject.SoldOut},
		{key, []string{"SET p:on:x 1"}, reject.UnknownSKU},
		{key, []string{"SET x 5", "SET on:x 1"}, reject.UnknownSKU},
	} {
		t.Run(fmt.Sprint(c.set), func(t *testing.T) {
			server := redistest.Start(t)
			s := dial(t, server, c.layout)
			setUp(t, server, c.set...)
			o := options()
			g := open(t, o, s)
			if got := g.Enter(o.Now(), []byte("x"), nil); got != c.want {
				t.Fatalf("enter: %v, want %v", got, c.want)
			}
		})
	}
}

func TestFault_ListShowsFaultyKeysAndSkipsForeignOnes(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "stock:$sku:v1"})
	setUp(t, server, "SET stock:a:v1 5", "SET stock:b:v1 x", "SET stock:c:v2 5", "SET stock::v1 5")
	rows := testkit.Must[[]Stock](t)(s.List(t.Context(), 10))
	if len(rows) != 2 || rows[0].SKU != "a" || rows[0].Left != 5 || rows[1].SKU != "b" || rows[1].Fault == nil {
		t.Fatalf("list %+v", rows)
	}
}

func TestFault_SetNeverReplacesAKeyOfAnotherType(t *testing.T) {
	for kind, command := range map[string]string{"counter": "HSET 1001 total 5", "hash_left": "SET 1001 5"} {
		server := redistest.Start(t)
		o := layouts()[kind]
		o.Key = "$sku"
		s := dial(t, server, o)
		setUp(t, server, command)
		before := server.Client.Dump(t.Context(), "1001").Val()
		if err := s.Set(t.Context(), "1001", 7); err == nil {
			t.Errorf("%s: set replaced what %s had written", kind, command)
		}
		if after := server.Client.Dump(t.Context(), "1001").Val(); after != before || after == "" {
			t.Errorf("%s: the key changed", kind)
		}
	}
}

func TestFault_SettingACounterKeepsItsTimeToLive(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	setUp(t, server, "SET seckill:{x}:stock 5 EX 1000")
	testkit.Check(t, s.Set(t.Context(), "x", 7))
	if ttl := server.Client.TTL(t.Context(), "seckill:{x}:stock").Val(); ttl <= 0 {
		t.Fatalf("time to live %v", ttl)
	}
}

func TestFault_EachFaultyKeyIsNamedOnceAndOnlySoMany(t *testing.T) {
	var log bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	bad := layout.Reading{Fault: fmt.Errorf("not a number")}
	g, e := learnt(t, o, 0, []byte("1001"), bad)
	lines := func() int { return strings.Count(log.String(), "\n") }
	g.poller.publishReading(1, e, bad)
	if !strings.Contains(log.String(), "sku=1001") || lines() != 1 {
		t.Fatalf("after two bad readings:\n%s", &log)
	}
	g.poller.publishReading(2, e, reading(1))
	g.poller.publishReading(3, e, bad)
	if lines() != 2 {
		t.Fatalf("bad again after it was whole:\n%s", &log)
	}
	for i := range 1000 {
		g.poller.publishReading(4, addEntry(g.table, 0, name(i)), bad)
	}
	if lines() != maxNamed+2 { // one for 1001's second time, one for "no further ones"
		t.Fatalf("%d lines for 1,001 faulty keys", lines())
	}
}

// A Redis that rejects the login, since its password is another one, says nothing of any SKU: least of all that
// there is none.
func TestFault_RedisThatRejectsTheLoginSaysNothingOfAnySKU(t *testing.T) {
	all := layouts()
	all["list"] = layout.Options{Type: layout.List, Key: "units:$sku"}
	for name, o := range all {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			setUp(t, server, "ACL SETUSER app on >word allkeys allcommands")
			l, err := layout.New(o)
			testkit.Check(t, err)
			s, err := NewRedis(RedisOptions{
				Addresses: []string{server.Addr}, PoolSize: 4, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
				BreakerErrors: 1000, BreakerPause: time.Second, Username: "app", Password: func() string { return "word" },
			}, l)
			testkit.Check(t, err)
			t.Cleanup(func() { s.Close() })
			testkit.Check(t, s.Read(t.Context(), []string{"1001"}, make([]layout.Reading, 1)))
			setUp(t, server, "ACL SETUSER app resetpass >another", "CLIENT KILL USER app")
			testkit.Eventually(t, "the end of the old connections is noticed", func() bool {
				err := s.Read(t.Context(), []string{"1001"}, make([]layout.Reading, 1))
				if err == nil {
					t.Fatal("a Redis that rejects the login has answered")
				}
				return strings.Contains(err.Error(), "WRONGPASS")
			})
			for range 5 {
				out := make([]layout.Reading, 1)
				if err := s.Read(t.Context(), []string{"1001"}, out); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
					t.Errorf("read %+v, %v", out, err)
				}
			}
		})
	}
}
