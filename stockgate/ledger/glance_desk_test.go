package ledger

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// glanced asks for n SKUs at the same instant, and returns what each heard and after how long.
func glanced(d *Desk, from, n int) (codes map[Code]int, longest time.Duration) {
	type heard struct {
		Code
		after int64
	}
	all := make(chan heard, n)
	for i := range n {
		go func() {
			o, began := attempt("somebody", ""), d.o.Now()
			o.SKU = fmt.Append(nil, "many-", from+i)
			all <- heard{d.Reserve(began, o).Code, d.o.Now() - began}
		}()
	}
	codes = make(map[Code]int)
	for range n {
		h := <-all
		codes[h.Code]++
		longest = max(longest, time.Duration(h.after))
	}
	return codes, longest
}

// oldSoldOut is manySoldOut, all of them asked for so long ago that each is to be looked at.
func oldSoldOut(t *testing.T, o DeskOptions, n int) (*Desk, *shelf) {
	t.Helper()
	s := newShelf()
	for i := range n {
		s.put(fmt.Sprint("many-", i), 0, 0)
	}
	d := opened(t, o, s, nil)
	askAll(t, d, n, SoldOut)
	time.Sleep(time.Second + 1)
	return d, s
}

func TestGlanceLeavesAtOnceAndThoseThatFollowGather(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := oldSoldOut(t, deskOptions(), 40)
		_, after := glanced(d, 0, 1)
		want(t, "the first waits for", after, 0)
		time.Sleep(glanceEvery / 2)
		codes, after := glanced(d, 1, 39)
		want(t, "sold out", codes[SoldOut], 39)
		want(t, "the others wait for", after, glanceEvery/2)
		want(t, "calls", s.count("glance"), 2)
		time.Sleep(time.Second)
		_, after = glanced(d, 0, 1)
		want(t, "one after a pause waits for", after, 0)
	})
}

func TestManyGlancesLeaveInFullCalls(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := oldSoldOut(t, deskOptions(), probesAtOnce)
		s.set(func(op string, after bool) error {
			if op == "glance" && !after {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		glanced(d, 0, probesAtOnce)
		if n := s.count("glance"); n > 4 || s.glances != probesAtOnce {
			t.Errorf("%d calls for %d SKUs", n, s.glances)
		}
	})
}

// Units came back and nobody has told: who looks buys one of them.
func TestGlanceThatFindsUnitsLetsTheOrderStand(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := oldSoldOut(t, deskOptions(), 3)
		for i := range 3 {
			must[Stock](t)(s.Add(t.Context(), fmt.Sprint("many-", i), 1, ""))
		}
		codes, _ := glanced(d, 0, 3)
		want(t, "held", codes[Held], 3)
		codes, _ = glanced(d, 0, 3)
		want(t, "the same user again", codes[ReplayHeld], 3)
	})
}

func TestGlanceThatBrokeIsTakenAgain(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := oldSoldOut(t, deskOptions(), 5)
		s.set(func(op string, after bool) error {
			if op == "glance" && after && s.count(op) == 1 {
				return errLost
			}
			return nil
		})
		codes, _ := glanced(d, 0, 5)
		want(t, "sold out", codes[SoldOut], 5)
	})
}

// Nothing was taken for who waited for it, and who comes next may look.
func TestGlanceThatFailsTakesNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := oldSoldOut(t, deskOptions(), 5)
		s.set(losing(1, 0, "glance"))
		codes, _ := glanced(d, 0, 5)
		want(t, "unsure", codes[Unsure], 5)
		want(t, "sendings", s.count("glance"), 0)
		s.set(nil)
		for i := range 5 {
			l := d.lines.find(fmt.Append(nil, "many-", i))
			want(t, "doubts", len(l.doubts), 0)
			want(t, "orders that wait", len(l.asked), 0)
		}
		codes, _ = glanced(d, 0, 5)
		want(t, "the next ones", codes[SoldOut], 5)
	})
}

// A call that hangs holds nobody up but those whose call it is; past a few of them nobody waits for longer than MaxWait.
func TestGlanceThatHangsHoldsUpNoOther(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.Timeout, o.MaxWait, o.Tries = 10*time.Second, 500*time.Millisecond, 1
		d, s := oldSoldOut(t, o, glancesAtOnce+2)
		hang := make(chan struct{})
		s.set(func(op string, after bool) error {
			if op == "glance" && !after {
				<-hang
			}
			return nil
		})
		answers := make(chan Code, glancesAtOnce)
		for i := range glancesAtOnce - 1 {
			go func() {
				codes, _ := glanced(d, i, 1)
				for c := range codes {
					answers <- c
				}
			}()
			time.Sleep(glanceEvery)
		}
		s.set(nil) // whoever has left hangs on
		codes, after := glanced(d, glancesAtOnce, 1)
		want(t, "beside those that hang", codes[SoldOut], 1)
		want(t, "waits for", after, 0)
		s.set(func(op string, after bool) error {
			if op == "glance" && !after {
				<-hang
			}
			return nil
		})
		go glanced(d, glancesAtOnce-1, 1)
		time.Sleep(time.Second)
		go func() {
			time.Sleep(501 * time.Millisecond)
			close(hang)
		}()
		codes, _ = glanced(d, glancesAtOnce+1, 1)
		want(t, "past them, too late", codes[Overloaded], 1)
		for range glancesAtOnce - 1 {
			want(t, "those that hung", <-answers, SoldOut)
		}
	})
}

