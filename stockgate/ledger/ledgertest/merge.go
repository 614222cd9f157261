package ledgertest

import "sluice/stockgate/ledger/protocol"

// MergeCase is one case of merging what a witness says of an order into what is there.
type MergeCase struct{ There, Told, Then protocol.Said }

// MergeCases are the cases of protocol.Merge and of recover.lua, of a ledger that froze at the version 5|5.
func MergeCases() (all []MergeCase) {
	at := func(status protocol.Status, adopted bool, ver int64) protocol.Said {
		return protocol.Said{Status: status, Adopted: adopted, Epoch: 5, Ver: ver}
	}
	none, held := protocol.Said{}, protocol.Said{Status: protocol.StatusHeld}
	sold := protocol.Said{Status: protocol.StatusSold}
	adopted := func(ver int64) protocol.Said { return at(protocol.StatusSold, true, ver) }
	released := func(ver int64) protocol.Said { return at(protocol.StatusReleased, false, ver) }
	refunded := func(ver int64) protocol.Said { return at(protocol.StatusRefunded, false, ver) }
	old := protocol.Said{Status: protocol.StatusSold, Adopted: true, Epoch: 4, Ver: 9}
	earlier := protocol.Said{Status: protocol.StatusRefunded, Epoch: 4, Ver: 99}
	unanswered := protocol.Said{Status: protocol.StatusReleased, Epoch: 6}
	next := protocol.Said{Status: protocol.StatusRefunded, Epoch: 6, Ver: 1}
	for _, told := range []protocol.Said{held, sold, adopted(7), released(7), refunded(7)} {
		all = append(all, MergeCase{none, told, told}, MergeCase{held, told, told})
	}
	return append(all, []MergeCase{
		{sold, held, sold}, {sold, sold, sold}, {sold, released(9), sold}, {sold, refunded(1), refunded(1)},
		{sold, refunded(9), refunded(9)}, {sold, earlier, earlier}, {sold, adopted(2), adopted(2)},
		{released(7), held, released(7)}, {released(7), sold, released(7)}, {released(7), released(6), released(7)},
		{released(7), released(9), released(9)}, {released(7), refunded(9), released(9)},
		{refunded(7), held, refunded(7)}, {refunded(7), sold, refunded(7)}, {refunded(7), released(6), refunded(7)},
		{refunded(7), refunded(9), refunded(9)}, {refunded(7), released(9), refunded(9)},

		// An adoption and a give-back are of a version each.
		{adopted(7), held, adopted(7)}, {adopted(7), sold, adopted(7)}, {adopted(7), released(9), released(9)}, {adopted(7), released(6), adopted(7)}, {adopted(7), unanswered, adopted(7)},
		{adopted(7), refunded(6), adopted(7)}, {adopted(7), earlier, adopted(7)}, {adopted(7), refunded(7), refunded(7)},
		{adopted(7), refunded(8), refunded(8)}, {adopted(7), next, next},
		{adopted(7), adopted(6), adopted(7)}, {adopted(7), adopted(8), adopted(8)}, {adopted(7), old, adopted(7)},
		{released(7), adopted(6), released(7)}, {released(7), adopted(7), released(7)}, {released(7), old, released(7)},
		{released(7), adopted(8), adopted(8)}, {refunded(7), adopted(6), refunded(7)},
		{refunded(7), adopted(7), refunded(7)}, {refunded(7), adopted(8), adopted(8)}, {refunded(7), old, refunded(7)},
		{next, adopted(99), next}, {earlier, adopted(1), adopted(1)},
	}...)
}
