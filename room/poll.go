package room

import (
	"math"
	"time"
)

const (
	// pollDivisor is by what a client divides its ETA to have the pause until its next poll.
	pollDivisor = 10

	spreadBy   = 15          // % by which a pause is longer or shorter, at most
	stepLength = time.Second // a step has the time of the first call of its second
	soonFactor = 2           // people who may be called soon, for each that the units want now: the shares may fall
)

// Notice is how long before a person may claim a pass the call is published: the longest pause of those who may be
// called soon. So all people of a call know of it when the first of them may claim, however they poll. A room that
// follows no stock gives none: its people do not compete for units.
func (r *Rules) Notice(s *State) time.Duration {
	if !s.Stocked {
		return 0
	}
	return r.shortCeiling() + stepLength
}

// shortCeiling is the longest pause of those who may be called soon, and of all who wait for the end.
func (r *Rules) shortCeiling() time.Duration { return max(r.PollFloor, r.PollCeiling/4) }

// Ceiling is the longest pause between two polls. It is short where anyone may be called soon, which is before a draw,
// and while all units are held, so that the end is heard soon.
func (r *Rules) Ceiling(s *State) time.Duration {
	switch {
	case s.Stocked && s.Known && s.Phase == LastChance, s.Phase == Drawing, s.Draw && r.startsSoon(s):
		return r.shortCeiling()
	}
	return r.PollCeiling
}

// startsSoon reports that a client whose pause is the longest one may sleep through the start.
func (r *Rules) startsSoon(s *State) bool {
	return s.Phase == PreQueue && s.Starts-s.At <= r.PollCeiling.Milliseconds()
}

// soon is about how many of those who wait may be called before the longest pause has passed: more than the units want,
// with those that may come back; without stock so many a second. Their pauses are short.
func (r *Rules) soon(s *State) int64 {
	switch {
	case !s.Phase.Passes() && !r.startsSoon(s):
		return 0
	case !s.Stocked:
		return int64(math.Ceil(min(r.PerSecond*r.PollCeiling.Seconds(), 1<<40)))
	case !s.Known:
		return s.Waiting()
	}
	want := float64(s.Free+s.Held) * r.Overshoot / s.ShareThatOrders() / s.ShareThatComes(r)
	return int64(math.Ceil(min(soonFactor*want, 1<<40)))
}

// NextPoll is for how long a client at pos does well to wait until it polls again: a part of its ETA within the floor
// and the ceiling, longer or shorter by chance, so that clients that came together do not stay together. All who are
// called together come at one moment: when they may claim a pass.
func (r *Rules) NextPoll(s *State, pos *Position) time.Duration {
	switch {
	case pos.State == IsCalled:
		return r.PollFloor
	case pos.State == IsWaiting && pos.From != 0:
		return time.Duration(pos.ETA) * time.Millisecond
	}
	most, pause := r.Ceiling(s), r.PollCeiling
	if pos.Ahead != unknown && pos.Ahead < r.soon(s) {
		most = r.shortCeiling()
	}
	if pos.ETA != unknown {
		pause = min(max(time.Duration(pos.ETA)*time.Millisecond/pollDivisor, r.PollFloor), r.PollCeiling)
	}
	pause = min(pause, most*100/(100+spreadBy))
	const parts = 2*spreadBy + 1
	return pause * time.Duration(100-spreadBy+(uint64(s.At)*0x9E3779B97F4A7C15>>33)%parts) / 100
}
