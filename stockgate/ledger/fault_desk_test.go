package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
				return errLost
			}
		}
		return nil
	}
}

func TestLostReplyTakesOneUnitASerial(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 1000)
		var lost atomic.Bool
		s.set(func(op string, after bool) error {
			if op == "reserve" && after && !lost.Swap(true) {
				return errLost
			}
			return nil
		})
		d := opened(t, deskOptions(), s, nil)
		out := d.buy("7", "k")
		wants(t, "executed, reply lost, asked again", out, Held)
		if s.stock(sku).Held != 1 || s.record(sku, "k").Deadline != out.Deadline {
			t.Errorf("stock %+v, %+v, %v", s.stock(sku), s.record(sku, "k"), out)
		}
		wants(t, "the client asks again", d.buy("7", "k"), ReplayHeld)
	})
}

func TestLostReplyTellsOneOfManyThatItWon(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 1000)
		s.set(func(op string, after bool) error {
			time.Sleep(time.Millisecond)
			if op == "reserve" && after && s.count(op) == 2 {
				return errLost
			}
			return nil
		})
		d := opened(t, deskOptions(), s, nil)
		go d.buy("8", "before") // the others share the call behind it
		synctest.Wait()
		var held, others atomic.Int64
		storm(200, 200, func(i int) {
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
		if held.Load() != 1 || s.stock(sku).Held != 2 || others.Load() != 20 && others.Load() != 180 {
			t.Errorf("%d held, %d others, stock %+v", held.Load(), others.Load(), s.stock(sku))
		}
	})
}

// A hold of the same second, and so of the same deadline, is still no lost reply's when its buyer was told of it.
func TestHoldOfTheSameSecondIsNotTakenForALostReply(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 1000)
		d := opened(t, deskOptions(), s, nil)
		wants(t, "first", d.buy("7", "k"), Held)
		s.set(func(op string, after bool) error {
			if op == "reserve" && after && s.count(op) == 2 {
				time.Sleep(2 * time.Second) // the next order's deadline is another
				return errLost
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
		if s.record(sku, "k").Status != 'H' || s.record(sku, "k2").Status != 'X' {
			t.Errorf("%+v, %+v", s.record(sku, "k"), s.record(sku, "k2"))
		}
	})
}

func TestUnsureRepetitionInTheSameSecondNeverReleasesTheWinner(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 5)
		d := opened(t, deskOptions(), s, nil)
		wants(t, "first", d.buy("7", "k"), Held)
		s.set(losing(0, 1, "reserve"))
		wants(t, "repeated at once", d.buy("7", "k"), Unsure)
		s.set(nil)
		time.Sleep(time.Minute)
		if s.record(sku, "k").Status != 'H' {
			t.Errorf("%+v", s.record(sku, "k"))
		}
	})
}

func TestReplayIsNotTakenForALostReply(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 1000)
		first, second := opened(t, deskOptions(), s, nil), opened(t, deskOptions(), s, nil)
		second.o.Mark = first.o.Mark ^ 1
		wants(t, "first", first.buy("7", "k"), Held)
		s.set(losing(0, 2, "reserve")) // every other reply
		for range 10 {
			wants(t, "elsewhere, replies lost", second.buy("7", "k"), ReplayHeld)
		}
	})
}

func TestUnsureOrderGivesItsUnitBack(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 5)
		d := opened(t, deskOptions(), s, nil)
		s.set(losing(0, 1, "reserve"))
		wants(t, "all replies lost", d.buy("7", "k"), Unsure)
		wants(t, "the same second", d.buy("7", "k"), Unsure)
		s.set(nil)
		calls := s.count("reserve")
		wants(t, "the same second, when replies come", d.buy("7", "k"), Unsure)
		if s.stock(sku).Held != 1 || s.count("reserve") != calls {
			t.Fatalf("stock %+v", s.stock(sku))
		}
		time.Sleep(1500 * time.Millisecond)
		if s.stock(sku).Held != 0 {
			t.Fatalf("stock %+v", s.stock(sku))
		}
		wants(t, "again with the key", d.buy("7", "k"), Released)
		wants(t, "again without a key", d.buy("7", ""), Held)
	})
}

