package ledger

// mergeCase is one case of merging what a witness says of an order into what is there.
type mergeCase struct{ There, Told, Then Said }

// mergeCases are the cases of Merge and of recover.lua, of a ledger that froze at the version 5|5.
func mergeCases() (all []mergeCase) {
	at := func(status Status, adopted bool, ver int64) Said {
		return Said{Status: status, Adopted: adopted, Epoch: 5, Ver: ver}
	}
	none, held := Said{}, Said{Status: StatusHeld}
	sold := Said{Status: StatusSold}
	adopted := func(ver int64) Said { return at(StatusSold, true, ver) }
	released := func(ver int64) Said { return at(StatusReleased, false, ver) }
	refunded := func(ver int64) Said { return at(StatusRefunded, false, ver) }
	old := Said{Status: StatusSold, Adopted: true, Epoch: 4, Ver: 9}
	earlier := Said{Status: StatusRefunded, Epoch: 4, Ver: 99}
	unanswered := Said{Status: StatusReleased, Epoch: 6}
	next := Said{Status: StatusRefunded, Epoch: 6, Ver: 1}
	for _, told := range []Said{held, sold, adopted(7), released(7), refunded(7)} {
		all = append(all, mergeCase{none, told, told}, mergeCase{held, told, told})
	}
	return append(all, []mergeCase{
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
