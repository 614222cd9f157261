package proxy

// What the tests of package proxy_test need, which may know the real journal.

// Loop returns one turn of a connection on which the same order arrives for ever.
func Loop(p *Proxy) func() { return turning(p, browserOrder) }

// Admitting are the options of a gate that admits the order; SoldOutNow of one that refuses it.
func Admitting() Options { return options(shopFunc(answering)) }

// SoldOutNow is Admitting with nothing left.
func SoldOutNow() Options {
	o := Admitting()
	soldOut(&o)
	return o
}

// RaceEnabled tells whether the race detector is there.
const RaceEnabled = raceEnabled
