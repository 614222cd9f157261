package gateway

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
)

// The ledger is opened beside everything else: what goes wrong there must not leave anybody waiting for it.
func TestOrdersOpen_GateThatCannotBeWiredDoesNotWaitForItsLedger(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	c := storetest.Reserving(mute.Addr().String())
	c.Stock.Redis.Topology = "single"
	c.Upstream.Targets = []string{"gopher://127.0.0.1:1"}
	if _, err := New(c, Options{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Errorf("err = %v", err)
	}
}

func TestOrdersOpen_GateOnARedisThatMayEvictIsNotWired(t *testing.T) {
	t.Parallel()
	c := storetest.Reserving(redistest.Start(t, "--maxmemory-policy", "allkeys-lru").Addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:1"}
	if _, err := New(c, Options{}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "noeviction") {
		t.Errorf("err = %v", err)
	}
}

// An operator who gives the second sale of a SKU a stock is told that it changes nothing.
func TestOrdersOpen_SaleWhoseSKUHasALedgerTellsThatItsStockIsNotAdded(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	begin := func(log *testkit.Log, stock ...int) *Gateway {
		c := storetest.Reserving(addr)
		c.Upstream.Targets = []string{"http://127.0.0.1:1"}
		for _, units := range stock {
			c.Sales = append(c.Sales, config.Sale{Name: "second", SKUs: []string{"1001"}, Starts: time.Now().Add(time.Hour),
				Ends: time.Now().Add(2 * time.Hour), BeforeStart: "reject", Stock: map[string]int{"1001": units}})
		}
		g, err := New(c, Options{}, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
	if _, err := begin(&testkit.Log{}).Orders().Store.SetTotal(context.Background(), "1001", 3, 0); err != nil {
		t.Fatal(err)
	}
	const line = "has a ledger, with another total"
	same, other := &testkit.Log{}, &testkit.Log{}
	g := begin(same, 3)
	testkit.Eventually(t, "its hours are told", func() bool {
		s, ok, err := g.Orders().Store.ReadStock(context.Background(), "1001")
		return ok && err == nil && s.Opens != 0
	})
	if strings.Contains(same.String(), line) {
		t.Errorf("the same total: %s", same)
	}
	reloaded := *g.running.Load()
	reloaded.Sales = slices.Clone(reloaded.Sales)
	reloaded.Sales[0].Stock = map[string]int{"1001": 20}
	if err := g.Apply(&reloaded); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the log of the reload says so", func() bool {
		return strings.Contains(same.String(), "stock=20 total=3 sold=0")
	})
	limited := reloaded
	limited.Stock.Reserve.MaxPerUser = 7
	if err := g.Apply(&limited); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the log says that the limit is for new ledgers", func() bool {
		return strings.Contains(same.String(), `max_per_user=7 limit=0 fix="sluice stock set 1001 3 --limit 7"`)
	})
	begin(other, 5)
	testkit.Eventually(t, "the log says so", func() bool { return strings.Contains(other.String(), line) })
	if text := other.String(); !strings.Contains(text, "stock=5 total=3 sold=0") {
		t.Error(text)
	}
}

