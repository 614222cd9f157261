package room

// Words of operators. No word means that the room goes by itself.
const (
	OverrideHold  = "hold"
	OverrideDrain = "drain"
	OverrideOff   = "off"
)

// Sale is what the schedule says of the room's sale. The zero value is that of a room without a sale.
type Sale struct {
	Starts int64 // Unix ms; 0 = it is always on
	Ends   int64 // Unix ms; 0 = never
	Paused bool  // by an operator
	Ended  bool  // likewise, or by the time
}

// PhaseAt tells what the room does, by its state, an operator's word and the sale.
func (r *Rules) PhaseAt(s *State, word string, sale Sale) Phase {
	stocked := s.Stocked && s.Known
	switch {
	case word == OverrideOff:
		return Off
	case sale.Ended || sale.Ends != 0 && s.At >= sale.Ends:
		return Over
	case sale.Starts != 0 && s.At < sale.Starts-r.Opens.Milliseconds():
		return Closed
	case s.At < sale.Starts:
		return PreQueue
	case s.Draw && !s.Lottery.Drawn():
		return Drawing
	case stocked && s.Free <= 0 && s.Held <= 0:
		return Over
	case word == OverrideHold || sale.Paused:
		return Hold
	case stocked && s.Free <= 0:
		return LastChance
	case word == OverrideDrain:
		return Drain
	}
	return Open
}

// Admits reports whether people may join in this phase.
func (p Phase) Admits() bool {
	switch p {
	case PreQueue, Drawing, Open, LastChance, Hold:
		return true
	}
	return false
}

// Waits reports whether people wait in this phase. At the end a client has not heard of it yet, perhaps: what it knows
// is of its last answer, and the phase may have changed while its request was on the way.
func (p Phase) Waits() bool { return p != Over && p != Off }

// Passes reports whether a person who is called may claim a pass in this phase.
func (p Phase) Passes() bool {
	switch p {
	case Open, LastChance, Hold, Drain:
		return true
	}
	return false
}
