package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/redistest"
)

// twoDesks stand before one Redis with units of 1001, each with a link of its own.
func twoDesks(t *testing.T, units int64, o DeskOptions) (here, there *Desk, server *redistest.Server) {
	t.Helper()
	server = redistest.Start(t)
	stores := [2]*Redis{connect(t, server, texts()), connect(t, server, texts())}
	must[Stock](t)(stores[0].SetTotal(t.Context(), sku, units, 0))
	return opened(t, o, stores[0], nil), opened(t, o, stores[1], nil), server
}

// spend takes all looks of a SKU, and more.
func (d *Desk) spend() {
	for l := d.lines.find([]byte(sku)); l.looks.take(d.o.Now()); {
	}
}

// closedAfter returns when a desk knows that a SKU is sold out, and who has won it.
func (d *Desk) closedAfter(t *testing.T, loser string) *line {
	t.Helper()
	wants(t, "a loser", d.buy(loser, ""), SoldOut)
	return d.winnersRead(t, sku)
}

func TestWinnerIsNeverSoldOutThroughAnotherInstance(t *testing.T) {
	for _, looks := range []string{"with looks left", "without"} {
		t.Run(looks, func(t *testing.T) {
			o := deskOptions()
			o.SoldOutMemory = time.Hour
			here, there, _ := twoDesks(t, 3, o)
			wants(t, "keyed", here.buy("ann", "key"), Held)
			keyless := here.buy("bob", "")
			wants(t, "keyless", keyless, Held)
			wants(t, "nobody's", here.buy("", "nobody"), Held)
			there.closedAfter(t, "zoe")
			if looks == "without" {
				there.spend()
			}
			wants(t, "keyed, elsewhere", there.buy("ann", "key"), ReplayHeld)
			again := there.buy("bob", "")
			wants(t, "keyless, elsewhere", again, ReplayHeld)
			want(t, "serial", again.Serial, keyless.Serial)
			wants(t, "nobody's, elsewhere", there.buy("", "nobody"), ReplayHeld)
			wants(t, "a thief, elsewhere", there.buy("eve", "key"), OtherOrder)
			wants(t, "a loser with a key", there.buy("zoe", "other"), SoldOut)
			wants(t, "a loser without", there.buy("zoe", ""), SoldOut)
			wants(t, "a winner's other order", there.buy("ann", ""), SoldOut)
		})
	}
}

func TestSoldOrderIsToldThroughAnotherInstance(t *testing.T) {
	o := deskOptions()
	o.SoldOutMemory, o.PerUser = time.Hour, 3
	here, there, _ := twoDesks(t, 3, o)
	var last Outcome
	for range 3 { // bob buys one after the other
		last = here.buy("bob", "")
		wants(t, "bob", last, Held)
		done := make([]Done, 1)
		_, err := here.store.Finish(t.Context(), sku, 1, 2, Confirm, []Item{{Serial: last.Serial}}, done)
		check(t, err)
	}
	there.closedAfter(t, "zoe")
	there.spend()
	again := there.buy("bob", "")
	wants(t, "elsewhere", again, ReplaySold)
	want(t, "the last of three", again.Serial, last.Serial)
}

func TestRedisSeesTheStockAndNotTheKeysOfLosers(t *testing.T) {
	here, there, server := twoDesks(t, 10, deskOptions())
	before := server.Calls("evalsha")
	var held, other atomic.Int64
	storm(50_000, 500, func(i int) {
		switch out := []*Desk{here, there}[i%2].buy(fmt.Sprint(i), fmt.Sprint("key-", i)); out.Code {
		case Held:
			held.Add(1)
		case SoldOut:
		default:
			other.Add(1)
		}
	})
	want(t, "winners", held.Load(), 10)
	want(t, "who heard something else", other.Load(), 0)
	if n := server.Calls("evalsha") - before; n > 500 {
		t.Errorf("%d calls", n)
	} else {
		t.Logf("%d calls for 50,000 orders", n)
	}
}