// onSale starts a gateway on the Redis at addr, with a sale of 1001 that has begun and ends at ends.
func onSale(t *testing.T, addr string, ends time.Time, log *testkit.Log) *Gateway {
	c := storetest.Reserving(addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:1"}
	c.Sales = []config.Sale{{Name: "s", SKUs: []string{"1001"}, Starts: ends.Add(-24 * time.Hour), Ends: ends,
		BeforeStart: "reject"}}
	g, err := New(c, Options{}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// closesAt waits until the ledger of 1001 is on, and closes at a time.
func closesAt(t *testing.T, g *Gateway, at time.Time) {
	t.Helper()
	testkit.Eventually(t, "the ledger closes at "+at.String(), func() bool {
		s, ok, err := g.Orders().Store.ReadStock(context.Background(), "1001")
		return ok && err == nil && s.State == ledger.On && s.Closes == at.UnixMilli()
	})
}

// extended is the configuration of g with another end of its sale.
func extended(g *Gateway, ends time.Time) *config.Config {
	c := *g.running.Load()
	c.Sales = slices.Clone(c.Sales)
	c.Sales[0].Ends = ends
	return &c
}

// Redis comes back with the hours of before the last reload. The sale must not end at its former end.
func TestOrdersOpen_HoursThatRedisHasLostAreToldAgain(t *testing.T) {
	t.Parallel()
	redis, first := redistest.Start(t), time.Now().Add(time.Hour).Truncate(time.Second)
	g := onSale(t, redis.Addr, first, &testkit.Log{})
	defer g.Close()
	testkit.Must[ledger.Stock](t)(g.Orders().Store.SetTotal(t.Context(), "1001", 3, 0))
	closesAt(t, g, first)
	if err := redis.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(extended(g, first.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	closesAt(t, g, first.Add(time.Hour))
	redis.Kill()
	redis.Restart()
	closesAt(t, g, first.Add(time.Hour))
}

// Another instance has told the ledger the hours of another file. The two do not overwrite each other for ever: the
// first one says so, and tells its own again when they change, and at no other reload.
func TestOrdersOpen_OtherHoursOfTheLedgerAreReported(t *testing.T) {
	t.Parallel()
	redis, ends, log := redistest.Start(t), time.Now().Add(time.Hour).Truncate(time.Second), &testkit.Log{}
	g := onSale(t, redis.Addr, ends, log)
	defer g.Close()
	testkit.Must[ledger.Stock](t)(g.Orders().Store.SetTotal(t.Context(), "1001", 3, 0))
	closesAt(t, g, ends)
	older := onSale(t, redis.Addr, ends.Add(-time.Minute), &testkit.Log{})
	closesAt(t, older, ends.Add(-time.Minute))
	older.Close()
	testkit.Eventually(t, "the sales are degraded", func() bool {
		detail, health := g.salesCheck()
		return health == admin.Degraded && strings.Contains(detail, ends.UTC().Format(time.RFC3339)) &&
			strings.Contains(detail, `"1001"`)
	})
	closesAt(t, g, ends.Add(-time.Minute))
	if n := strings.Count(log.String(), "another instance has told it other hours"); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	other := *g.running.Load() // the sale is the same, and something else is not
	other.Limits.Window.Max++
	if err := g.Apply(&other); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * scheduleEvery) // what must not come has no condition to wait for
	closesAt(t, g, ends.Add(-time.Minute))
	if err := g.Apply(extended(g, ends.Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	closesAt(t, g, ends.Add(time.Minute))
	testkit.Eventually(t, "the sales are healthy again", func() bool {
		_, health := g.salesCheck()
		return health == admin.Healthy
	})
}

// Redis' clock is a day ahead when an instance starts. By that clock the sale of tomorrow is next, and its hours would
// close the ledger today.
func TestOrdersOpen_HoursAreNotToldByAClockThatIsWrong(t *testing.T) {
	t.Parallel()
	redis, turn := redistest.StartWithClock(t)
	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	begin := func(sales ...config.Sale) *Gateway {
		c := storetest.Reserving(redis.Addr)
		c.Upstream.Targets, c.Sales = []string{"http://127.0.0.1:1"}, sales
		return gatewayOf(t, c)
	}
	testkit.Must[ledger.Stock](t)(begin().Orders().Store.SetTotal(t.Context(), "1001", 3, 0))
	turn(24 * time.Hour)
	var sales []config.Sale
	for name, later := range map[string]time.Duration{"today": 0, "tomorrow": 24 * time.Hour} {
		sales = append(sales, config.Sale{Name: name, SKUs: []string{"1001"}, Starts: ends.Add(later - 2*time.Hour),
			Ends: ends.Add(later), BeforeStart: "reject"})
	}
	g := begin(sales...)
	testkit.Eventually(t, "orders are open", func() bool { return g.Orders().Reserver() != nil })
	time.Sleep(4 * scheduleEvery) // what must not come has no condition to wait for
	if s, _, err := g.Orders().Store.ReadStock(t.Context(), "1001"); err != nil || s.Opens != 0 || s.Closes != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	turn(0)
	closesAt(t, g, ends)
}

// A sale that has begun is extended while the clocks differ. Its ledger must not close at the former end.
func TestOrdersOpen_HoursOfASaleThatHasBegunAreToldWhileTheClocksDiffer(t *testing.T) {
	t.Parallel()
	redis, turn := redistest.StartWithClock(t)
	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	g := onSale(t, redis.Addr, ends, &testkit.Log{})
	defer g.Close()
	testkit.Must[ledger.Stock](t)(g.Orders().Store.SetTotal(t.Context(), "1001", 3, 0))
	closesAt(t, g, ends)
	turn(3 * time.Second)
	testkit.Eventually(t, "the clocks differ", func() bool { _, wrong := g.schedule.Skew(); return wrong })
	if err := g.Apply(extended(g, ends.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	closesAt(t, g, ends.Add(time.Hour))
}
