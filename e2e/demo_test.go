package e2e

import (
	"strings"
	"testing"
)

// A small sale from end to end, the failures of the demonstration's shop included: the exit code is the verdict.
func TestDemo_BooksBalance(t *testing.T) {
	t.Parallel()
	out := ok(t, "demo", "--shoppers=120", "--units=60", "--patience=40s")
	wants(t, out, "  reserve\n", "  oversold"+strings.Repeat(" ", 35)+"0\n", "The ledger balances: ", " given back; ",
		" lost responses resolved.")
	if strings.Contains(out, "BROKEN") {
		t.Errorf("something is broken:\n%s", out)
	}
}

// Where the shop takes the units itself, the gate keeps no ledger.
func TestDemo_SellsByCheckWhereAsked(t *testing.T) {
	t.Parallel()
	out := ok(t, "demo", "--gate=check", "--shoppers=60", "--units=10", "--patience=40s")
	wants(t, out, "  check\n", "10 of 10\n", "  oversold"+strings.Repeat(" ", 35)+"0\n")
	for _, never := range []string{"BROKEN", "ledger"} {
		if strings.Contains(out, never) {
			t.Errorf("it says %q:\n%s", never, out)
		}
	}
}
