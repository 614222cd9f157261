package ledger

// What a record can be. A serial without one is none.
const (
	none     = byte(0)
	held     = byte('H')
	sold     = byte('C')
	released = byte('X')
	refunded = byte('R') // told from released only so that a second refund hears "already"
)

// turn is what op makes of a record: its next state, or the answer when nothing changes (to is none then). The same
// table as in finish.lua.
func turn(op Op, from byte) (to byte, answer Done) {
	gone := from == released || from == refunded
	switch {
	case op == Adopt && from == sold:
		return none, Already
	case op == Adopt:
		return sold, Changed
	case op == Release && (from == held || from == none):
		return released, Changed
	case op == Release && from == sold:
		return none, WasSold
	case op == Release:
		return none, Already
	case from == none:
		return none, NotFound
	case op == Confirm && from == held:
		return sold, Changed
	case op == Confirm && from == sold, op == Refund && from == refunded:
		return none, Already
	case gone:
		return none, WasReleased
	}
	return refunded, Changed
}
