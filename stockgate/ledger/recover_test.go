package ledger

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// fallen is a ledger of 1001 with 9 units whose tail was lost: two instances, of which the first sold "a" before and
// "a2" in the tail, and the second "b" and "b2". Both speak to the replica now, which freezes at the first call.
func fallen(t *testing.T, lost func(a, b *Redis)) (a, b *Redis, x *exchange, p *pair) {
	t.Helper()
	p = newPair(t)
	x = exchangeTo(t, p.master)
	a, b = p.through(x), p.through(x)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	takes(t, b, "b")
	p.cut()
	takes(t, a, "a2")
	takes(t, b, "b2")
	if lost != nil {
		lost(a, b)
	}
	x.turn(p.replica.Addr)
	until(t, "it freezes", func() bool {
		_, h := takes(t, a, "new")
		return h.State == Frozen
	})
	return a, b, x, p
}

// tells lets r tell 1001 what it knows.
func tells(t *testing.T, r *Redis) (s story) {
	t.Helper()
	until(t, "it tells", func() (ok bool) {
		var err error
		s, err = r.recover(t.Context(), "1001", time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli())
		return err == nil
	})
	return s
}

func statusOf(t *testing.T, r *Redis, serial string) string {
	t.Helper()
	record, ok, err := r.Find(t.Context(), "1001", serial)
	check(t, err)
	if !ok {
		return "none"
	}
	return string(record.Status)
}

func TestFrozenSKUOpensWhenEveryInstanceHasTold(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	want(t, "the tail", statusOf(t, a, "a2"), "none")
	s := tells(t, a)
	want(t, "while the other is silent", s.State, Frozen)
	want(t, "waits", fmt.Sprint(s.waits), fmt.Sprint([]string{b.instance}))
	want(t, "put back", statusOf(t, a, "a2"), "H")
	takes(t, b, "new") // it hears of the epoch
	want(t, "the first has not told what it did to others' orders", tells(t, b).State, Frozen)
	s = tells(t, a)
	want(t, "opened", s.opened, true)
	want(t, "state", s.State, On)
	for _, serial := range []string{"a", "a2", "b", "b2"} {
		want(t, serial, statusOf(t, b, serial), "H")
	}
	want(t, "held", s.Held, 4)
	want(t, "nothing is left to tell", len(a.untold())+len(b.untold()), 1)
	want(t, "over", tells(t, b).over, true)
	want(t, "nothing is left to tell", len(a.untold())+len(b.untold()), 0)
	code, _ := takes(t, a, "new")
	want(t, "then", code, Held)
	for field := range must[map[string]string](t)(hashAt(t, a)) {
		if strings.HasPrefix(field, "rc:") {
			t.Errorf("%s is left", field)
		}
	}
}

func TestWhatWasDoneInTheTailIsDoneAgain(t *testing.T) {
	a, b, _, _ := fallen(t, func(a, b *Redis) {
		want(t, "by who sold it", do(t, a, Confirm, "a2"), Changed)
		want(t, "by another", do(t, a, Confirm, "b2"), Changed)
		want(t, "given back", do(t, b, Release, "b"), Changed)
		want(t, "by another, then back", do(t, b, Confirm, "a"), Changed)
		want(t, "back", do(t, b, Refund, "a"), Changed)
		want(t, "adopted", do(t, b, Adopt, "shop"), Changed)
	})
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	for serial, status := range map[string]string{"a": "X", "a2": "C", "b": "X", "b2": "C", "shop": "C"} {
		want(t, serial, statusOf(t, a, serial), status)
	}
	s := stockOf1001(t, a)
	want(t, "state", s.State, On)
	want(t, "held", s.Held, 0)
	want(t, "sold", s.Sold, 3)
}

// An order that the shop confirms while its hold is lost must not be held for ever.
func TestSettlingWhileFrozenIsNotLost(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	want(t, "not known now", do(t, a, Confirm, "a2"), NotFound)
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	want(t, "a2", statusOf(t, a, "a2"), "C")
	want(t, "b2", statusOf(t, a, "b2"), "H")
}

func TestInstanceThatIsGoneKeepsTheSKUFrozen(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	for range 5 {
		s := tells(t, a)
		want(t, "state", s.State, Frozen)
		want(t, "waits", len(s.waits), 1)
	}
	want(t, "adopted by hand", do(t, a, Adopt, "b2"), Changed)
	must[Stock](t)(a.SetState(t.Context(), "1001", On))
	code, _ := takes(t, a, "new")
	want(t, "opened by hand", code, Held)
	code, _ = takes(t, b, "late")
	want(t, "the other comes after all", code, Held)
	tells(t, b)
	want(t, "what it knows is sold already", statusOf(t, b, "b2"), "C")
}

