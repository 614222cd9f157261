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
