package room

import (
	"math"
	"slices"
)

// Standing of a place. The values are what clients read.
const (
	IsWaiting = "waiting"
	IsCalled  = "called"
	IsMissed  = "missed"  // called, and did not come within Rules.ClaimWithin
	IsInvalid = "invalid" // of an earlier sale
	NoChance  = "none"    // of Position.Chance
	leastUsed = 0.05      // of claimed passes, at least, an order is expected
	unknown   = int64(-1)
)

// Position is where a place stands in a room.
type Position struct {
	State    string
	Score    int64 // in the draw; -1 = none, or not drawn yet
	Ahead    int64 // people before this one, about; -1 = not known
	ETA      int64 // ms until it is called, about; -1 = not known
	CalledAt int64 // Unix ms; 0 = not yet
	From     int64 // Unix ms: a pass may be claimed from then on; until then the place waits; 0 = it is not called
	Until    int64 // Unix ms: a pass must be claimed by then; 0 = it is not called
	Chance   string
}

// Position computes where the place of user stands in s. final decides the draw; nil = it was not made.
func (r *Rules) Position(s *State, final *Final, p Place, user []byte) Position {
	pos := Position{State: IsWaiting, Score: unknown, Ahead: unknown, ETA: unknown}
	if p.Joined < s.Opened/1000 {
		pos.State = IsInvalid
		return pos
	}
	drawn := s.inDraw(p)
	switch {
	case drawn && final == nil:
		return pos
	case drawn:
		pos.Score = final.Score(user)
	}
	if pos.CalledAt = s.calledAt(p.Number, pos.Score); pos.CalledAt != 0 {
		pos.From = pos.CalledAt + r.Notice(s).Milliseconds()
		pos.Until = pos.From + r.ClaimWithin.Milliseconds()
		pos.Ahead, pos.ETA = 0, max(pos.From-s.At, 0)
		switch {
		case s.At > pos.Until:
			pos.State = IsMissed
		case s.At >= pos.From:
			pos.State = IsCalled
		}
		return pos
	}
	pos.Ahead = s.ahead(p.Number, pos.Score)
	if rate := s.perSecond(); rate > 0 && s.moves() {
		pos.ETA = int64(min(float64(pos.Ahead+1)/rate*1000, math.MaxInt32*1000.0))
	}
	if s.Known && (s.Phase == Open || s.Phase == LastChance) && float64(pos.Ahead)*leastUsed >= float64(s.Free+s.Held) {
		pos.Chance = NoChance
	}
	return pos
}

// inDraw reports whether a place takes part in the draw. One that was taken behind an earlier draw, whose start was
// moved, takes part in the next one.
func (s *State) inDraw(p Place) bool {
	return s.Draw && (p.Flags&Early != 0 || p.Number <= s.Early || s.At < s.Starts)
}

// moves reports whether people may be called in this phase.
func (s *State) moves() bool { return s.Phase == Open || s.Phase == Drain }

// calledAt is when a number was called, or a score where it is not negative; 0 = not yet.
func (s *State) calledAt(number, score int64) int64 {
	called := func(step Step) bool { return step.Serving >= number }
	if score >= 0 {
		called = func(step Step) bool { return step.Threshold > score }
	}
	i, _ := slices.BinarySearchFunc(s.Steps, true, func(step Step, _ bool) int {
		if called(step) {
			return 0
		}
		return -1
	})
	if i == len(s.Steps) {
		return 0
	}
	return s.Steps[i].At
}

// ahead is about how many people are called before this number, or score where it is not negative.
func (s *State) ahead(number, score int64) int64 {
	if score >= 0 {
		return max(s.undrawn(0)-s.undrawn(score), 0)
	}
	if s.Lottery.Drawn() {
		return s.undrawn(0) + max(number-max(s.Serving, s.Early)-1, 0)
	}
	return max(number-s.Serving-1, 0)
}
