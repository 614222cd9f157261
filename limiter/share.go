package limiter

import "time"

// Share is the part of the caps that falls to one of several instances, which keep them together. The zero value is
// the whole.
//
// Caps are divided window by window: of a cap of 20 and three instances two have 7 places in a window and the third
// has 6, in turn, and of a cap of 1 each has every third window. Over as many windows as there are instances, each
// has the same; in one window of the clock they share, the parts of all sum up to the cap exactly.
type Share struct {
	Rank int // this instance's place among them, from 0; one that is not below Of has no part, and admits nothing
	Of   int // how many they are; 0 = 1, at most 1048576

	// Clock is what to add to the caller's now to have the clock that all instances share, to within a few
	// milliseconds. Where they share none the parts are the same, but their turns meet: on average alone they sum up to
	// the cap.
	Clock time.Duration
}

// share is a Share in one word: how many instances above, whose turn window 0 is below; 0 = the whole.
type share uint64

const (
	whole  share = 0
	noPart share = 1

	maxInstances = 1 << 20
)

// on says whose turn it is on the windows of g.
func (s Share) on(g grid) share {
	of := int64(min(max(s.Of, 1), maxInstances))
	if s.Rank < 0 || int64(s.Rank) >= of {
		return noPart
	}
	if of == 1 {
		return whole
	}
	ahead := (int64(s.Clock) - g.phase) % (g.size * of) // of the clock that numbers the windows; only turns matter
	if ahead < 0 {
		ahead += g.size * of
	}
	turn := (int64(s.Rank) + ahead/g.size + of - ringSize%of) % of
	return share(of)<<32 | share(turn)
}

// maxInWindow is how much of most places falls to this instance in window n.
func (s share) maxInWindow(n, most int64) int64 {
	if s == whole {
		return most
	}
	of := int64(s >> 32)
	if of == 0 {
		return 0
	}
	turn := (n + int64(s&(1<<32-1))) % of
	return (turn+1)*most/of - turn*most/of
}
