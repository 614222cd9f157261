package ledger

import "time"

// Next is what op makes of a record: its next state, or the answer when nothing changes (to is none then). The same
// table as in finish.lua.
func Next(op Op, from Status) (to Status, answer Done) {
	switch {
	case op == Adopt && from == StatusSold:
		return StatusNone, Already
	case op == Adopt:
		return StatusSold, Changed
	case op == Release && (from == StatusHeld || from == StatusNone):
		return StatusReleased, Changed
	case op == Release && from == StatusSold:
		return StatusNone, WasSold
	case op == Release:
		return StatusNone, Already
	case from == StatusNone:
		return StatusNone, NotFound
	case op == Confirm && from == StatusHeld:
		return StatusSold, Changed
	case op == Confirm && from == StatusSold, op == Refund && from == StatusRefunded:
		return StatusNone, Already
	case from == StatusRefunded:
		return StatusNone, WasRefunded
	case from == StatusReleased:
		return StatusNone, WasReleased
	}
	return StatusRefunded, Changed
}

// replay answers for a serial that was used before.
func replay(r Record, i Item) Code {
	switch {
	case r.Status == StatusRefunded:
		return Refunded
	case r.Status == StatusReleased:
		return Released
	case r.User != i.User || r.Quantity != i.Quantity || r.Cart != i.Cart && r.Cart != AnyCart:
		return OtherOrder
	case r.Status == StatusSold:
		return ReplaySold
	}
	return ReplayHeld
}

// KeepReleased is how long a released serial is remembered: longer than any message is late.
const KeepReleased = 24 * time.Hour

// Said is what a witness, or the ledger itself, has of one order.
type Said struct {
	Status  Status
	Adopted bool // of a sold one: an operator has said so

	// Since is the version in which it was adopted, released or refunded; zero = before all others that are known.
	Epoch, Ver int64
}

// later reports whether s is of a later version than t.
func (s Said) later(t Said) bool { return s.Epoch > t.Epoch || s.Epoch == t.Epoch && s.Ver > t.Ver }

// Merge is what an order becomes when there is what it is, and a witness tells another word of it; what is there when
// nothing changes. recover.lua has the same function, and the reasons.
//
// What is final wins, never what is newest: none < held < sold < refunded, held < released. An operator alone overrules
// that: an adoption and a give-back are compared by their versions, and of one version the give-back wins.
func Merge(there, told Said) Said {
	switch there.Status {
	case StatusNone:
		return told
	case StatusHeld:
		if told.Status != StatusHeld && told.Status != StatusNone {
			return told
		}
	case StatusSold:
		if told.Adopted && (!there.Adopted || told.later(there)) ||
			told.Status == StatusRefunded && !(there.Adopted && there.later(told)) ||
			told.Status == StatusReleased && told.Ver > 0 && there.Adopted && !there.later(told) {
			return told
		}
	default:
		if told.Adopted && told.later(there) {
			return told
		}
		if told.Status.Final() && told.later(there) {
			there.Epoch, there.Ver = told.Epoch, told.Ver
		}
	}
	return there
}