// All that an instance ever wrote for the SKU may be in the tail: then no roll has its name.
func TestInstanceThatTheRollMissedIsWaitedFor(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, late := p.through(x), p.through(x)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	p.cut()
	takes(t, late, "tail")
	takes(t, a, "a2")
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	takes(t, late, "new")
	want(t, "waits", fmt.Sprint(tells(t, a).waits), fmt.Sprint([]string{late.instance}))
	tells(t, late)
	tells(t, a)
	tells(t, late)
	want(t, "tail", statusOf(t, a, "tail"), "H")
	want(t, "state", stockOf1001(t, a).State, On)
}

func TestWhoComesAfterTheSKUHasOpenedStillTells(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, late := p.through(x), p.through(x)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 3, 0))
	takes(t, a, "a")
	p.cut()
	takes(t, late, "tail")
	takes(t, a, "a2")
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	tells(t, a)
	want(t, "state", stockOf1001(t, a).State, On)
	for _, serial := range []string{"1", "2"} {
		takes(t, a, serial)
	}
	takes(t, late, "new")
	s := tells(t, late)
	want(t, "over", s.over, true)
	want(t, "tail", statusOf(t, a, "tail"), "H")
	want(t, "free", s.Free, -1) // an alarm, and not silence
}

func TestJournalThatIsTooShortDoesNotVouch(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a := p.through(x)
	a.journal = newJournal(2)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "before")
	p.cut()
	for _, serial := range []string{"1", "2", "3"} {
		takes(t, a, serial)
	}
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	for range 3 {
		s := tells(t, a)
		want(t, "state", s.State, Frozen)
	}
	want(t, "the oldest", statusOf(t, a, "1"), "none")
	want(t, "the newest", statusOf(t, a, "3"), "H")
}

func TestWhatAnOperatorFrozeOrPausedStaysSo(t *testing.T) {
	for was, then := range map[State]State{Paused: Paused, Ended: Ended, Frozen: Frozen} {
		p := newPair(t)
		x := exchangeTo(t, p.master)
		a := p.through(x)
		must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
		must[Stock](t)(a.SetState(t.Context(), "1001", was))
		p.cut()
		do(t, a, Adopt, "tail")
		x.turn(p.replica.Addr)
		takes(t, a, "new")
		tells(t, a)
		tells(t, a)
		s := stockOf1001(t, a)
		want(t, "state", s.State, then)
		want(t, "sold", s.Sold, 1)
	}
}

// A master that was paused comes back after its replica has taken over: what it holds is older than what was seen.
func TestOldMasterThatComesBackSellsNothing(t *testing.T) {
	a, b, x, p := fallen(t, nil)
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	want(t, "the new one", stockOf1001(t, a).State, On)
	y := exchangeTo(t, p.master)
	x.turn(y.Addr)
	for _, r := range []*Redis{a, b} {
		for i := range 3 {
			code, h := takes(t, r, fmt.Sprint("old", i))
			want(t, "on the old one", code, NotOnSale)
			want(t, "state", h.State, Frozen)
			s := tells(t, r)
			want(t, "told", s.State, Frozen)
		}
	}
	x.turn(p.replica.Addr)
	until(t, "the new one sells on", func() bool {
		for _, r := range []*Redis{a, b} {
			takes(t, r, "back")
			tells(t, r)
		}
		return stockOf1001(t, a).State == On
	})
}

// A new ledger after the old one is gone has none of its orders: its total is what the shop has left.
func TestALedgerThatWasMadeAnewIsNotToldOfOldOrders(t *testing.T) {
	server, r := onRedis(t)
	check(t, server.Client.FlushAll(t.Context()).Err())
	takes(t, r, "new")
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 3, 2))
	tells(t, r)
	s := stockOf1001(t, r)
	want(t, "held", s.Held, 0)
	want(t, "state", s.State, On)
	want(t, "untold", len(r.untold()), 0)
}

func TestAnOperatorsFreezeIsNotOpenedByAnybodyElse(t *testing.T) {
	_, r := onRedis(t)
	r.settle = 0
	must[Stock](t)(r.SetState(t.Context(), "1001", Frozen))
	s := tells(t, r)
	want(t, "state", s.State, Frozen)
	want(t, "over", s.over, true)
	want(t, "by hand", s.byHand(), true)
	want(t, "state", stockOf1001(t, r).State, Frozen)
}

func hashAt(t *testing.T, r *Redis) (fields map[string]string, err error) {
	err = r.link.Do(t.Context(), func(ctx context.Context, c *redis.Client) error {
		fields, err = c.HGetAll(ctx, hashOf1001).Result()
		return err
	}, fault)
	return fields, err
}

// Who leaves in good order while a SKU is frozen tells all before: nobody else could.
func TestInstanceThatLeavesTellsBefore(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	takes(t, b, "new")
	check(t, b.Close())
	tells(t, a)
	tells(t, a)
	want(t, "b2", statusOf(t, a, "b2"), "H")
	want(t, "state", stockOf1001(t, a).State, On)
}
