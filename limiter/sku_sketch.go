package limiter

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// skuSketch keeps one window for each SKU in memory that no client can grow: lines of eight cells, each cell a word
// that says which window, which SKU and how many.
//
//	63            26 25     16 15             0
//	window's number | SKU's tag | places booked
//
// A SKU has one cell for each window in which something of it is booked, in a line that SKU and number choose
// together by a seeded hash: a bad neighbourhood lasts for one window, and no client can aim at another's. A cell whose
// window is over is free, so a SKU is forgotten exactly when nothing is left to remember: reuse is no amnesty.
// Two SKUs that share line and tag share the places of that window, and a line with eight other SKUs in it has no
// room: a false rejection, never an overshoot.
//
// That holds because a cell's number only rises and a cell is found by first fit: those before it in its line were
// not free for its window when it was taken, and never will be. A cell may only be reused by a window that is more
// than carry later, so that a goroutine that still books the older one can tell, by the number alone, that it is over.
type skuSketch struct {
	seed    maphash.Seed
	shift   uint8 // 64 - log2(len(lines))
	carry   int64
	lines   []line
	tallies [stripes]struct {
		tally
		_ cacheLine
	}
}

// line is one cache line, so that looking for a SKU costs one miss at most.
type line [8]atomic.Uint64

const (
	stripes = 16

	skuBookedBits = 16
	maxSKUBooked  = 1<<skuBookedBits - 1
	tagMask       = 1<<(lowBits-skuBookedBits) - 1
)

// newSKUs returns a table of 64 bytes for each of n SKUs, rounded up to a power of two.
func newSKUs(n int, carry int64) *skuSketch {
	logLines := bits.Len(uint(min(max(n, 1), 1<<24) - 1))
	return &skuSketch{
		seed:  maphash.MakeSeed(),
		shift: uint8(64 - logLines),
		carry: carry,
		lines: make([]line, 1<<logLines),
	}
}

// book takes one of most places of the SKU that hashes to hash in window n and returns the cell it is booked in; nil =
// no room.
func (s *skuSketch) book(n int64, hash uint64, most int64) *atomic.Uint64 {
	if most <= 0 {
		return nil
	}
	at := mix(hash, n)
	row := at >> s.shift
	mine := uint64(n)<<lowBits | (at&tagMask)<<skuBookedBits
	line := &s.lines[row]
	for i := 0; i < len(line); {
		cell := &line[i]
		old := cell.Load()
		holds := int64(old >> lowBits)
		next := mine | 1
		switch {
		case old&^maxSKUBooked == mine:
			if int64(old&maxSKUBooked) >= most {
				return nil
			}
			next = old + 1
		case holds > n+s.carry:
			return nil // n is over
		case holds >= n-s.carry:
			i++ // another SKU's, and its window may be under way
			continue
		}
		if cell.CompareAndSwap(old, next) {
			s.tallies[row%stripes].count(int64(next&maxSKUBooked), most, next != old+1)
			return cell
		}
	}
	return nil
}

// full tells, by loading alone, that book would reject.
func (s *skuSketch) full(n int64, hash uint64, most int64) bool {
	if most <= 0 {
		return true
	}
	at := mix(hash, n)
	mine := uint64(n)<<lowBits | (at&tagMask)<<skuBookedBits
	line := &s.lines[at>>s.shift]
	for i := range line {
		old := line[i].Load()
		switch holds := int64(old >> lowBits); {
		case old&^maxSKUBooked == mine:
			return int64(old&maxSKUBooked) >= most
		case holds > n+s.carry:
			return true
		case holds < n-s.carry:
			return false
		}
	}
	return true
}

// giveBack returns the place that book took in cell for window n. The cell stays, so that first fit holds.
func (s *skuSketch) giveBack(cell *atomic.Uint64, n int64) {
	for {
		old := cell.Load()
		if int64(old>>lowBits) != n {
			return // n is over, and its places with it
		}
		if cell.CompareAndSwap(old, old-1) {
			return
		}
	}
}

// mix spreads hash anew for each window: multiply and shift, as hash finalisers do.
func mix(hash uint64, n int64) uint64 {
	x := hash ^ uint64(n)*0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return x ^ x>>32
}
