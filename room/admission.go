package room

import "math"

// Move is by how much a room moves on.
type Move struct {
	Calls     int64 // people who are called
	Serving   int64 // the new one
	Threshold int64 // likewise
}

// Move computes how many people are to be called now, at most most of them: as many as are expected to place an order
// for the free units, times the overshoot, less those who have a pass or were called and may still come. It never
// depends on how many places are not claimed: what counts is claims.
func (r *Rules) Move(s *State, most int64) Move {
	m := Move{Serving: s.Serving, Threshold: s.Threshold}
	if !s.moves() {
		return m
	}
	m.Calls = min(most, s.Waiting())
	if s.Stocked {
		m.Calls = min(m.Calls, r.wanted(s))
	}
	if m.Calls <= 0 {
		m.Calls = 0
		return m
	}
	r.advance(s, &m)
	return m
}

// wanted is how many people the free units want.
func (r *Rules) wanted(s *State) int64 {
	if !s.Known || s.Free <= 0 {
		return 0
	}
	came := s.ShareThatComes(r)
	want := math.Ceil(float64(s.Free)*r.Overshoot/s.ShareThatOrders()) - float64(s.Inside) - float64(s.Pending(r))*came
	return int64(math.Ceil(min(want/came, 1<<40)))
}

// Pending is how many people were called lately, and may still claim a pass.
func (s *State) Pending(r *Rules) int64 { return max(s.Called-s.decided(r)-s.Lately, 0) }

// decided is how many people were called so long ago that none of them can claim a pass any more.
func (s *State) decided(r *Rules) int64 {
	return s.stepAt(s.At - (r.Notice(s) + r.ClaimWithin).Milliseconds()).Called
}

// ShareThatOrders is the share of decided passes with which an order was placed: 1 at first, and never below leastUsed.
func (s *State) ShareThatOrders() float64 {
	return max(float64(s.Used+1)/float64(s.Used+s.Expired+1), leastUsed)
}

// ShareThatComes is the share of those called who claimed a pass, among people who cannot do so any more: 1 at first,
// and never below leastUsed.
func (s *State) ShareThatComes(r *Rules) float64 {
	return min(max(float64(s.Claimed-s.Lately+1)/float64(s.decided(r)+1), leastUsed), 1)
}

// advance moves the threshold to its end, and then the number.
func (r *Rules) advance(s *State, m *Move) {
	calls := m.Calls
	if s.Draw && s.Lottery.Drawn() && s.Threshold < ScoreEnd {
		left := s.undrawn(0)
		if calls >= left {
			m.Threshold = ScoreEnd
			calls -= left
		} else {
			step := int64(float64(calls) / float64(s.InDraw()) * float64(ScoreEnd))
			m.Threshold = min(s.Threshold+max(step, 1), ScoreEnd)
			calls = 0
		}
	}
	if from := max(s.Serving, s.Early); s.Draw && s.Lottery.Drawn() && calls > 0 {
		m.Serving = min(from+calls, s.Issued)
	} else if calls > 0 {
		m.Serving = min(s.Serving+calls, s.Issued)
	}
}

// Chance is how many units are not sold for each one who waits, at most 1. It is of a state whose stock is known.
func (s *State) Chance() float64 {
	units := float64(s.Free + s.Held)
	if waiting := float64(s.Waiting()); waiting > units {
		return units / waiting
	}
	return 1
}
