package upstream

// Outcome says how far a request came. It is never inferred from an error's text.
type Outcome uint8

// The outcomes.
const (
	Answered Outcome = iota // the response is there
	NotSent                 // not one byte was written: it is certain that the upstream saw nothing
	TimedOut                // written in part or whole, no response in time: unknown
	Broken                  // written in part or whole, and no whole, well-formed response came: unknown
	NumOutcomes
)

// String is the name in metrics and logs.
func (o Outcome) String() string {
	return [NumOutcomes]string{"answered", "not_sent", "timeout", "broken"}[o]
}