// A hold of somebody who was told so is not a stray's, even if a call for the same serial was unsure.
func TestUnsureRepetitionNeverReleasesTheWinner(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 5)
		first, second := opened(t, deskOptions(), s, nil), opened(t, deskOptions(), s, nil)
		second.o.Mark = first.o.Mark ^ 1
		wants(t, "first", first.buy("7", "k"), Held)
		s.set(losing(0, 1, "reserve"))
		wants(t, "repeated elsewhere", second.buy("7", "k"), Unsure)
		wants(t, "repeated here", first.buy("8", "other"), Unsure)
		s.set(nil)
		time.Sleep(time.Minute)
		if s.record(sku, "k").Status != 'H' || s.stock(sku).Held != 1 {
			t.Errorf("%+v, stock %+v", s.record(sku, "k"), s.stock(sku))
		}
	})
}

func TestStaleEpochIsLearntAndTriedOnce(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 5)
		d := opened(t, deskOptions(), s, nil)
		wants(t, "first", d.buy("1", ""), Held)
		for _, state := range []State{Frozen, On} {
			if _, err := s.SetState(t.Context(), sku, state); err != nil {
				t.Fatal(err)
			}
		}
		wants(t, "in the next epoch", d.buy("2", ""), Held)
		if n := s.count("reserve"); n != 3 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestLostHistoryClosesTheSKU(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 10)
		d := opened(t, deskOptions(), s, nil)
		for i := range 5 {
			wants(t, "before", d.buy(fmt.Sprint(i), ""), Held)
		}
		s.put(sku, 10, 0) // a fail-over that lost it all
		wants(t, "after", d.buy("5", ""), Unsure)
		if s.stock(sku).State != Frozen {
			t.Fatalf("stock %+v", s.stock(sku))
		}
		if out := d.buy("6", ""); out.Code != NotOnSale || out.State != Frozen {
			t.Errorf("closed: %v", out)
		}
		time.Sleep(3 * time.Second)
		if s.stock(sku).Held != 0 {
			t.Errorf("stock %+v", s.stock(sku))
		}
		if _, err := s.SetState(t.Context(), sku, On); err != nil {
			t.Fatal(err)
		}
		wants(t, "reconciled", d.buy("7", ""), Held)
	})
}

// The whole of it: messages are lost in both directions, clients repeat what was not answered through any desk,
// the shop settles. Every serial is forwarded at most once, nothing is oversold (the store panics), and at the end
// every hold in the ledger belongs to a forwarded order, or is gone.
func TestNothingIsForwardedTwiceOrLostWhateverTheNetworkDoes(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			at(t, func(t *testing.T) { unreliable(t, seed) })
		})
	}
}

func unreliable(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	s := shelfOf(sku, 60)
	var mu sync.Mutex // of r
	chance := func(percent int) bool {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(100) < percent
	}
	faults := func(op string, after bool) error {
		time.Sleep(time.Millisecond)
		if chance(25) {
			return errLost
		}
		return nil
	}
	s.set(faults)
	o := deskOptions()
	o.Timeout, o.MaxWait = 250*time.Millisecond, time.Second
	desks := []*Desk{opened(t, o, s, nil), opened(t, o, s, nil), opened(t, o, s, nil)}
	for i, d := range desks {
		d.o.Mark = int64(i + 1)
	}
	forwarded := make(map[string]Op)
	storm(200, 50, func(i int) {
		user, key := fmt.Sprint("u", i%120), "" // some users order twice
		if i%2 == 0 {
			key = fmt.Sprint("k", i%120)
		}
		for range 6 {
			mu.Lock()
			d := desks[r.IntN(len(desks))]
			mu.Unlock()
			out := d.buy(user, key)
			if out.Code == Held {
				op := Confirm
				if chance(30) {
					op = Release
				}
				mu.Lock()
				if forwarded[out.Serial] != "" {
					t.Errorf("%s was forwarded twice", out.Serial)
				}
				forwarded[out.Serial] = op
				mu.Unlock()
				d.Settle(sku, Item{Serial: out.Serial}, op)
				return
			}
			time.Sleep(300 * time.Millisecond)
		}
	})
	s.set(nil)
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	sold := int64(0)
	for serial, op := range forwarded {
		want := byte('C')
		if op == Release {
			want = 'X'
		} else {
			sold++
		}
		if got := s.record(sku, serial); got.Status != want {
			t.Errorf("%s: %c, want %c", serial, got.Status, want)
		}
	}
	if st := s.stock(sku); st.Held != 0 || st.Sold != sold {
		t.Errorf("%d orders at the shop, stock %+v", sold, st)
	}
}

