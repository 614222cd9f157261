package ledger

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

// losing loses every nth message of some operations: requests, which then are not executed, or replies.
func losing(requests, replies int64, ops ...string) func(string, bool) error {
	var n atomic.Int64
	return func(op string, after bool) error {
		nth := requests
		if after {
			nth = replies
		}
		for _, o := range ops {
			if o == op && nth > 0 && n.Add(1)%nth == 0 {
				return errNetwork
			}
		}
		return nil
	}
}

func TestLostReply_TellsOneOfManyThatItWon(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1000)
		s.set(func(op string, after bool) error {
			time.Sleep(time.Millisecond)
			if op == "reserve" && after && s.count(op) == 2 {
				return errNetwork
			}
			return nil
		})
		d := opened(t, testOptions(), s, nil)
		go d.buy("8", "before") // the others share the call behind it
		synctest.Wait()
		var held, others atomic.Int64
		testkit.Storm(200, 200, func(i int) {
			user := "7"
			if i%10 == 9 {
				user = "thief"
			}
			switch out := d.buy(user, "k"); out.Code {
			case Held:
				held.Add(1)
			case OtherOrder:
				others.Add(1)
			case ReplayHeld:
			default:
				t.Errorf("%s: %v", user, out)
			}
		})
		if held.Load() != 1 || s.stock(testSKU).Held != 2 || others.Load() != 20 && others.Load() != 180 {
			t.Errorf("%d held, %d others, stock %+v", held.Load(), others.Load(), s.stock(testSKU))
		}
	})
}

// A hold of the same second, and so of the same deadline, is still no lost reply's when its buyer was told of it.
func TestLostReply_HoldOfTheSameSecondIsNotTakenForALostReply(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1000)
		d := opened(t, testOptions(), s, nil)
		wants(t, "first", d.buy("7", "k"), Held)
		s.set(func(op string, after bool) error {
			if op == "reserve" && after && s.count(op) == 2 {
				time.Sleep(2 * time.Second) // the next order's deadline is another
				return errNetwork
			}
			return nil
		})
		second := make(chan Outcome)
		go func() { second <- d.buy("7", "k") }()
		time.Sleep(1500 * time.Millisecond)
		wants(t, "repeated at once, reply lost", <-second, ReplayHeld)
		s.set(losing(0, 1, "reserve"))
		wants(t, "another", d.buy("8", "k2"), Unsure)
		s.set(nil)
		time.Sleep(time.Minute)
		if s.record(testSKU, "k").Status != 'H' || s.record(testSKU, "k2").Status != 'X' {
			t.Errorf("%+v, %+v", s.record(testSKU, "k"), s.record(testSKU, "k2"))
		}
	})
}

func TestLostReply_ReplayIsNotTakenForALostReply(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1000)
		first, second := opened(t, testOptions(), s, nil), opened(t, testOptions(), s, nil)
		second.o.Mark = first.o.Mark ^ 1
		wants(t, "first", first.buy("7", "k"), Held)
		s.set(losing(0, 2, "reserve")) // every other reply
		for range 10 {
			wants(t, "elsewhere, replies lost", second.buy("7", "k"), ReplayHeld)
		}
	})
}

func TestLostReply_UnsureOrderGivesItsUnitBack(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 5)
		d := opened(t, testOptions(), s, nil)
		s.set(losing(0, 1, "reserve"))
		wants(t, "all replies lost", d.buy("7", "k"), Unsure)
		wants(t, "the same second", d.buy("7", "k"), Unsure)
		s.set(nil)
		calls := s.count("reserve")
		wants(t, "the same second, when replies come", d.buy("7", "k"), Unsure)
		if s.stock(testSKU).Held != 1 || s.count("reserve") != calls {
			t.Fatalf("stock %+v", s.stock(testSKU))
		}
		time.Sleep(1500 * time.Millisecond)
		if s.stock(testSKU).Held != 0 {
			t.Fatalf("stock %+v", s.stock(testSKU))
		}
		wants(t, "again with the key", d.buy("7", "k"), Released)
		wants(t, "again without a key", d.buy("7", ""), Held)
	})
}

// A reservation that a client was told of is no orphan's, even if a call for the same serial was unsure.
func TestLostReply_UnsureRepetitionNeverReleasesTheWinner(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 5)
		first, second := opened(t, testOptions(), s, nil), opened(t, testOptions(), s, nil)
		second.o.Mark = first.o.Mark ^ 1
		wants(t, "first", first.buy("7", "k"), Held)
		s.set(losing(0, 1, "reserve"))
		wants(t, "repeated elsewhere", second.buy("7", "k"), Unsure)
		wants(t, "repeated here", first.buy("8", "other"), Unsure)
		s.set(nil)
		time.Sleep(time.Minute)
		if s.record(testSKU, "k").Status != 'H' || s.stock(testSKU).Held != 1 {
			t.Errorf("%+v, stock %+v", s.record(testSKU, "k"), s.stock(testSKU))
		}
	})
}

