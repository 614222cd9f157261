package ledger

import (
	"testing"
)

func TestMerge_WhatIsFinalWins(t *testing.T) {
	for _, c := range mergeCases() {
		if then := Merge(c.There, c.Told); then != c.Then {
			t.Errorf("%c %+v is told %c %+v: %c %+v, want %+v", c.There.Status, c.There, c.Told.Status, c.Told, then.Status,
				then, c.Then)
		}
	}
}

// Witnesses tell in any order. What comes of an order must not depend on it, but for a release of what is sold, where
// the ledger's word stands.
func TestMerge_OrderOfWitnessesDoesNotCount(t *testing.T) {
	var words []Said
	for _, ver := range []int64{1, 2, 3} {
		words = append(words, Said{Status: StatusRefunded, Epoch: 5, Ver: ver},
			Said{Status: StatusSold, Adopted: true, Epoch: 5, Ver: ver})
	}
	words = append(words, Said{Status: StatusHeld}, Said{Status: StatusSold})
	for _, a := range words {
		for _, b := range words {
			for _, c := range words {
				first := Merge(Merge(Merge(Said{}, a), b), c)
				second := Merge(Merge(Merge(Said{}, c), b), a)
				if first.Status != second.Status {
					t.Errorf("%+v, %+v, %+v: %c, and in the other order %c", a, b, c, first.Status, second.Status)
				}
			}
		}
	}
}
