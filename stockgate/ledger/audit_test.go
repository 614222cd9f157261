package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// audited audits 1001, and fails if there is nothing.
func audited(t testing.TB, s Calls) Audit {
	t.Helper()
	a, ok, err := auditOf(context.Background(), s, "1001")
	testkit.Check(t, err)
	if !ok {
		t.Fatal("nothing to audit")
	}
	return a
}

func TestAudit_EachBrokenInvariantIsFound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for command, kinds := range map[string]string{
		"hset sluice:shop:{1001}:s limit 9":                                            "",
		"hset sluice:shop:{1001}:s held -1":                                            "numbers",
		"hset sluice:shop:{1001}:s sold many":                                          "numbers",
		"hdel sluice:shop:{1001}:s ver":                                                "numbers",
		"hset sluice:shop:{1001}:s state open":                                         "state",
		"hset sluice:shop:{1001}:s total 1":                                            "over_total",
		"hset sluice:shop:{1001}:s held 2":                                             "held users",
		"hset sluice:shop:{1001}:s held 0":                                             "held users",
		"hset sluice:shop:{1001}:s sold 2":                                             "sold users",
		"hset sluice:shop:{1001}:u ann 1":                                              "users",
		"hset sluice:shop:{1001}:u zoe 1":                                              "users",
		"hset sluice:shop:{1001}:u zoe 0":                                              "users",
		"hset sluice:shop:{1001}:u zoe many":                                           "users",
		"del sluice:shop:{1001}:u":                                                     "users",
		"zrem sluice:shop:{1001}:x a":                                                  "holds",
		"zadd sluice:shop:{1001}:x 1 b":                                                "holds",
		"zadd sluice:shop:{1001}:x 1 ghost":                                            "holds",
		"hset sluice:shop:{1001}:r a H|2|1000|ann":                                     "held",
		"hset sluice:shop:{1001}:r b C|2|0|ann":                                        "sold",
		"hset sluice:shop:{1001}:r new H|1|1000|zoe":                                   "held holds",
		"hset sluice:shop:{1001}:r b rubbish":                                          "records sold",
		"hdel sluice:shop:{1001}:r a":                                                  "held holds",
		"del sluice:shop:{1001}:r":                                                     "held sold holds",
		"del sluice:shop:{1001}:s":                                                     "keys",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:x":            "keys",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:s":            "keys",
		"unlink sluice:shop:{1001}:u sluice:shop:{1001}:x sluice:shop:{1001}:r ghosts": "held sold users",
	} {
		t.Run(command, func(t *testing.T) {
			testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
			r := storeOn(t, server, 4)
			finishOne(t, r, Release, "a tombstone")
			if a := audited(t, r); len(a.Broken) != 0 || !a.Whole {
				t.Fatalf("whole: %+v", a)
			}
			testkit.Check(t, server.Client.Do(t.Context(), args(command)...).Err())
			if a := audited(t, r); strings.Join(a.Broken, " ") != kinds || !a.Whole {
				t.Errorf("broken: %q, want %q in %+v", a.Broken, kinds, a)
			}
		})
	}
}

func TestAudit_BrokenInvariantIsFoundAmongThousands(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	fillUp(t, r, 3_000)
	a := audited(t, r)
	if len(a.Broken) != 0 || !a.Whole || a.HeldUnits != 2_001 || a.SoldUnits != 1_001 || a.Holds != 2_001 ||
		a.Due != 2_001 {
		t.Fatalf("whole: %+v", a)
	}
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:r", "1501", "H|2|1000|").Err())
	if a := audited(t, r); strings.Join(a.Broken, " ") != "held" {
		t.Errorf("broken: %+v", a)
	}
}

func TestAudit_NoLedgerBreaksNothing(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t)
	a, ok, err := auditOf(t.Context(), s, "nothing")
	testkit.Check(t, err)
	if ok || len(a.Broken) != 0 {
		t.Errorf("%v %+v", ok, a)
	}
	if _, _, err := auditOf(t.Context(), s, "{"); err == nil {
		t.Error("a SKU with a brace was audited")
	}
}

// meddled is a Redis to which something happens between any two pages.
type meddled struct {
	*Store
	between func()
}

func (m meddled) Inspect(ctx context.Context, sku string, p Part, cursor string, most int) (Page, error) {
	defer m.between()
	return m.Store.Inspect(ctx, sku, p, cursor, most)
}

