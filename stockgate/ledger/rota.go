package ledger

import "slices"

// rota is whose turn it is to be looked after: the lines of SKUs with a ledger, each in its turn, and all others, which are
// dropped when they are of no use. It is the watch's alone.
type rota struct {
	ledgers   []*line // whose turn is next comes first
	strangers []*line // of which nobody knows a ledger
}

// real reports whether l is to be looked after: its SKU has a ledger, as far as is known.
func (l *line) real() bool {
	v := l.view.Load()
	return l.watched.Load() || v != nil && !v.absent
}

// join takes in lines that are new, and forgets strangers of which useless says so. Which lines have a ledger by now have
// their turn after all that had one before.
func (r *rota) join(lines []*line, useless func(*line) bool) {
	r.strangers = append(r.strangers, lines...)
	r.strangers = slices.DeleteFunc(r.strangers, func(l *line) bool {
		if l.real() {
			r.ledgers = append(r.ledgers, l)
			return true
		}
		return useless(l)
	})
}

// next are the lines whose turn it is; they come last from now on. Where there are many, all have had their turn after
// sweepTurns. Lines without a ledger any more are strangers.
func (r *rota) next() []*line {
	n := len(r.ledgers)
	some := min(n, max(sweepsATurn, (n+sweepTurns-1)/sweepTurns))
	turn := slices.Clone(r.ledgers[:some])
	turn = slices.DeleteFunc(turn, func(l *line) bool {
		real := l.real()
		if !real {
			r.strangers = append(r.strangers, l)
		}
		return !real
	})
	r.ledgers = append(r.ledgers[some:], turn...)
	return turn
}
