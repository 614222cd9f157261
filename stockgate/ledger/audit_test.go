package ledger

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// audited audits 1001, and fails if there is nothing.
func audited(t testing.TB, s interface {
	Audit(context.Context, string) (Audit, bool, error)
}) Audit {
	t.Helper()
	a, ok, err := s.Audit(context.Background(), "1001")
	check(t, err)
	if !ok {
		t.Fatal("nothing to audit")
	}
	return a
}

func TestEachBrokenInvariantIsFound(t *testing.T) {
	for command, kinds := range map[string]string{
		"hset sluice:{1001}:s limit 9":                                  "",
		"hset sluice:{1001}:s held -1":                                  "numbers",
		"hset sluice:{1001}:s sold many":                                "numbers",
		"hdel sluice:{1001}:s ver":                                      "numbers",
		"hset sluice:{1001}:s state open":                               "state",
		"hset sluice:{1001}:s total 1":                                  "over_total",
		"hset sluice:{1001}:s held 2":                                   "held users",
		"hset sluice:{1001}:s held 0":                                   "held users",
		"hset sluice:{1001}:s sold 2":                                   "sold users",
		"hset sluice:{1001}:u ann 1":                                    "users",
		"hset sluice:{1001}:u zoe 1":                                    "users",
		"hset sluice:{1001}:u zoe 0":                                    "users",
		"hset sluice:{1001}:u zoe many":                                 "users",
		"del sluice:{1001}:u":                                           "users",
		"zrem sluice:{1001}:x a":                                        "holds",
		"zadd sluice:{1001}:x 1 b":                                      "holds",
		"zadd sluice:{1001}:x 1 ghost":                                  "holds",
		"hset sluice:{1001}:r a H|2|1000|ann":                           "held",
		"hset sluice:{1001}:r b C|2|0|ann":                              "sold",
		"hset sluice:{1001}:r new H|1|1000|zoe":                         "held holds",
		"hset sluice:{1001}:r b rubbish":                                "records sold",
		"hdel sluice:{1001}:r a":                                        "held holds",
		"del sluice:{1001}:r":                                           "held sold holds",
		"del sluice:{1001}:s":                                           "keys",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:{1001}:x":  "keys",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:{1001}:s":  "keys",
		"unlink sluice:{1001}:u sluice:{1001}:x sluice:{1001}:r ghosts": "held sold users",
	} {
		t.Run(command, func(t *testing.T) {
			server, r := onRedis(t)
			do(t, r, Release, "a tombstone")
			if a := audited(t, r); len(a.Broken) != 0 || !a.Whole {
				t.Fatalf("whole: %+v", a)
			}
			check(t, server.Client.Do(t.Context(), args(command)...).Err())
			if a := audited(t, r); strings.Join(a.Broken, " ") != kinds || !a.Whole {
				t.Errorf("broken: %q, want %q in %+v", a.Broken, kinds, a)
			}
		})
	}
}

func TestBrokenInvariantIsFoundAmongThousands(t *testing.T) {
	server, r := onRedis(t)
	fillUp(t, r, 3_000)
	a := audited(t, r)
	if len(a.Broken) != 0 || !a.Whole || a.HeldUnits != 2_001 || a.SoldUnits != 1_001 || a.Holds != 2_001 || a.Due != 2_001 {
		t.Fatalf("whole: %+v", a)
	}
	check(t, server.Client.HSet(t.Context(), "sluice:{1001}:r", "1501", "H|2|1000|").Err())
	if a := audited(t, r); strings.Join(a.Broken, " ") != "held" {
		t.Errorf("broken: %+v", a)
	}
}

// fillUp reserves n units of 1001 for serials "0" to "n-1", and confirms every third.
func fillUp(t testing.TB, r *Redis, n int) {
	t.Helper()
	must[Stock](t)(r.SetTotal(context.Background(), "1001", int64(2*n), 0))
	for from := 0; from < n; from += 100 {
		var items, confirmed []Item
		for i := from; i < min(from+100, n); i++ {
			items = append(items, Item{fmt.Sprint(i), fmt.Sprint("user ", i), 1})
			if i%3 == 0 {
				confirmed = append(confirmed, items[len(items)-1])
			}
		}
		_, err := r.Reserve(context.Background(), "1001", 0, 1, 1_000_000, items, make([]Code, len(items)))
		check(t, err)
		_, err = r.Finish(context.Background(), "1001", 1, 2_000_000, Confirm, confirmed, make([]Done, len(confirmed)))
		check(t, err)
	}
}

func TestNoLedgerBreaksNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		a, ok, err := audit(t.Context(), s.(inspected), "nothing")
		check(t, err)
		if ok || len(a.Broken) != 0 {
			t.Errorf("%v %+v", ok, a)
		}
		if _, _, err := audit(t.Context(), s.(inspected), "{"); err == nil {
			t.Error("a SKU with a brace was audited")
		}
	})
}

// meddled is a Redis to which something happens between any two pages.
type meddled struct {
	*Redis
	between func()
}

func (m meddled) inspect(ctx context.Context, sku string, p part, cursor string, most int) (page, error) {
	defer m.between()
	return m.Redis.inspect(ctx, sku, p, cursor, most)
}

// meddle makes one call of a healthy schedule.
func meddle(t testing.TB, r *Redis, n *rand.Rand) {
	item := []Item{{fmt.Sprint(n.IntN(4_000)), fmt.Sprint("user ", n.IntN(50)), 1 + n.Int64N(3)}}
	var err error
	switch n.IntN(4) {
	case 0:
		_, err = r.Reserve(context.Background(), "1001", 0, 1, 1_000_000, item, make([]Code, 1))
	case 1:
		_, err = r.Finish(context.Background(), "1001", 1, 2_000_000, []Op{Confirm, Refund, Release}[n.IntN(3)], item, make([]Done, 1))
	case 2:
		_, err = r.Finish(context.Background(), "1001", 1, 5, Release, item, make([]Done, 1)) // soon forgotten
	case 3:
		_, err = r.Sweep(context.Background(), "1001", 10, 2_000_000, 10)
	}
	check(t, err)
}

