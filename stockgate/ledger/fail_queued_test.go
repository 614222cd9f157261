package ledger

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Orders that come while a call hangs would else wait for it, and then for their own, which hangs too.
func TestReserver_OrderWaitsForAtMostOneCallThatHangs(t *testing.T) {
	const hangs = 100 * time.Millisecond
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1000)
		o := testOptions()
		o.Resend = hangs
		d := opened(t, o, s, nil)
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				time.Sleep(hangs)
				return errNetwork
			}
			return nil
		})
		heard := make(chan time.Duration, 50)
		for i := range cap(heard) {
			go func() {
				began := time.Now()
				wants(t, "order", d.buy(fmt.Sprint(i), ""), Unsure)
				heard <- time.Since(began)
			}()
			synctest.Wait()
			time.Sleep(7 * time.Millisecond)
		}
		for range cap(heard) {
			if waited := <-heard; waited > hangs {
				t.Errorf("an order waited for %v, and one call hangs for %v", waited, hangs)
			}
		}
		s.set(nil)
		wants(t, "afterwards", d.buy("last", ""), Held)
	})
}

// Nothing was sent for those who were sent away: no doubt is kept, and their next try is as good as the first.
func TestReserver_OrderThatWasNotSentIsNotUnresolved(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		o := testOptions()
		o.Tries = 1
		d := opened(t, o, s, nil)
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				time.Sleep(time.Second)
				return errNetwork
			}
			return nil
		})
		go d.buy("first", "first")
		synctest.Wait()
		wants(t, "behind it", d.buy("second", "second"), Unsure)
		s.set(nil)
		l := d.skus.Find([]byte(testSKU))
		l.mu.Lock()
		unresolved := l.unresolved["second"] != nil
		l.mu.Unlock()
		if unresolved {
			t.Error("an order that was never sent is in doubt")
		}
		wants(t, "again", d.buy("second", "second"), Held)
	})
}
