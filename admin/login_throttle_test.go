package admin

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Answers that wait hold connections: few do at a time.
func TestWrongTokens_FewWaitAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, start := NewLoginThrottle(), netip.MustParseAddr("192.0.2.1"), time.Now()
		for range wrongPerClient {
			if wait, _ := d.Rejected(client, start); wait != 0 {
				t.Fatal("slowed too early")
			}
		}
		var waiting sync.WaitGroup
		for range maxWrongPaused {
			waiting.Go(func() { d.Rejected(client, start) })
		}
		synctest.Wait()
		if wait, _ := d.Rejected(client, start); wait == 0 || !time.Now().Equal(start) {
			t.Errorf("one more waits: %v, told %v", time.Since(start), wait)
		}
		waiting.Wait()
		if time.Since(start) != wrongPause {
			t.Errorf("they waited %v", time.Since(start))
		}
	})
}

func TestWrongTokens_OfAnIPv6ClientAreThoseOfItsNetwork(t *testing.T) {
	if got := clientOf("[2001:db8::1:2:3:4]:5"); got != netip.MustParseAddr("2001:db8::") {
		t.Errorf("an IPv6 client is %v, not its /64", got)
	}
}