func TestHealthyLedgerIsNeverFoundBrokenWhateverHappensBetweenTwoPages(t *testing.T) {
	_, r := onRedis(t)
	fillUp(t, r, 1_000)
	n := rand.New(rand.NewPCG(1, 2))
	cut, whole := 0, 0
	for range 300 {
		tl := &tally{}
		check(t, tl.walk(t.Context(), meddled{r, func() {
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
	if cut < 10 || whole < 10 {
		t.Errorf("%d walks were cut, %d whole: the test says little", cut, whole)
	}
}

func TestSweepsDoNotDisturbAnAudit(t *testing.T) {
	_, r := onRedis(t)
	fillUp(t, r, 600)
	for i := range 600 {
		do(t, r, Release, fmt.Sprint("gone ", i)) // until 2,000
	}
	tl, at := &tally{}, int64(2_000)
	check(t, tl.walk(t.Context(), meddled{r, func() {
		_, err := r.Sweep(t.Context(), "1001", at, at+1_000, 1)
		check(t, err)
		at += 500_000
	}}, "1001"))
	if a := tl.audit(); !a.Whole || len(a.Broken) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestHealthyScheduleNeverRaisesAnAlarm(t *testing.T) {
	server, _ := onRedis(t)
	r := must[*Redis](t)(NewRedis(optionsFor(server, 16))) // nobody waits for a connection
	t.Cleanup(func() { r.Close() })
	fillUp(t, r, 600)
	d := opened(t, deskOptions(), r, nil)
	d.Watch("1001")
	a := newAuditor(d, r) // of the test's own, in a hurry
	var workers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for g := range uint64(3) {
		workers.Go(func() {
			n := rand.New(rand.NewPCG(g, 3))
			for ctx.Err() == nil {
				meddle(t, r, n)
				time.Sleep(time.Duration(n.IntN(3)) * time.Millisecond)
			}
		})
	}
	for range 100 {
		if a.turn(t.Context()); len(a.known) != 0 {
			t.Fatal(a.known)
		}
	}
	for range 5 {
		if found := audited(t, r); len(found.Broken) != 0 {
			t.Fatalf("%+v", found)
		}
	}
	cancel()
	workers.Wait()
	for a.turn(t.Context()); a.walk != nil; a.turn(t.Context()) {
	}
	if found := audited(t, r); len(found.Broken) != 0 || !found.Whole || len(a.known) != 0 {
		t.Fatalf("%+v %v", found, a.known)
	}
}

// alarm reports whether the gauge of an invariant is 1.
func alarm(t *testing.T, d *Desk, i invariant) bool {
	t.Helper()
	return strings.Contains(scraped(t, d), fmt.Sprintf(`sluice_ledger_invariant_broken{kind="%v"} 1`, i))
}

func TestBrokenInvariantIsAnAlarmUntilItIsWholeAgain(t *testing.T) {
	at(t, func(t *testing.T) {
		m := NewMemory()
		must[Stock](t)(m.SetTotal(t.Context(), sku, 5, 0))
		var log bytes.Buffer
		o := deskOptions()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		d := opened(t, o, m, nil)
		wants(t, "order", d.buy("7", "k"), Held)
		time.Sleep(2 * time.Second)
		for i := range numInvariants {
			want(t, i.String(), alarm(t, d, i), false)
		}
		set := func(n int64) {
			m.mu.Lock()
			m.books[sku].Held = n
			m.mu.Unlock()
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		set(2)
		want(t, "held", alarm(t, d, heldAddsUp), true)
		want(t, "sold", alarm(t, d, soldAddsUp), false)
		for _, words := range []string{"level=ERROR", "sku=1001", "broken=\"[held users]\"", "total=5", " held=2", "counted.held=1"} {
			if !strings.Contains(log.String(), words) {
				t.Errorf("no %q in %s", words, log.String())
			}
		}
		set(6)
		want(t, "over total", alarm(t, d, withinTotal), true)
		set(1)
		want(t, "held", alarm(t, d, heldAddsUp), false)
		want(t, "over total", alarm(t, d, withinTotal), false)
		if d.audits.whole.Load() == 0 || d.audits.failed.Load() > 0 {
			t.Errorf("%d audits, %d failed", d.audits.whole.Load(), d.audits.failed.Load())
		}
		if n := strings.Count(log.String(), "breaks an invariant"); n != 2 {
			t.Errorf("%d lines for 2 findings:\n%s", n, log.String())
		}
	})
}

func TestRawCommandThatBreaksALargeLedgerIsAnAlarm(t *testing.T) {
	server, r := onRedis(t)
	fillUp(t, r, 600)
	d := opened(t, deskOptions(), r, nil)
	d.Watch("1001")
	check(t, server.Client.HIncrBy(t.Context(), "sluice:{1001}:u", "user 77", 1).Err())
	eventually(t, "an alarm", func() bool { return alarm(t, d, usersAddUp) })
	check(t, server.Client.HIncrBy(t.Context(), "sluice:{1001}:u", "user 77", -1).Err())
	eventually(t, "its end", func() bool { return !alarm(t, d, usersAddUp) })
}

func TestVanishedNumbersStayAnAlarmWhenTheDeskHasForgottenTheSKU(t *testing.T) {
	server, r := onRedis(t)
	d := opened(t, deskOptions(), r, nil)
	wants(t, "order", d.buy("7", "k"), Held)
	a := newAuditor(d, r)
	check(t, server.Client.Del(t.Context(), "sluice:{1001}:s").Err())
	a.turn(t.Context())
	d.lines.remove(d.lines.find([]byte("1001")))
	a.turn(t.Context())
	want(t, "keys", a.broken[typedKeys].Load(), 1)
	check(t, server.Client.Del(t.Context(), keys("1001")...).Err())
	a.turn(t.Context())
	want(t, "keys", a.broken[typedKeys].Load(), 0)
}

func TestAuditThatCannotReadIsCountedAndIsNoAlarm(t *testing.T) {
	server, r := onRedis(t)
	d := opened(t, deskOptions(), r, nil)
	d.Watch("1001")
	check(t, server.Client.Do(t.Context(), "acl", "setuser", "default", "-type").Err())
	a := newAuditor(d, r)
	a.turn(t.Context())
	want(t, "failed", a.failed.Load(), 1)
	want(t, "alarms", len(a.known), 0)
}

func TestSKUThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	server, r := onRedis(t)
	d := opened(t, deskOptions(), r, nil)
	d.Watch("{") // before the other
	d.Watch("1001")
	check(t, server.Client.HSet(t.Context(), "sluice:{1001}:s", "state", "open").Err())
	a := newAuditor(d, r)
	a.turn(t.Context())
	want(t, "state", a.broken[knownState].Load(), 1)
	want(t, "failed", a.failed.Load(), 1)
}

func FuzzPage(f *testing.F) {
	f.Add("H|1|2|ann", "1", "3")
	f.Fuzz(func(t *testing.T, record, units, held string) {
		p := page{raw: raw{"5", held, "0", "on", "1", "0", "1"}, next: firstPage,
			records: []string{"a", record}, users: []string{"ann", units}, due: []string{"a"}}
		tl := &tally{}
		if tl.turn(&p) || !tl.done {
			t.Fatal("one page is all")
		}
		r, err := decode("a", record)
		fine := err == nil && r.Status == 'H' && r.Quantity > 0 && r.Quantity <= 5
		for _, text := range []string{units, held} {
			n, err := digits(text)
			fine = fine && err == nil && n == r.Quantity
		}
		if fine != (tl.found == 0) {
			t.Errorf("%q %q %q: %v", record, units, held, tl.found.names())
		}
	})
}