// What a glance finds can be older than what was known: then the order asks itself, and the desk compares.
func TestGlanceAtALedgerThatForgotLeadsToTheOrdersOwnCall(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		d.Note(sku, Hint{Epoch: 1, Ver: 50, State: On, Taken: 2}) // by another way, and newer
		time.Sleep(time.Second + 1)
		if out := d.buy("1", ""); out.Code != NotOnSale && out.Code != SoldOut {
			t.Error(out)
		}
		want(t, "glances", s.count("glance"), 1)
		want(t, "state", s.stock(sku).State, Frozen)
		want(t, "losses", d.lost.Load(), 1)
	})
}

// Who may be a buyer that comes again asks the store with the order itself.
func TestOrderThatMayBeABuyersTakesNoGlance(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.MaxWinners = 1
		s := shelfOf(sku, 2)
		d, other := opened(t, o, s, nil), opened(t, o, s, nil)
		wants(t, "winner", d.buy("ann", "a"), Held)
		wants(t, "winner", d.buy("bob", "b"), Held)
		other.closedAfter(t, "zoe")
		time.Sleep(time.Second + 1)
		wants(t, "a winner whom nobody knows there", other.buy("ann", "a"), ReplayHeld)
		want(t, "glances", s.count("glance"), 0)
	})
}

func TestWinnersRetryAsksForItselfWhileTheLedgerIsDoubted(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		s.say(func(st *Stock) { st.State = Doubted })
		wants(t, "a loser", other.buy("zoe", ""), NotOnSale)
		time.Sleep(time.Duration(doubtFor) + 1)
		wants(t, "the winner elsewhere", other.buy("winner", "won"), ReplayHeld)
		wants(t, "the winner at home", d.buy("winner", "won"), ReplayHeld)
	})
}

// Whoever waits for a look of its own fits into a call, whatever else waits there.
func TestNoCallHasMoreOrdersThanItMay(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		l := d.lines.find([]byte(sku))
		l.mu.Lock()
		var all []*ticket
		for i := range mostItems + 1 {
			k := &known{line: l, serial: fmt.Sprint("serial ", i), quantity: 1}
			tk := &ticket{known: k, at: d.o.Now(), item: Item{Serial: k.serial, Quantity: 1}, out: make(chan Outcome, 1)}
			l.asked[k.serial] = tk
			all = append(all, tk)
		}
		l.looking = slices.Clone(all)
		d.dispatch(l)
		l.mu.Unlock()
		for _, tk := range all {
			wants(t, "sold out", <-tk.out, SoldOut)
		}
		want(t, "the most in a call", s.peak, mostItems)
	})
}

func TestClosingDeskAnswersThoseWhoWaitForAGlance(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := oldSoldOut(t, deskOptions(), 3)
		hang := make(chan struct{})
		s.set(func(op string, after bool) error {
			if op == "glance" && !after {
				<-hang
			}
			return nil
		})
		heard := make(chan map[Code]int)
		go func() {
			codes, _ := glanced(d, 0, 3)
			heard <- codes
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() {
			time.Sleep(time.Second)
			close(hang)
		}()
		d.Close(ctx)
		codes := <-heard
		want(t, "answers", codes[Unsure]+codes[SoldOut]+codes[Overloaded], 3)
	})
}

// A unit came back and was sold again through another instance. Who has it comes again here while somebody looks: the latch,
// which is from before that, does not answer.
func TestKeyOfAWinnerElsewhereWaitsForWhoLooks(t *testing.T) {
	at(t, func(t *testing.T) {
		s, o := shelfOf(sku, 1), deskOptions()
		elsewhere, d := opened(t, o, s, nil), opened(t, o, s, nil)
		first := elsewhere.buy("u1", "k-1")
		want(t, "the first order", first.Code, Held)
		want(t, "another", d.buy("u2", "k-2").Code, SoldOut)
		synctest.Wait() // who has won is read
		elsewhere.Settle(sku, Item{Serial: first.Serial}, Release)
		synctest.Wait()
		want(t, "the second order", elsewhere.buy("u3", "k-3").Code, Held)
		time.Sleep(150 * time.Millisecond)
		s.set(func(op string, after bool) error {
			if op == "glance" && !after {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		looks := make(chan Code)
		go func() { looks <- d.buy("u4", "k-4").Code }()
		time.Sleep(10 * time.Millisecond)
		want(t, "the winner's order again", d.buy("u3", "k-3").Code, ReplayHeld)
		want(t, "who looked", <-looks, SoldOut)
		want(t, "orders that wait", len(d.lines.find([]byte(sku)).asked), 0)
	})
}

// Where nobody can look, who waits for that is answered as the latch says, and at the same time.
func TestWhoWaitsForAGlanceThatFailsHearsTheLatch(t *testing.T) {
	at(t, func(t *testing.T) {
		s, o := shelfOf(sku, 1), deskOptions()
		d := opened(t, o, s, nil)
		want(t, "the first order", d.buy("u1", "k-1").Code, Held)
		want(t, "another", d.buy("u2", "k-2").Code, SoldOut)
		time.Sleep(150 * time.Millisecond)
		s.set(func(op string, after bool) error {
			if op == "glance" && !after {
				time.Sleep(o.Timeout)
				return errLost
			}
			return nil
		})
		looks := make(chan Code)
		go func() { looks <- d.buy("u4", "k-4").Code }()
		time.Sleep(time.Millisecond)
		codes := make(chan Code)
		for i := range 20 {
			go func() { codes <- d.buy("u5", fmt.Sprint("k-5-", i)).Code }()
		}
		want(t, "who looked", <-looks, Unsure)
		began := time.Now()
		for range 20 {
			want(t, "who waited for that", <-codes, SoldOut)
		}
		want(t, "longer than that", time.Since(began), 0)
	})
}
