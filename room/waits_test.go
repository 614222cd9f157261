package room

import (
	"testing"
	"time"
)

func TestWaits_QuantilesAreOfTheirClass(t *testing.T) {
	for wait, want := range map[time.Duration]int{0: 0, time.Second: 0, 1001 * time.Millisecond: 1, 2 * time.Second: 2,
		4 * time.Second: 4, 5 * time.Second: 5, 1000 * time.Hour: WaitClasses - 1} {
		if got := waitClass(wait); got != want {
			t.Errorf("%v is of class %d, want %d", wait, got, want)
		}
	}
	var w Waits
	if _, ok := w.Quantile(0.5); ok {
		t.Error("a wait is known of no people")
	}
	for s := 1; s <= 100; s++ { // 1 to 100 s, evenly
		w[waitClass(time.Duration(s)*time.Second)]++
	}
	for share, exact := range map[float64]float64{0.5: 50, 0.9: 90} {
		got, ok := w.Quantile(share)
		if s := got.Seconds(); !ok || s < exact-0.1 || s > 1.42*exact {
			t.Errorf("the wait of %v is %v, and exactly %v s", share, got, exact)
		}
	}
}

func TestWaited_BeginsWithTheStart(t *testing.T) {
	for _, c := range []struct{ joined, called, starts int64 }{{1000, 9000, 4000}, {4000, 9000, 0}, {4000, 9000, 1000}} {
		if got := waited(c.joined, c.called, c.starts); got != 5*time.Second {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
