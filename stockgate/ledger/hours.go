package ledger

import (
	"math"
	"time"
)

// What a SKU is that is on, outside of its hours. Nothing ever keeps these: they follow from the time.
const (
	Waiting State = "waiting" // it opens later
	Over    State = "over"    // it has closed
)

// At is the state at now (Unix ms): that which is kept, unless it is on and the hours say Waiting or Over.
func (h Hint) At(now int64) State {
	switch {
	case h.State != On:
		return h.State
	case now < h.Opens:
		return Waiting
	case h.Closes != 0 && now >= h.Closes:
		return Over
	}
	return On
}

// refusal is why the SKU was not on sale at now, by a ledger that said so.
func (h Hint) refusal(now int64) Outcome {
	out := Outcome{Code: NotOnSale, State: h.At(now)}
	if out.State == On { // it has opened since
		out.State = Waiting
	}
	if out.State == Waiting {
		out.Opens = h.Opens
	}
	return out
}

const (
	forever = math.MaxInt64
	longest = int64(1e12) // ms, some 31 years: as far ahead as nanoseconds reach
)

// schedule turns the hours of v, which are by the wall clock, into times of a clock that runs evenly and is read at the
// same moment. A wall clock that is set meanwhile counts from the next reply on.
func (v *view) schedule(wall time.Time, now int64) {
	v.from, v.until = math.MinInt64, forever
	if v.Opens != 0 {
		v.from = ahead(v.Opens, wall, now)
	}
	if v.Closes != 0 {
		v.until = ahead(v.Closes, wall, now)
	}
}

// ahead is when the wall clock will say at (Unix ms).
func ahead(at int64, wall time.Time, now int64) int64 {
	ms := min(max(at-wall.UnixMilli(), -longest), longest)
	return now + ms*int64(time.Millisecond) - wall.UnixNano()%int64(time.Millisecond)
}

// refusal is the answer from memory to an order for units that v closes at now, in ns.
func (v *view) refusal(now int64, code Code) Outcome {
	out := Outcome{Code: code, State: v.State}
	switch {
	case v.State != On:
	case now < v.from:
		out.State, out.Opens = Waiting, v.Opens
	case now >= v.until:
		out.State = Over
	}
	return out
}