// meddle makes one call of a healthy schedule.
func meddle(t testing.TB, r *Store, n *rand.Rand) {
	item := []Item{
		{Serial: fmt.Sprint(n.IntN(4_000)), User: fmt.Sprint("user ", n.IntN(50)), Quantity: 1 + n.Int64N(3)},
	}
	var err error
	switch n.IntN(4) {
	case 0:
		_, err = r.Reserve(context.Background(), "1001", 0, 1, 1_000_000, item, make([]Code, 1))
	case 1:
		_, err = r.Finish(
			context.Background(),
			"1001",
			1,
			2_000_000,
			[]Op{Confirm, Refund, Release}[n.IntN(3)],
			item,
			make([]Done, 1),
		)
	case 2:
		_, err = r.Finish(
			context.Background(),
			"1001",
			1,
			5,
			Release,
			item,
			make([]Done, 1),
		) // soon forgotten
	case 3:
		_, err = r.Sweep(context.Background(), "1001", 10, 2_000_000, 10)
	}
	testkit.Check(t, err)
}

func TestAudit_HealthyLedgerIsNeverFoundBrokenWhateverHappensBetweenTwoPages(t *testing.T) {
	t.Parallel()
	_, r := onRedis(t)
	fillUp(t, r, 1_000)
	n := rand.New(rand.NewPCG(1, 2))
	cut, whole := 0, 0
	for range 40 {
		tl := &auditRun{}
		testkit.Check(t, tl.walk(t.Context(), meddled{r, func() {
			if n.IntN(12) == 0 {
				meddle(t, r, n)
			}
		}}, "1001"))
		if tl.done {
			whole++
		} else {
			cut++
		}
		if a := tl.audit(); len(a.Broken) != 0 {
			t.Fatalf("%+v", a)
		}
	}
	if cut < 4 || whole < 4 {
		t.Errorf("%d walks were cut, %d whole: the test says little", cut, whole)
	}
}

func TestAudit_SweepsDoNotDisturbAnAudit(t *testing.T) {
	t.Parallel()
	_, r := onRedis(t)
	fillUp(t, r, 600)
	for batch := range 3 {
		gone := make([]Item, 200)
		for i := range gone {
			gone[i].Serial = fmt.Sprint("gone ", batch, " ", i)
		}
		_, err := r.Finish(t.Context(), "1001", 1, 2_000, Release, gone, make([]Done, len(gone))) // until then
		testkit.Check(t, err)
	}
	tl, at := &auditRun{}, int64(2_000)
	testkit.Check(t, tl.walk(t.Context(), meddled{r, func() {
		_, err := r.Sweep(t.Context(), "1001", at, at+1_000, 1)
		testkit.Check(t, err)
		at += 500_000
	}}, "1001"))
	if a := tl.audit(); !a.Whole || len(a.Broken) != 0 {
		t.Errorf("%+v", a)
	}
}

// movedServer is the new server of a slot: it takes the cursor for one of its own, and skips what it would have read.
type movedServer struct{ *Store }

func (m movedServer) Inspect(ctx context.Context, sku string, p Part, cursor string, most int) (Page, error) {
	page, err := m.Store.Inspect(ctx, sku, p, cursor, most)
	if p == partRecords && cursor != firstPage {
		page.Records = nil
	}
	return page, err
}

func TestAudit_PagesOfTwoServersAreNotAddedUp(t *testing.T) {
	t.Parallel()
	_, r := onRedis(t)
	fillUp(t, r, 1_000)
	tl := &auditRun{}
	testkit.Check(t, tl.walk(t.Context(), movedServer{r}, "1001"))
	if a := tl.audit(); a.Whole || len(a.Broken) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestAudit_HealthyScheduleNeverRaisesAnAlarm(t *testing.T) {
	server, _ := onRedis(t)
	r := testkit.Must[*Store](t)(NewStore(optionsFor(server, 16))) // no call waits for a connection
	t.Cleanup(func() { r.Close() })
	fillUp(t, r, 600)
	a := auditorOf(r, "1001") // in a hurry
	var workers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for g := range uint64(3) {
		workers.Go(func() {
			n := rand.New(rand.NewPCG(g, 3))
			for ctx.Err() == nil {
				meddle(t, r, n)
				time.Sleep(time.Duration(n.IntN(3)) * time.Millisecond) // calls come between any two pages
			}
		})
	}
	for range 10 {
		if sweep(t, a); len(a.known) != 0 {
			t.Fatal(a.known)
		}
	}
	for range 2 {
		if found := audited(t, r); len(found.Broken) != 0 {
			t.Fatalf("%+v", found)
		}
	}
	cancel()
	workers.Wait()
	for sweep(t, a); len(a.queue) > 0; sweep(t, a) {
	}
	if found := audited(t, r); len(found.Broken) != 0 || !found.Whole || len(a.known) != 0 {
		t.Fatalf("%+v %v", found, a.known)
	}
}

// auditorOf returns an auditor of some SKUs.
func auditorOf(s Calls, skus ...string) *auditor {
	r := &core{store: s, o: Options{Timeout: 20 * time.Second, MetricSKUs: 10, Log: slog.New(slog.DiscardHandler)}}
	r.metrics.open()
	return newAuditor(r, func() []string { return slices.Clone(skus) })
}

// sweep has a do what it does after a sweep of all its SKUs.
func sweep(t *testing.T, a *auditor) { a.check(t.Context(), a.skus()) }

// alarm reports whether the gauge of an invariant is 1.
func alarm(t *testing.T, a *auditor, i invariant) bool {
	t.Helper()
	return testkit.Series(t, collected{a})["sluice_ledger_invariant_broken "+i.String()] == 1
}

// collected is an auditor as a collector.
type collected struct{ *auditor }

func (c collected) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func TestAuditor_BrokenInvariantIsAnAlarmUntilItIsWholeAgain(t *testing.T) {
	server, r := onRedis(t)
	a := auditorOf(r, "1001")
	var log testkit.Log
	a.o.Log = logTo(&log)
	sweep(t, a)
	for i := range numInvariants {
		testkit.Want(t, i.String(), alarm(t, a, i), false)
	}
	set := func(n int64) {
		testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "held", n).Err())
		sweep(t, a)
	}
	set(2)
	testkit.Want(t, "held", alarm(t, a, heldAddsUp), true)
	testkit.Want(t, "sold", alarm(t, a, soldAddsUp), false)
	for _, words := range []string{"level=ERROR", "sku=1001", `broken="[held users]"`, "total=5", " held=2",
		"counted.held=1"} {
		testkit.Want(t, "lines with "+words, log.Count(words), 1)
	}
	set(6)
	testkit.Want(t, "over total", alarm(t, a, withinTotal), true)
	set(1)
	testkit.Want(t, "held", alarm(t, a, heldAddsUp), false)
	testkit.Want(t, "over total", alarm(t, a, withinTotal), false)
	testkit.Want(t, "failed", valueOf(a.audits.WithLabelValues("failed")), 0)
	testkit.Want(t, "lines for 2 findings", log.Count("breaks an invariant"), 2)
}