// Nobody is turned away before it is known who has won.
func TestOrdersWaitWhileTheWinnersAreRead(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		s.set(func(op string, after bool) error {
			if op == "records" && !after {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		wants(t, "keyless winner's loss elsewhere", other.buy("zoe", ""), SoldOut)
		heard := make(chan Outcome, 3)
		for _, o := range []Order{attempt("winner", "won"), attempt("zoe", "invented"), attempt("eve", "")} {
			go func() { heard <- other.Reserve(other.o.Now(), o) }()
		}
		synctest.Wait()
		want(t, "heard something before", len(heard), 0)
		wants(t, "who has neither name nor key", other.buy("", ""), SoldOut)
		count := map[Code]int{}
		for range 3 {
			count[(<-heard).Code]++
		}
		want(t, "answers", fmt.Sprint(count), fmt.Sprint(map[Code]int{ReplayHeld: 1, SoldOut: 2}))
		wants(t, "the winner at home", d.buy("winner", "won"), ReplayHeld)
	})
}

func TestThoseWhoWaitForTheWinnersAreBounded(t *testing.T) {
	at(t, func(t *testing.T) {
		_, s := soldOut(t, deskOptions())
		o := deskOptions()
		o.MaxQueue = 2
		other := opened(t, o, s, nil)
		s.set(func(op string, _ bool) error {
			if op == "records" {
				time.Sleep(time.Second)
			}
			return nil
		})
		wants(t, "closes it", other.buy("zoe", ""), SoldOut)
		heard := make(chan Code, 3)
		for i := range 3 {
			go func() { heard <- other.buy(fmt.Sprint(i), "").Code }()
			synctest.Wait()
		}
		want(t, "the third", <-heard, Overloaded)
		want(t, "the first", <-heard, SoldOut)
		want(t, "the second", <-heard, SoldOut)
	})
}

// A unit that came back and was sold elsewhere makes a winner whom the roster does not know.
func TestWinnerOfAReturnedUnitIsKnownByTheNextReply(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		l := other.closedAfter(t, "zoe")
		d.Settle(sku, Item{Serial: "won"}, Release)
		synctest.Wait()
		wants(t, "the next one at home", d.buy("late", "late-key"), Held)
		other.Note(sku, s.stock(sku).Hint)
		synctest.Wait()
		other.spend()
		wants(t, "elsewhere", other.buy("late", "late-key"), ReplayHeld)
		wants(t, "who gave back", other.buy("winner", "won"), SoldOut)
		if r := l.roster.Load(); len(r.serials) != 1 || r.ver != s.stock(sku).Ver {
			t.Errorf("%+v", r)
		}
	})
	at(t, func(t *testing.T) { // without any news
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		other.closedAfter(t, "zoe")
		d.Settle(sku, Item{Serial: "won"}, Release)
		synctest.Wait()
		wants(t, "the next one at home", d.buy("late", "late-key"), Held)
		time.Sleep(100*time.Millisecond + 1)
		wants(t, "elsewhere, when the latch is no longer fresh", other.buy("late", "late-key"), ReplayHeld)
	})
}

func TestRosterVouchesOnlyForWhatItCouldSee(t *testing.T) {
	r := &roster{epoch: 2, ver: 7, whole: true}
	for h, sure := range map[Hint]bool{
		{Epoch: 2, Ver: 7, Taken: 7}: true,
		{Epoch: 2, Ver: 9, Taken: 7}: true, // confirmed since
		{Epoch: 2, Ver: 9, Taken: 8}: false,
		{Epoch: 3, Ver: 8, Taken: 7}: false, // frozen since
		{Epoch: 3, Ver: 1, Taken: 1}: false, // another ledger
		{Epoch: 2, Ver: 7, Taken: 0}: false, // nobody told
	} {
		want(t, fmt.Sprint(h), r.vouches(&view{Hint: h}), sure)
	}
	r.whole = false
	want(t, "too many", r.vouches(&view{Hint: Hint{Epoch: 2, Ver: 7, Taken: 7}}), false)
	r = nil
	want(t, "nothing read", r.vouches(&view{Hint: Hint{Epoch: 2, Ver: 7, Taken: 7}}), false)
}

func TestWinnersAreKeptOnlyWhereThereIsRoom(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 3)
		s.put("other", 2, 0)
		o := deskOptions()
		o.MaxWinners = 4
		d := opened(t, o, s, nil)
		buy := func(sku, key string) Outcome {
			return d.Reserve(d.o.Now(), Order{SKU: []byte(sku), User: []byte("u"), Key: []byte(key), Quantity: 1})
		}
		for i := range 3 {
			wants(t, "winner", buy(sku, fmt.Sprint(i)), Held)
		}
		synctest.Wait()
		want(t, "kept", d.winners.Load(), 3)
		for i := range 2 {
			wants(t, "winner of the other", buy("other", fmt.Sprint(i)), Held)
		}
		synctest.Wait()
		want(t, "kept", d.winners.Load(), 3)
		l := d.lines.find([]byte("other"))
		for l.looks.take(d.o.Now()) {
		}
		wants(t, "a loser's key where nobody knows who has won", buy("other", "x"), Overloaded)
		wants(t, "a loser without a key, where they are too many", d.Reserve(d.o.Now(), Order{SKU: []byte("other"), User: []byte("v"), Quantity: 1}), SoldOut)
		want(t, "readings", s.count("records"), 2) // and no more, while nothing is sold
		d.Settle(sku, Item{Serial: "0"}, Release)
		synctest.Wait()
		want(t, "kept of what is open again", d.winners.Load(), 0)
	})
}

