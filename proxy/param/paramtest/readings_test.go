package paramtest

import (
	"fmt"
	"testing"
)

// Each row is one reading, and stands once.
func TestReadings_RowsAreWhole(t *testing.T) {
	known := map[string]bool{}
	for _, row := range Readings {
		id := fmt.Sprint(row.Kind, row.Input)
		if known[id] || len(row.Readers) == 0 || row.Input == "" {
			t.Errorf("%q: twice, or without a reader", row.Input)
		}
		known[id] = true
		for _, r := range row.Readers {
			if r >= NumReaders {
				t.Errorf("%q: reader %d", row.Input, r)
			}
		}
	}
}
