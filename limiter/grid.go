package limiter

import "time"

// Grid lays windows on the caller's clock. A field beyond its range counts as the nearest value within it.
type Grid struct {
	Size time.Duration // width of a window: 1 ms to 1 h
	// how much earlier than a multiple of Size this instance's windows begin; any value, modulo Size
	Phase    time.Duration
	MaxAhead int // how many windows ahead may be booked: 0 (reject at once) to 63
}

const (
	maxCarry = ringSize - 1

	// A window's number takes the upper 38 bits of every word: 8 years of windows of 1 ms, 87 years of 10 ms.
	numberBits = 38
	lowBits    = 64 - numberBits
	maxNumber  = 1<<numberBits - 1
)

// grid is a Grid whose fields are within their ranges.
type grid struct {
	size, phase int64 // nanoseconds; 0 <= phase < size
	carry       int64 // windows
}

func (g Grid) within() grid {
	size := min(max(g.Size, time.Millisecond), time.Hour)
	phase := g.Phase % size
	if phase < 0 {
		phase += size
	}
	return grid{int64(size), int64(phase), int64(min(max(g.MaxAhead, 0), maxCarry))}
}

// number says which window now falls in. Numbers begin at ringSize, so that a word that is all zeros is of a window
// that is over, however far ahead is booked.
func (g *grid) number(now int64) int64 {
	return ((now+g.phase)/g.size + ringSize) & maxNumber
}

// until is the time from now to the start of window n, or 0 when that has begun.
func (g *grid) until(n, now int64) time.Duration {
	return time.Duration(max(g.begins(n)-now, 0))
}

// begins is when window n begins, on the caller's clock.
func (g *grid) begins(n int64) int64 { return (n-ringSize)*g.size - g.phase }
