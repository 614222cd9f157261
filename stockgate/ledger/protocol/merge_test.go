package protocol_test

import (
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestMerge_WhatIsFinalWins(t *testing.T) {
	for _, c := range ledgertest.MergeCases() {
		if then := protocol.Merge(c.There, c.Told); then != c.Then {
			t.Errorf("%c %+v is told %c %+v: %c %+v, want %+v", c.There.Status, c.There, c.Told.Status, c.Told, then.Status,
				then, c.Then)
		}
	}
}

// Witnesses tell in any order. What comes of an order must not depend on it, but for a release of what is sold, where
// the ledger's word stands.
func TestMerge_OrderOfWitnessesDoesNotCount(t *testing.T) {
	var words []protocol.Said
	for _, ver := range []int64{1, 2, 3} {
		words = append(words, protocol.Said{Status: protocol.StatusRefunded, Epoch: 5, Ver: ver},
			protocol.Said{Status: protocol.StatusSold, Adopted: true, Epoch: 5, Ver: ver})
	}
	words = append(words, protocol.Said{Status: protocol.StatusHeld}, protocol.Said{Status: protocol.StatusSold})
	for _, a := range words {
		for _, b := range words {
			for _, c := range words {
				first := protocol.Merge(protocol.Merge(protocol.Merge(protocol.Said{}, a), b), c)
				second := protocol.Merge(protocol.Merge(protocol.Merge(protocol.Said{}, c), b), a)
				if first.Status != second.Status {
					t.Errorf("%+v, %+v, %+v: %c, and in the other order %c", a, b, c, first.Status, second.Status)
				}
			}
		}
	}
}