func TestFailedReadingTellsNobodyWhoMayHaveWonThatAllIsSoldOutAndIsRepeated(t *testing.T) {
	at(t, func(t *testing.T) {
		_, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		for _, op := range []string{"records", "look"} {
			s.set(losing(1, 0, op))
			other.closedAfter(t, "zoe")
			wants(t, "a look finds the winner", other.buy("winner", "won"), ReplayHeld)
			other.spend()
			wants(t, "a key that may be anybody's", other.buy("zoe", "key"), Overloaded)
			wants(t, "a user who may have won elsewhere", other.buy("zoe", ""), Overloaded)
			wants(t, "somebody who is nobody's winner", other.buy("", ""), SoldOut)
			time.Sleep(time.Second + 1)
		}
		s.set(nil)
		other.closedAfter(t, "zoe")
		other.spend()
		wants(t, "when they could be read", other.buy("zoe", "key"), SoldOut)
		wants(t, "when they could be read, without a key", other.buy("zoe", ""), SoldOut)
	})
}

func TestMissingLedgerHasNoWinners(t *testing.T) {
	at(t, func(t *testing.T) {
		_, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		s.set(func(op string, after bool) error {
			if op == "look" && !after {
				s.mu.Lock()
				delete(s.skus, sku)
				s.mu.Unlock()
			}
			return nil
		})
		if l := other.closedAfter(t, "zoe"); l.roster.Load() != nil {
			t.Error("somebody has won nothing")
		}
	})
}

func TestRosterAnswersLosersWithoutAllocating(t *testing.T) {
	o := deskOptions()
	o.SoldOutMemory = time.Hour
	d := opened(t, o, shelfOf(sku, 100), nil)
	for i := range 100 {
		wants(t, "winner", d.buy(fmt.Sprint("w", i), fmt.Sprint("key", i)), Held)
	}
	d.winnersRead(t, sku)
	now := d.o.Now()
	for _, loser := range []Order{attempt("zoe", "key"), attempt("zoe", ""), attempt("", "key"), attempt("", "")} {
		if n := testing.AllocsPerRun(1_000, func() {
			if out, closed := d.Closed(now, loser); !closed || out.Code != SoldOut {
				t.Fatalf("%s: %v", loser.Key, out)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func BenchmarkClosedByRoster(b *testing.B) {
	o := deskOptions()
	o.SoldOutMemory = time.Hour
	for _, winners := range []int{10, 10_000} {
		d := opened(b, o, shelfOf(sku, int64(winners)), nil)
		for i := range winners {
			d.buy(fmt.Sprint("w", i), fmt.Sprint("key", i))
		}
		d.winnersRead(b, sku)
		now := d.o.Now()
		for what, loser := range map[string]Order{"keyed": attempt("zoe", "invented-key-0001"), "unkeyed": attempt("zoe", "")} {
			b.Run(fmt.Sprintf("%s/%d", what, winners), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if out, _ := d.Closed(now, loser); out.Code != SoldOut {
						b.Fatal(out)
					}
				}
			})
		}
	}
}

// stutter shows each record twice, as a scan may.
type stutter struct{ *shelf }

func (s stutter) Records(ctx context.Context, sku string, see func(Record) bool) error {
	return s.shelf.Records(ctx, sku, func(r Record) bool {
		see(r)
		return see(r)
	})
}

func TestRecordThatIsShownTwiceIsOneWinner(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.MaxWinners = 3
		d := opened(t, o, stutter{shelfOf(sku, 3)}, nil)
		for i := range 3 {
			wants(t, "winner", d.buy(fmt.Sprint(i), fmt.Sprint(i)), Held)
		}
		synctest.Wait()
		want(t, "kept", d.winners.Load(), 3)
		want(t, "all of them", d.lines.find([]byte(sku)).roster.Load().whole, true)
	})
}

func TestReadingTakesNoMoreThanAPartOfTheTime(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		s.set(func(op string, after bool) error {
			if op == "records" && !after {
				time.Sleep(time.Second)
			}
			return nil
		})
		before := s.count("records")
		hint := s.stock(sku).Hint
		for range 1_000 { // a minute of units that come back and are sold at once, elsewhere
			time.Sleep(60 * time.Millisecond)
			hint.Ver += 2
			hint.Taken = hint.Ver
			d.Note(sku, hint)
		}
		if n := s.count("records") - before; n < 2 || n > 4 {
			t.Errorf("read %d times", n)
		}
	})
}