// What was sent before an outage may still arrive after it. While nobody can look, a stray is not taken for one that never came.
func TestStrayThatComesAfterALongOutageGivesItsUnitBack(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 5)
		d := opened(t, deskOptions(), s, nil)
		var late func()
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after { // sent, and on its way
				deadline := d.until()
				late = func() {
					_, err := s.Reserve(t.Context(), sku, 0, 1, deadline, []Item{{"k", "7", 1}}, make([]Code, 1))
					check(t, err)
				}
			}
			return errLost
		})
		wants(t, "in the outage", d.buy("7", "k"), Unsure)
		time.Sleep(3 * time.Minute)
		looked := s.count("find")
		s.set(nil)
		for s.count("find") == looked {
			time.Sleep(time.Second)
		}
		late()
		want(t, "held", s.stock(sku).Held, 1)
		time.Sleep(10 * time.Minute) // less than the hold lasts
		want(t, "held", s.stock(sku).Held, 0)
	})
}

// A sending that was not answered may arrive after the one that was put again, and was refused: where a unit has come back by then it
// takes that for nobody.
func TestSendingThatComesAfterItsRepetitionWasRefusedGivesItsUnitBack(t *testing.T) {
	for want, refusing := range map[Code]func(*Stock){
		SoldOut:   func(st *Stock) { st.Free, st.Total = 0, 0 },
		NotOnSale: func(st *Stock) { st.State = Paused },
	} {
		at(t, func(t *testing.T) {
			s := shelfOf(sku, 1)
			s.say(refusing)
			d := opened(t, deskOptions(), s, nil)
			deadline := int64(0)
			s.set(func(op string, after bool) error {
				if op != "reserve" || after || deadline != 0 {
					return nil
				}
				deadline = d.until()
				return errLost
			})
			wants(t, "put again", d.buy("7", "k"), want)
			s.say(func(st *Stock) { st.State, st.Total, st.Free, st.Ver = On, 1, 1, st.Ver+1 })
			must[Hint](t)(s.Reserve(t.Context(), sku, 0, 1, deadline, []Item{{"k", "7", 1}}, make([]Code, 1)))
			if s.stock(sku).Held != 1 {
				t.Fatal("it took no unit: this has tried nothing")
			}
			time.Sleep(time.Minute) // less than the hold lasts
			if st := s.stock(sku); st.Held != 0 || st.Free != 1 {
				t.Errorf("%v: stock %+v", want, st)
			}
			wants(t, "whoever comes then", d.buy("8", ""), Held)
		})
	}
}

// What is found out of a doubt says nothing of what became of its serial meanwhile: one more unsure call, of which the oldest are
// forgotten, or an order that was forwarded.
func TestDoubtThatGrowsWhileItIsLookedIntoStays(t *testing.T) {
	for name, meanwhile := range map[string]func(*Desk, *line){
		"unsure":    func(d *Desk, l *line) { d.stray(l, "k", mostUnsure+1) },
		"forwarded": func(d *Desk, l *line) { d.wonder(l, "k", 0, math.MaxInt64) },
	} {
		at(t, func(t *testing.T) {
			d := opened(t, deskOptions(), shelfOf(sku, 5), nil)
			l := d.open([]byte(sku))
			l.mu.Lock()
			for i := range int64(mostUnsure) {
				d.stray(l, "k", i+1)
			}
			q := question{line: l, serial: "k", doubt: *l.doubts["k"]}
			meanwhile(d, l)
			l.mu.Unlock()
			d.close(q, gone)
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.doubts["k"] == nil {
				t.Error(name, "and forgotten")
			}
		})
	}
}
