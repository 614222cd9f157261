package proxy

// Shelf is what everybody may know of a SKU. Both answer from memory, at once or nearly so.
type Shelf interface {
	// Show tells what is known of sku at now (monotonic ns). It does not keep sku.
	Show(now int64, sku []byte) Shown

	// Time is now as Unix milliseconds of the clock that all instances share.
	Time(now int64) int64
}

// Shown is one SKU as shoppers may see it.
type Shown struct {
	Phase  Phase
	Free   int64 // units; below 0 = nobody can tell
	Opens  int64 // Unix ms, of Waiting; 0 = nobody can tell
	Closes int64 // Unix ms; 0 = never
}

// Phase is where a SKU stands.
type Phase uint8

// The phases, in the order in which most SKUs go through them.
const (
	Unknown Phase = iota // nobody knows the SKU, or its stock cannot be told now
	Waiting              // it opens later
	Open
	Halted // an operator or the shop has paused it
	Gone   // no unit is free
	Over   // it is not sold any more
	numPhases
)

// String is the phase as clients read it.
func (p Phase) String() string {
	return [numPhases]string{"unknown", "waiting", "open", "paused", "sold_out", "ended"}[p]
}

// Show says how much of the stock shoppers are told.
type Show struct {
	Exact bool  // the number
	Few   int64 // so many units or less are few; below 0 = nothing is told of what is left
}
