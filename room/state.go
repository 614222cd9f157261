package room

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// State is what all instances share of a room, as one of them has read it.
type State struct {
	Phase Phase
	At    int64 // Unix ms of the shared clock, when it was read

	Opened int64 // Unix ms: when the first ticket could be had; a ticket from before is of an earlier sale
	Starts int64 // Unix ms; 0 = there is no start
	Ends   int64 // Unix ms; 0 = never
	hours  int64 // the number of Starts and Ends: of two readings of a room the one with the higher number is right

	Issued      int64 // numbers that were given out
	Early       int64 // numbers that take part in the draw; known from the start on
	EarlyPeople int64 // people who do, about: a user has one score, and perhaps several numbers; 0 = as many as Early
	Serving     int64 // numbers up to this one are called
	Threshold   int64 // scores below this one are called

	Called  int64 // people who were called
	Claimed int64 // passes that were claimed; a pass that is claimed twice counts once
	Lately  int64 // of these, by people who were called within Rules.ClaimWithin
	Used    int64 // passes with which an order was placed
	Expired int64 // passes with which no order was placed within Rules.ClaimWithin
	People  int64 // who joined, about: each counts once
	Waits   Waits // of those who claimed a pass
	Inside  int64 // passes that were claimed within Rules.ClaimWithin, and not used: an order is expected of each

	Stocked bool  // the room follows the stock of a sale
	Known   bool  // Free and Held are known
	Free    int64 // units that are not held
	Held    int64 // units that may be sold later: held and not decided, or of SKUs that are paused or closed
	Returns int64 // Unix ms: by then all held units are decided; 0 = not known

	Rate    float64 // calls a second at most, by an operator; 0 = as configured
	Message string  // of an operator, for those who wait
	Draw    bool    // who comes before the start is drawn; later ones are called in their order behind them
	Lottery Lottery

	Told  Sale   // what the instance that has read this had told
	Moves int64  // how often the room has moved; the next move is made on this one
	Steps []Step // what was called when, the oldest first; the oldest of more than MaxSteps are dropped
	Count int64  // steps that there ever were
}

// MaxSteps is how many steps are kept: those of an hour in which there is one each second.
const MaxSteps = 3600

// Step is how far a room had moved at the end of a second in which it moved.
type Step struct {
	At        int64 `json:"at_ms"`
	Serving   int64 `json:"serving"`
	Threshold int64 `json:"threshold"`
	Called    int64 `json:"called"`
}

// stepAt is the last step at or before at (Unix ms); the zero Step when there is none.
func (s *State) stepAt(at int64) Step {
	i, _ := slices.BinarySearchFunc(s.Steps, at+1, func(step Step, at int64) int { return cmp.Compare(step.At, at) })
	if i == 0 {
		return Step{}
	}
	return s.Steps[i-1]
}

// perSecond is how many people were called a second, lately; 0 = none, or it is not known.
func (s *State) perSecond() float64 {
	const lately = 10_000 // ms
	before, seconds := s.stepAt(s.At-lately), float64(lately)/1000
	if before.At == 0 && len(s.Steps) > 0 && s.Count <= MaxSteps { // the first one is of less than that ago
		seconds = max(float64(s.At-s.Steps[0].At)/1000, 1)
	}
	return float64(s.Called-before.Called) / seconds
}

// Waiting is how many numbers and scores are not called yet, about.
func (s *State) Waiting() int64 {
	if !s.Lottery.Drawn() {
		return max(s.Issued-s.Serving, 0)
	}
	return s.undrawn(0) + max(s.Issued-max(s.Serving, s.Early), 0)
}

// undrawn is about how many people there are between the threshold, or score where it is higher, and the last score. It
// is 0 at the last score alone, so that the last one is called.
func (s *State) undrawn(score int64) int64 {
	rest := float64(ScoreEnd-max(s.Threshold, score)) / float64(ScoreEnd)
	return int64(math.Ceil(rest * float64(s.InDraw())))
}

// InDraw is about how many people take part in the draw.
func (s *State) InDraw() int64 {
	if s.EarlyPeople > 0 {
		return min(s.EarlyPeople, s.Early)
	}
	return s.Early
}

// String is the step as Redis has it: its numbers in their order.
func (s Step) String() string {
	return fmt.Sprintf("%d %d %d %d", s.At, s.Serving, s.Threshold, s.Called)
}