func TestLostReply_StaleEpochIsLearntAndTriedOnce(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 5)
		d := opened(t, testOptions(), s, nil)
		wants(t, "first", d.buy("1", ""), Held)
		for _, state := range []State{Frozen, On} {
			if _, err := s.SetState(t.Context(), testSKU, state); err != nil {
				t.Fatal(err)
			}
		}
		wants(t, "in the next epoch", d.buy("2", ""), Held)
		if n := s.count("reserve"); n != 3 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestLostReply_LostHistoryClosesTheSKU(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		for i := range 5 {
			wants(t, "before", d.buy(fmt.Sprint(i), ""), Held)
		}
		s.put(testSKU, 10, 0) // a fail-over that lost it all
		wants(t, "after", d.buy("5", ""), Unsure)
		if s.stock(testSKU).State != Frozen {
			t.Fatalf("stock %+v", s.stock(testSKU))
		}
		if out := d.buy("6", ""); out.Code != NotOnSale || out.State != Frozen {
			t.Errorf("closed: %v", out)
		}
		time.Sleep(3 * time.Second)
		if s.stock(testSKU).Held != 0 {
			t.Errorf("stock %+v", s.stock(testSKU))
		}
		if _, err := s.SetState(t.Context(), testSKU, On); err != nil {
			t.Fatal(err)
		}
		wants(t, "reconciled", d.buy("7", ""), Held)
	})
}

// What was sent before an outage may still arrive after it. While the ledger cannot be asked, an orphan is not
// taken for one that never came.
func TestResolver_OrphanThatComesAfterALongOutageIsReleased(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 5)
		d := opened(t, testOptions(), s, nil)
		var late func()
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after { // sent, and on its way
				deadline := d.nextDeadline()
				late = func() {
					_, err := s.Reserve(
						t.Context(),
						testSKU,
						0,
						1,
						deadline,
						[]Item{{Serial: "k", User: "7", Quantity: 1}},
						make([]Code, 1),
					)
					testkit.Check(t, err)
				}
			}
			return errNetwork
		})
		wants(t, "in the outage", d.buy("7", "k"), Unsure)
		time.Sleep(3 * time.Minute)
		looked := s.count("find")
		s.set(nil)
		for s.count("find") == looked {
			time.Sleep(time.Second)
		}
		late()
		testkit.Want(t, "held", s.stock(testSKU).Held, 1)
		time.Sleep(10 * time.Minute)
		// less than the hold lasts
		testkit.Want(t, "held", s.stock(testSKU).Held, 0)
	})
}

// A sending that was not answered may arrive after its repetition, which was rejected: where a unit has come
// back by then it reserves that unit for no client.
func TestResolver_SendingThatComesAfterItsRejectedRepetitionIsReleased(t *testing.T) {
	for want, refusing := range map[Code]func(*Stock){
		SoldOut:   func(st *Stock) { st.Free, st.Total = 0, 0 },
		NotOnSale: func(st *Stock) { st.State = Paused },
	} {
		at(t, func(t *testing.T) {
			s := fakeStoreOf(testSKU, 1)
			s.say(refusing)
			d := opened(t, testOptions(), s, nil)
			deadline := int64(0)
			s.set(func(op string, after bool) error {
				if op != "reserve" || after || deadline != 0 {
					return nil
				}
				deadline = d.nextDeadline()
				return errNetwork
			})
			wants(t, "put again", d.buy("7", "k"), want)
			s.say(func(st *Stock) { st.State, st.Total, st.Free, st.Ver = On, 1, 1, st.Ver+1 })
			testkit.Must[StockVersion](t)(
				s.Reserve(
					t.Context(),
					testSKU,
					0,
					1,
					deadline,
					[]Item{{Serial: "k", User: "7", Quantity: 1}},
					make([]Code, 1),
				),
			)
			if s.stock(testSKU).Held != 1 {
				t.Fatal("it took no unit: this has tried nothing")
			}
			time.Sleep(time.Minute) // less than the hold lasts
			if st := s.stock(testSKU); st.Held != 0 || st.Free != 1 {
				t.Errorf("%v: stock %+v", want, st)
			}
			wants(t, "the next order", d.buy("8", ""), Held)
		})
	}
}

// What is found out of a doubt says nothing of what became of its serial meanwhile: one more unsure call, of which
// the oldest are forgotten, or an order that was forwarded.
func TestResolver_KeepsASerialThatChangedMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(*Reserver, *skuQueue){
		"unsure":    func(d *Reserver, l *skuQueue) { d.markOrphan(l, "k", maxOrphans+1) },
		"forwarded": func(d *Reserver, l *skuQueue) { d.markUnresolved(l, "k", 0, math.MaxInt64) },
	} {
		at(t, func(t *testing.T) {
			d := opened(t, testOptions(), fakeStoreOf(testSKU, 5), nil)
			l := d.open([]byte(testSKU))
			l.mu.Lock()
			for i := range int64(maxOrphans) {
				d.markOrphan(l, "k", i+1)
			}
			q := question{queue: l, serial: "k", unresolved: *l.unresolved["k"]}
			meanwhile(d, l)
			l.mu.Unlock()
			d.resolver.endAttempt(q, gone)
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.unresolved["k"] == nil {
				t.Error(name, "and forgotten")
			}
		})
	}
}
