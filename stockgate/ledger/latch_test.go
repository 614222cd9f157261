package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever the latch bars hears what view, roster and memory say as well, and that is that all is sold out.
func TestLatchBarsOnlyWhomViewAndRosterRefuse(t *testing.T) {
	d, _ := idle(t, newShelf(), nil)
	names, barred := []string{"", "ann", "bob", "zoe"}, 0
	const latches = 6000
	now := int64(1 << 40)
	for n := range latches {
		for n == latches/2 && d.probers.take(now) { // from now on what is old is not looked at
		}
		dice := rand.New(rand.NewPCG(1, uint64(n)))
		one := func(most int64) int64 { return dice.Int64N(most + 1) }
		l := d.open(fmt.Append(nil, "latched-", n))
		door, hash := d.lines.door([]byte(l.sku))
		v := &view{
			Hint:   Hint{Free: one(2) - 1, Epoch: 1, Ver: 9, Taken: one(3), State: []State{On, On, On, On, Paused, Doubted, Frozen, Lost}[one(7)]},
			absent: one(5) == 5, at: now - one(12)*d.fresh, from: now + one(1) - 1, until: now + one(3)<<40,
		}
		var r *roster
		if one(4) > 0 {
			r = &roster{epoch: 1 + one(5)/5, ver: 2, whole: one(5) > 0}
			for _, user := range names[1 : 1+one(2)] {
				d.enter(l, r, Record{Serial: strings.Repeat(user[:1], derivedLength), User: user, Quantity: 1, Status: held})
				d.enter(l, r, Record{Serial: "key-" + user, User: user, Quantity: 1, Status: sold})
			}
		}
		if who := one(6); who > 0 && who < 3 {
			d.remember(&known{line: l, serial: "key-zoe", user: "zoe", quantity: 1, derived: who == 2, until: now + 1e9})
		}
		l.view.Store(v)
		l.roster.Store(r)
		l.relatch(now)
		at := now + one(2)*d.fresh
		for _, user := range names {
			for _, key := range names {
				o := Order{SKU: []byte(l.sku), User: []byte(user), Quantity: 1 + one(1)}
				if key != "" {
					o.Key = []byte("key-" + key)
				}
				if !d.bars(at, &door.latch, hash, &o) {
					continue
				}
				barred++
				if out, closed := d.judge(at, l, &o); !closed || out != (Outcome{Code: SoldOut, State: On}) {
					t.Fatalf("%d: user %q, key %q is barred, and hears %v %+v", n, user, key, closed, out)
				}
			}
		}
	}
	if barred < latches/10 {
		t.Errorf("only %d orders were barred", barred)
	}
}

// The usual refusal reads nothing but the door and tags.
func TestLatchBarsEverybodyButWinners(t *testing.T) {
	d, _ := soldOut(t, deskOptions())
	d.rest()
	d.watch.Wait()
	door, hash := d.lines.door([]byte(sku))
	now := door.latch.at.Load()
	barred := func(user, key string) bool {
		o := attempt(user, key)
		return d.bars(now, &door.latch, hash, &o)
	}
	want(t, "the winner", barred("winner", "won"), false)
	losers := 0
	for i := range 100 {
		if barred(fmt.Sprint(i), "") && barred(fmt.Sprint(i), "invented") == barred("", "invented") {
			losers++
		}
	}
	if losers < 90 { // some have a winner's bit
		t.Errorf("%d of 100", losers)
	}
	d.Note(sku, Hint{Free: 1, Epoch: 1, Ver: 100, State: On, Taken: 2})
	want(t, "anybody, when a unit has come back", barred("zoe", ""), false)
}

func TestDoorIsOneLineOfTheCache(t *testing.T) {
	if n := reflect.TypeFor[door]().Size(); n > 64 {
		t.Errorf("it has %d bytes", n)
	}
}

func TestDoorsTellNamesOfAnyLengthApart(t *testing.T) {
	lines := newLines(4) // 8 chains, all of them shared
	var skus []string
	for _, n := range []int{1, 2, inline - 1, inline, inline + 1, 255, 256} {
		for _, last := range []string{"", "\x00", "a", "b"} {
			skus = append(skus, strings.Repeat("x", n-len(last))+last)
		}
	}
	lines.limit = len(skus)
	for _, sku := range skus {
		lines.add([]byte(sku), func(sku string, hash uint64) *line { return &line{sku: sku, hash: hash} })
	}
	for range 2 {
		for _, sku := range skus {
			if l := lines.find([]byte(sku)); l == nil || l.sku != sku {
				t.Fatalf("%q is %v", sku, l)
			}
		}
		for len(skus) > 10 {
			lines.remove(lines.find([]byte(skus[0])))
			if lines.find([]byte(skus[0])) != nil {
				t.Fatalf("%q is still there", skus[0])
			}
			skus = skus[1:]
		}
	}
}

// Nobody who has won hears that all is sold out, while a unit goes round among buyers.
func TestLatchNeverBarsAWinnerWhileUnitsComeBack(t *testing.T) {
	d, _ := soldOut(t, deskOptions())
	last := "won"
	for i := range 200 {
		d.Settle(sku, Item{Serial: last}, Release)
		user := fmt.Sprint("user-", i)
		last = fmt.Sprint("key-", i)
		for d.buy(user, last).Code != Held { // the release is under way
		}
		var others sync.WaitGroup
		for j := range 4 {
			others.Go(func() { d.buy(fmt.Sprint("loser-", j), "") })
		}
		if out := d.buy(user, last); out.Code != ReplayHeld {
			t.Fatalf("%d: %+v", i, out)
		}
		others.Wait()
	}
}

// Whoever comes next looks, be it the first of many whom the latch barred.
func TestLatchBarsNobodyWhenNewsWereMissed(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.SoldOutMemory = time.Hour
		d, s := soldOut(t, o)
		other := opened(t, o, s, nil)
		wants(t, "before", other.buy("ann", ""), SoldOut)
		other.winnersRead(t, sku)
		wants(t, "before, without a name", other.buy("", ""), SoldOut)
		d.Settle(sku, Item{Serial: "won"}, Release)
		synctest.Wait()
		other.missed()
		wants(t, "who comes next", other.buy("", ""), Held)
	})
}

// What was asked for before news were missed, and is heard afterwards, does not make up for them.
func TestNewsThatWereMissedWhileWinnersAreReadStayMissed(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.SoldOutMemory = time.Hour
		d, s := soldOut(t, o)
		other := opened(t, o, s, nil)
		s.set(func(op string, after bool) error {
			if op == "records" && !after {
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		})
		wants(t, "before", other.buy("", ""), SoldOut)
		synctest.Wait()
		d.Settle(sku, Item{Serial: "won"}, Release)
		time.Sleep(100 * time.Millisecond)
		other.missed()
		time.Sleep(time.Second)
		wants(t, "who comes next", other.buy("", ""), Held)
	})
}
