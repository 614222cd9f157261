// Package route finds the route of a request: METHOD [HOST]/PATH patterns, the values of their {names}, and the one
// canonical form of a path. It promises that a request which a server could take for one of a guarded route is either
// on that route or ambiguous.
// It reads no body, asks no limit and answers nothing.
package route

// Gate says how much of a request is checked before it is forwarded.
type Gate uint8

// The gates. Each one checks all that the one before it checks.
const (
	Pass    Gate = iota // keyed rates alone
	Limit               // and every other limit
	Check               // and rejects when the SKU is sold out
	Reserve             // and takes the units before the order is forwarded
	NumGates
)

// String is the name in the configuration.
func (g Gate) String() string { return [...]string{"pass", "limit", "check", "reserve"}[g] }

// Guard says what another spelling of a path must not lead around.
type Guard uint8

// The guards. Each one keeps what the one before it keeps.
const (
	Unguarded   Guard = iota
	GuardsEntry       // some requests may not enter the route: its path must not be spelled in another way on another route
	GuardsStock       // the upstream must also read the same SKU
)

// GuardsStock reports whether the gate looks at the stock of a SKU, so that the upstream has to read the same SKU.
func (g Gate) GuardsStock() bool { return g >= Check }
