package ledger

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Nothing is known of the SKU yet, so that one call goes ahead and the others wait for what it finds out.
func TestWhoWaitsForACallThatFindsOutNothingIsNotLeftAlone(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 5)
		o := deskOptions()
		o.Tries = 1
		d := opened(t, o, s, nil)
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				time.Sleep(50 * time.Millisecond)
				return errLost
			}
			return nil
		})
		heard := make(chan Outcome, 3)
		for i := range cap(heard) {
			go func() { heard <- d.buy(fmt.Sprint(i), "") }()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		want(t, "who heard something", len(heard), cap(heard))
	})
}

// Whoever waits for what another one finds out is not left behind when that one has waited for too long.
func TestWhoAttendsAProberThatComesTooLateIsNotLeftAlone(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 2)
		o := deskOptions()
		o.SoldOutMemory, o.MaxWait = 50*time.Millisecond, 200*time.Millisecond
		d := opened(t, o, s, nil)
		for _, winner := range []string{"ann", "bob"} {
			wants(t, winner, d.buy(winner, winner), Held)
		}
		d.winnersRead(t, sku)
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				time.Sleep(400 * time.Millisecond)
			}
			return nil
		})
		heard := make(chan Outcome, 3)
		come := func(name string, units int64) {
			order := attempt(name, name)
			order.Quantity = units
			go func() { heard <- d.Reserve(d.o.Now(), order) }()
			time.Sleep(60 * time.Millisecond)
		}
		come("ann", 1) // looks, and the store is slow
		come("bob", 1) // probes, in the next call
		come("zoe", 2) // attends bob
		must[Stock](t)(s.Add(t.Context(), sku, 1, ""))
		time.Sleep(time.Minute)
		want(t, "who heard something", len(heard), cap(heard))
	})
}