func TestAuditor_RawCommandThatBreaksALargeLedgerIsAnAlarm(t *testing.T) {
	server, r := onRedis(t)
	fillUp(t, r, 600)
	a := auditorOf(r, "1001")
	runs := func(what string, so func() bool) {
		t.Helper()
		for range 20 {
			if sweep(t, a); so() {
				return
			}
		}
		t.Fatal("never: " + what)
	}
	testkit.Check(t, server.Client.HIncrBy(t.Context(), "sluice:shop:{1001}:u", "user 77", 1).Err())
	runs("an alarm", func() bool { return alarm(t, a, usersAddUp) })
	testkit.Check(t, server.Client.HIncrBy(t.Context(), "sluice:shop:{1001}:u", "user 77", -1).Err())
	runs("its end", func() bool { return !alarm(t, a, usersAddUp) })
}

func TestAuditor_VanishedNumbersStayAnAlarm(t *testing.T) {
	server, r := onRedis(t)
	a := auditorOf(r, "1001")
	testkit.Check(t, server.Client.Del(t.Context(), "sluice:shop:{1001}:s").Err())
	sweep(t, a)
	a.skus = func() []string { return nil } // the reserver has forgotten it
	sweep(t, a)
	testkit.Want(t, "keys", a.broken[typedKeys].Load(), 1)
	testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
	sweep(t, a)
	testkit.Want(t, "keys", a.broken[typedKeys].Load(), 0)
}

func TestAuditor_CallThatFailsIsCountedAndIsNoAlarm(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.Do(t.Context(), "acl", "setuser", "default", "-type").Err())
	a := auditorOf(r, "1001")
	sweep(t, a)
	testkit.Want(t, "failed", valueOf(a.audits.WithLabelValues("failed")), 2)
	testkit.Want(t, "alarms", len(a.known), 0)
}

func TestAuditor_SKUThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "state", "open").Err())
	a := auditorOf(r, "{", "1001")
	sweep(t, a)
	testkit.Want(t, "state", a.broken[knownState].Load(), 1)
	testkit.Want(t, "failed", valueOf(a.audits.WithLabelValues("failed")), 2)
}

func FuzzPage(f *testing.F) {
	f.Add("H|1|2|ann", "1", "3")
	f.Fuzz(func(t *testing.T, record, units, held string) {
		p := Page{
			Numbers: Numbers{Total: "5", Held: held, Sold: "0", State: "on", Epoch: "1", Limit: "0", Ver: "1"},
			Next:    firstPage,
			Records: []string{"a", record},
			Users:   []string{"ann", units},
			Due:     []string{"a"},
		}
		tl := &auditRun{}
		if tl.add(&p) || !tl.done {
			t.Fatal("one page is all")
		}
		r, err := DecodeRecord("a", record)
		fine := err == nil && r.Status == 'H' && r.Quantity > 0 && r.Quantity <= 5
		for _, text := range []string{units, held} {
			n, err := Digits(text)
			fine = fine && err == nil && n == r.Quantity
		}
		if fine != (tl.found == 0) {
			t.Errorf("%q %q %q: %v", record, units, held, tl.found.names())
		}
	})
}
