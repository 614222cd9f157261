package stockgate

import (
	"fmt"
	"testing"

	"sluice/proxy/reject"
)

func TestSoldOutCache_ReadingFromBeforeUnitsCameBackClosesNothing(t *testing.T) {
	c := newSoldOutCache()
	c.Close(10, "1001", 1, reject.SoldOut)
	if reason, at, closed := c.Lookup([]byte("1001"), 1); !closed || reason != reject.SoldOut || at != 10 {
		t.Fatalf("%s %d %v", reason, at, closed)
	}
	c.Open(20, "1001")
	c.Close(15, "1001", 1, reject.SoldOut) // a call that was under way meanwhile
	if _, _, closed := c.Lookup([]byte("1001"), 1); closed {
		t.Error("the units that came back are not for sale")
	}
	c.Open(18, "1001") // news that came late
	c.Close(25, "1001", 1, reject.SoldOut)
	if _, _, closed := c.Lookup([]byte("1001"), 1); !closed {
		t.Error("it never closes again")
	}
}

func TestSoldOutCache_FewerUnitsThanWereNotThereAreNotKnown(t *testing.T) {
	c := newSoldOutCache()
	c.Close(10, "1001", 5, reject.SoldOut)
	c.Close(10, "1001", 3, reject.SoldOut)
	c.Close(10, "1001", 4, reject.SoldOut)
	for units, want := range map[int64]bool{2: false, 3: true, 9: true} {
		if _, _, closed := c.Lookup([]byte("1001"), units); closed != want {
			t.Errorf("%d units: closed %v", units, closed)
		}
	}
}

func TestSoldOutCache_LookupOfAnotherSKUKnowsNothing(t *testing.T) {
	c := newSoldOutCache()
	for i := range 2 * soldOutSlots { // every slot has been used
		c.Close(int64(i), fmt.Sprint(i), 1, reject.UnknownSKU)
	}
	if reason, _, closed := c.Lookup([]byte("other"), 1); closed {
		t.Errorf("another SKU is %s", reason)
	}
}

func TestSoldOutCache_LookupAllocatesNothing(t *testing.T) {
	c, sku := newSoldOutCache(), []byte("1001")
	c.Close(10, "1001", 1, reject.SoldOut)
	if n := testing.AllocsPerRun(100, func() { c.Lookup(sku, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
