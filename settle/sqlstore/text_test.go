package sqlstore

import (
	"testing"

	"sluice/stockgate/ledger"
)

// FuzzText: what a client chooses as a serial is stored as it is, so that a shop which writes it into sluice_giveback
// names this order and no other.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"a1", `\x6131`, `\X6131`, "\x00", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, serial string) {
		if original(stored(serial)) != serial {
			t.Fatalf("%q is read as %q", stored(serial), original(stored(serial)))
		}
		if ledger.ValidSerial([]byte(serial)) && original(serial) != serial {
			t.Fatalf("what the shop writes for %q is read as %q", serial, original(serial))
		}
	})
}
