package protocol

// What a record can be. A serial without one is none.
const (
	StatusNone     = byte(0)
	StatusHeld     = byte('H')
	StatusSold     = byte('C')
	StatusReleased = byte('X')
	StatusRefunded = byte('R')
)

// Next is what op makes of a record: its next state, or the answer when nothing changes (to is none then). The same
// table as in finish.lua.
func Next(op Op, from byte) (to byte, answer Done) {
	gone := from == StatusReleased || from == StatusRefunded
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
	case gone:
		return StatusNone, WasReleased
	}
	return StatusRefunded, Changed
}

// Replay answers for a serial that was used before.
func Replay(r Record, i Item) Code {
	switch {
	case r.Status == StatusReleased || r.Status == StatusRefunded:
		return Released
	case r.User != i.User || r.Quantity != i.Quantity || r.Cart != i.Cart && r.Cart != AnyCart:
		return OtherOrder
	case r.Status == StatusSold:
		return ReplaySold
	}
	return ReplayHeld
}
