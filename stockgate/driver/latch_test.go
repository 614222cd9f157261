package driver

import "testing"

func TestAnAnswerFromBeforeUnitsCameBackClosesNothing(t *testing.T) {
	l := newLatches(100)
	no := &order{sku: "1001", quantity: 1, why: notEnough}
	l.learn(10, no)
	if found, closed := l.closed(11, []byte("1001"), 1); !closed || found != notEnough {
		t.Fatalf("%s %v", found, closed)
	}
	l.forget(20, "1001")
	l.learn(15, no) // a batch that was under way meanwhile
	if _, closed := l.closed(21, []byte("1001"), 1); closed {
		t.Error("the units that came back are not for sale")
	}
	if found, closed := l.probe(21, "1001", 1); closed || found != taken {
		t.Errorf("%s %v", found, closed)
	}
	l.learn(25, no)
	if _, closed := l.closed(26, []byte("1001"), 1); !closed {
		t.Error("it never closes again")
	}
}
