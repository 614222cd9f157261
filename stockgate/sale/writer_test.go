package sale

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// books are a shop with lists of goods and a status, and the schedule of its sales.
type books struct {
	*testing.T
	server *redistest.Server
	shop   *stockgate.Redis
	plan   Writes
}

func openBooks(t *testing.T, plan Writes) *books { return booksOn(t, redistest.Start(t), plan) }

func booksOn(t *testing.T, s *redistest.Server, plan Writes) *books {
	l, err := layout.New(layout.Options{Type: layout.List, Key: "goods:$sku", StatusKey: "status:$sku",
		StatusOpen: []string{"1"}, StatusClosed: "0"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := stockgate.NewRedis(reach(s), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &books{t, s, r, plan}
}

func reach(s *redistest.Server) redisconn.Options {
	return redisconn.Options{Addresses: []string{s.Addr}, PoolSize: 2, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: 20, BreakerPause: 50 * time.Millisecond}
}

// run starts an instance with these sales.
func (b *books) run(sales ...Sale) (*Schedule, *Writer) {
	b.Helper()
	start := time.Now()
	link, err := redisconn.New(reach(b.server))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = link.Close() })
	schedule, err := New(Options{Name: "shop", Link: link,
		Now: func() int64 { return int64(time.Since(start)) }}, sales)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(schedule.Close)
	w := NewWriter(schedule, b.shop, b.plan, slog.New(slog.DiscardHandler))
	b.Cleanup(w.Close)
	return schedule, w
}

func (b *books) status() string { return b.server.Client.Get(b.Context(), "status:x").Val() }
func (b *books) units() int64   { return b.server.Client.LLen(b.Context(), "goods:x").Val() }

func (b *books) soon(what string, is func() bool) {
	b.Helper()
	testkit.Eventually(b, what, is)
}

// looks waits until the writer has looked a few times more.
func looks() { time.Sleep(3 * lookEvery) } // what is not written has no effect to wait for

func selling(name string, starts, ends time.Duration) Sale {
	now := time.Now().Truncate(time.Second)
	return Sale{Name: name, SKUs: []string{"x"}, Starts: now.Add(starts), Ends: now.Add(ends)}
}

const day = 24 * time.Hour

func TestStatus_FollowsTheSaleThatIsOn(t *testing.T) {
	b := openBooks(t, Writes{Status: true})
	today, tomorrow := selling("today", -time.Hour, time.Hour), selling("tomorrow", day, day+time.Hour)
	schedule, w := b.run(today, tomorrow)
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	if err := schedule.Set(t.Context(), "tomorrow", Ended); err != nil {
		t.Fatal(err)
	}
	if looks(); b.status() != "1" {
		t.Errorf("a sale of tomorrow is cancelled, and the status is %q", b.status())
	}
	w.Close()
	_, w = b.run(selling("today", -time.Hour, -time.Minute))
	b.soon("it is over", func() bool { return b.status() == "0" })
	w.Close()
	schedule, _ = b.run(today) // it is extended, by a restart
	b.soon("it is on sale again", func() bool { return b.status() == "1" })
	schedule.Use([]Sale{selling("today", time.Hour, 2*time.Hour)}, false)
	b.soon("it is postponed", func() bool { return b.status() == "0" })
}

// Redis comes back with the status of before the start. Without another write every order would be paused until the
// end of the sale. What the shop has written itself stays.
func TestStatus_ThatRedisHasLostIsWrittenAgain(t *testing.T) {
	b := openBooks(t, Writes{Status: true})
	b.server.Client.Set(t.Context(), "status:x", "0", 0) // by the shop
	if err := b.server.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	b.run(selling("today", -time.Hour, time.Hour))
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	b.server.Kill()
	b.server.Restart()
	b.soon("it is on sale again", func() bool { return b.status() == "1" })
	b.server.Client.Set(t.Context(), "status:x", "0", 0)
	calls := b.server.Calls("evalsha")
	b.soon("the writer has verified it", func() bool { return b.server.Calls("evalsha") > calls })
	if got := b.status(); got != "0" {
		t.Errorf("the shop has closed it, and the status is %q", got)
	}
}

// Two instances run with different files. Each writes its status once, they do not overwrite each other for ever, and
// who finds another status says so.
func TestStatus_OfAnotherInstanceStaysAndIsReported(t *testing.T) {
	b := openBooks(t, Writes{Status: true})
	_, w := b.run(selling("today", -time.Hour, time.Hour))
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	b.run(selling("today", -time.Hour, -time.Minute))
	b.soon("it is over", func() bool { return b.status() == "0" })
	b.soon("the other says so", func() bool { return strings.Contains(w.OtherStatus(), `"x" is not on sale, and by this`) })
	if got := b.status(); got != "0" {
		t.Errorf("it was written again, and the status is %q", got)
	}
}

// An instance closes no sale that another keeps open, where its file has a later start, or its clock is wrong.
func TestStatus_InstanceThatHasWrittenNoneClosesNone(t *testing.T) {
	b := openBooks(t, Writes{Status: true})
	today := selling("today", -time.Hour, time.Hour)
	early, w := b.run(selling("today", time.Hour, 2*time.Hour))
	var asked atomic.Int64 // before each look of early at a SKU that is on sale by its file
	w.Use(Writes{Status: true, Ended: func(context.Context, string) (ended, known bool) {
		asked.Add(1)
		return false, true
	}})
	b.run(today)
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	b.run(selling("today", time.Hour, 2*time.Hour))
	wrong := instance(t, b.server, -2*time.Hour, today)
	if _, differ := wrong.Skew(); !differ {
		t.Fatal("the clocks agree")
	}
	behind := NewWriter(wrong, b.shop, b.plan, slog.New(slog.DiscardHandler))
	defer behind.Close()
	if looks(); b.status() != "1" {
		t.Errorf("the status is %q", b.status())
	}
	early.Use([]Sale{today}, false)
	b.soon("early keeps it open, too", func() bool { return asked.Load() > 1 })
	early.Use([]Sale{selling("today", time.Hour, 2*time.Hour)}, false)
	b.soon("it is postponed where it was open", func() bool { return b.status() == "0" })
}

// All instances are started anew with a later start. The status that the last of them has opened is closed once none
// has kept it open for a while.
func TestStatus_SaleThatIsPostponedByRestartsIsClosed(t *testing.T) {
	b := openBooks(t, Writes{Status: true})
	_, w := b.run(selling("today", -time.Hour, time.Hour))
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	w.Close()
	marks := b.server.Client.Keys(t.Context(), "*:status").Val()
	if len(marks) != 1 {
		t.Fatalf("marks: %q", marks)
	}
	text := strings.Fields(b.server.Client.Get(t.Context(), marks[0]).Val())
	said := testkit.Must[int](t)(strconv.Atoi(text[len(text)-1]))
	text[len(text)-1] = strconv.Itoa(said - int(keptOpen.Seconds()))
	b.server.Client.Set(t.Context(), marks[0], strings.Join(text, " "), 0)
	b.run(selling("today", time.Hour, 2*time.Hour))
	b.soon("it is closed", func() bool { return b.status() == "0" })
}

// While the clocks differ no sale begins, and one that has begun goes on: it can be paused, and it ends.
func TestStatus_FollowsASaleThatHasBegunWhileTheClocksDiffer(t *testing.T) {
	s, turn := redistest.StartWithClock(t)
	b := booksOn(t, s, Writes{Status: true})
	schedule, _ := b.run(selling("today", -time.Hour, time.Hour))
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	turn(3 * time.Second)
	b.soon("the clocks differ", func() bool { _, wrong := schedule.Skew(); return wrong })
	if err := schedule.Set(t.Context(), "today", Paused); err != nil {
		t.Fatal(err)
	}
	b.soon("it is paused", func() bool { return b.status() == "0" })
}

// Two SKUs share the status of the shop. It is closed when the ledgers of both have ended.
func TestStatus_OfAllSKUsFollowsTheLastOne(t *testing.T) {
	l, err := layout.New(layout.Options{Type: layout.List, Key: "goods:$sku", StatusKey: "status:x",
		StatusOpen: []string{"1"}, StatusClosed: "0"})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Int64
	b := openBooks(t, Writes{Status: true, Ended: func(_ context.Context, sku string) (bool, bool) {
		return sku == "x" && ended.Load() > 0 || ended.Load() > 1, true
	}})
	b.shop.UseLayout(l)
	s := selling("today", -time.Hour, time.Hour)
	s.SKUs = []string{"x", "y"}
	_, w := b.run(s)
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	ended.Store(1)
	if looks(); b.status() != "1" || w.OtherStatus() != "" {
		t.Errorf("one has ended, and the status is %q; %s", b.status(), w.OtherStatus())
	}
	ended.Store(2)
	b.soon("both have ended", func() bool { return b.status() == "0" })
}

// Today's sale ends while the clocks differ, and the SKU has another sale tomorrow.
func TestStatus_SaleEndsWhileTheClocksDiffer(t *testing.T) {
	s, turn := redistest.StartWithClock(t)
	b := booksOn(t, s, Writes{Status: true})
	schedule, _ := b.run(selling("today", -time.Hour, time.Hour), selling("tomorrow", day, day+time.Hour))
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	turn(3 * time.Second)
	b.soon("the clocks differ", func() bool { _, wrong := schedule.Skew(); return wrong })
	schedule.Use([]Sale{selling("today", -time.Hour, -time.Second), selling("tomorrow", day, day+time.Hour)}, false)
	b.soon("it is over", func() bool { return b.status() == "0" })
}

// Another sale follows at once while the clocks differ. It is paused here, and may have begun on other instances.
func TestStatus_OfASaleThatIsInDoubtStays(t *testing.T) {
	s, turn := redistest.StartWithClock(t)
	b := booksOn(t, s, Writes{Status: true})
	schedule, _ := b.run(selling("today", -time.Hour, time.Hour), selling("tonight", day, day+time.Hour))
	b.soon("it is on sale", func() bool { return b.status() == "1" })
	turn(3 * time.Second)
	b.soon("the clocks differ", func() bool { _, wrong := schedule.Skew(); return wrong })
	schedule.Use([]Sale{selling("today", -time.Hour, -time.Second), selling("tonight", -time.Second, time.Hour)}, false)
	if p, _ := schedule.Phase([]byte("x")); p.Sale != "tonight" || p.State != Paused {
		t.Fatalf("%+v", p)
	}
	if looks(); b.status() != "1" {
		t.Errorf("the status is %q", b.status())
	}
}

func TestStock_IsWrittenOnceForASaleWhateverItsHoursBecome(t *testing.T) {
	b := openBooks(t, Writes{Stock: map[string]map[string]int{"today": {"x": 5}, "tomorrow": {"x": 7}}})
	schedule, w := b.run(selling("today", time.Hour, 2*time.Hour), selling("tomorrow", day, day+time.Hour))
	b.soon("it is filled", func() bool { return b.units() == 5 })
	b.server.Client.Del(t.Context(), "goods:x") // all are sold
	schedule.Use([]Sale{selling("today", -time.Hour, time.Hour), selling("tomorrow", day, day+time.Hour)}, false)
	looks()
	schedule.Use([]Sale{selling("today", 3*time.Hour, 4*time.Hour), selling("tomorrow", day, day+time.Hour)}, false)
	looks()
	w.Close()
	b.run(selling("today", 3*time.Hour, 4*time.Hour), selling("tomorrow", day, day+time.Hour))
	if looks(); b.units() != 0 {
		t.Errorf("%d units were written again", b.units())
	}
}

func TestWriter_FollowsTheLayout(t *testing.T) {
	l, err := layout.New(layout.Options{Type: layout.List, Key: "new:$sku", StatusKey: "open:$sku",
		StatusOpen: []string{"1"}, StatusClosed: "0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("stock", func(t *testing.T) {
		b := openBooks(t, Writes{Stock: map[string]map[string]int{"tomorrow": {"x": 5}}})
		b.run(selling("tomorrow", day, day+time.Hour))
		b.soon("it is filled", func() bool { return b.units() == 5 })
		b.shop.UseLayout(l)
		b.soon("the new key is filled", func() bool { return b.server.Client.LLen(t.Context(), "new:x").Val() == 5 })
	})
	t.Run("status", func(t *testing.T) {
		b := openBooks(t, Writes{Status: true})
		b.run(selling("today", -time.Hour, time.Hour))
		b.soon("it is on sale", func() bool { return b.status() == "1" })
		b.shop.UseLayout(l)
		b.soon("the new key says so", func() bool { return b.server.Client.Get(t.Context(), "open:x").Val() == "1" })
	})
}

func TestStock_OfASaleThatHasBegunIsNeverWritten(t *testing.T) {
	b := openBooks(t, Writes{Stock: map[string]map[string]int{"today": {"x": 5}}})
	schedule, _ := b.run(selling("today", -time.Hour, time.Hour)) // the shop's list is sold out already
	b.soon("it is marked", func() bool {
		return len(b.server.Client.Keys(t.Context(), "*:filled:x").Val()) == 1
	})
	schedule.Use([]Sale{selling("today", time.Hour, 2*time.Hour)}, false)
	if looks(); b.units() != 0 {
		t.Errorf("%d units of a sale that was postponed", b.units())
	}
}

func TestStock_OfASaleThatIsPausedBeforeItsStartIsWritten(t *testing.T) {
	b := openBooks(t, Writes{})
	early := selling("today", time.Hour, 2*time.Hour)
	early.Pass = true
	schedule, w := b.run(early)
	if err := schedule.Set(t.Context(), "today", Paused); err != nil {
		t.Fatal(err)
	}
	w.Use(Writes{Stock: map[string]map[string]int{"today": {"x": 5}}})
	b.soon("it is filled", func() bool { return b.units() == 5 })
}

// A ledger that ends before its sale, since every unit is paid, closes the status; one that is opened again opens it.
// While it is not known whether it has ended, the status stays as it is.
func TestWriter_StatusFollowsALedgerThatEndsBeforeItsSale(t *testing.T) {
	var known, ended atomic.Bool
	var asked atomic.Int64
	b := openBooks(t, Writes{Status: true, Ended: func(context.Context, string) (bool, bool) {
		asked.Add(1)
		return ended.Load(), known.Load()
	}})
	b.server.Client.Set(t.Context(), "status:x", "0", 0) // by an instance before this one
	b.run(Sale{Name: "s", SKUs: []string{"x"}, Starts: time.Now().Add(-time.Hour), Ends: time.Now().Add(time.Hour)})
	b.soon("it has looked twice", func() bool { return asked.Load() > 1 })
	if got := b.status(); got != "0" {
		t.Errorf("nothing is known of the ledger, and the status became %q", got)
	}
	known.Store(true)
	b.soon("it is open", func() bool { return b.status() == "1" })
	ended.Store(true)
	b.soon("it is closed", func() bool { return b.status() == "0" })
	ended.Store(false)
	b.soon("it is open again", func() bool { return b.status() == "1" })
}
