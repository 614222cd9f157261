package ledger

import (
	"context"
	"fmt"
)

// Inspection is a ledger's numbers as they lie in the store, unjudged.
type Inspection struct {
	Total, Held, Sold, State, Epoch, Limit, Ver string // "" = missing

	Wrong   bool  // a key is of another type; then there is nothing else
	Entries int64 // how many records, users and times there are
	Err     error
}

// InspectAll reads the numbers of several ledgers, at most 64, in one round trip to each server. What it finds comes
// back by position.
func (r *Store) InspectAll(ctx context.Context, skus []string) []Inspection {
	all := r.callMany(ctx, skus, func(sku string) scriptCall {
		return scriptCall{script: "audit", sku: sku, aside: true, blind: true, err: CheckSKU(sku)}
	})
	found := make([]Inspection, len(all))
	for i := range all {
		p, q := &found[i], &all[i]
		if p.Err = q.err; q.err == nil {
			*p = inspectionOf(q.answer)
		}
		describe(&p.Err, "inspect", q.sku)
	}
	return found
}

// inspectionOf reads what audit.lua says.
func inspectionOf(reply []any) (p Inspection) {
	if len(reply) == 1 {
		return Inspection{Wrong: true}
	}
	if len(reply) != 9 {
		return Inspection{Err: fmt.Errorf("%d values came back for an audit", len(reply))}
	}
	for i, to := range []*string{&p.Total, &p.Held, &p.Sold, &p.State, &p.Epoch, &p.Limit, &p.Ver} {
		*to = fmt.Sprint(reply[1+i])
	}
	entries, ok := reply[8].(int64)
	if !ok {
		return Inspection{Err: fmt.Errorf("the count %v cannot be read", reply[8])}
	}
	p.Entries = entries
	return p
}

// unnumbered reports whether there are no numbers.
func (p *Inspection) unnumbered() bool {
	return p.Total+p.Held+p.Sold+p.State+p.Epoch+p.Limit+p.Ver == ""
}

// none reports whether there is nothing at all.
func (p *Inspection) none() bool { return p.unnumbered() && !p.Wrong && p.Entries == 0 }

// invariant is what is true of every ledger at every moment.
type invariant int

const (
	typedKeys   invariant = iota // the keys are what they should be, and none of them is alone
	readable                     // the numbers are numbers, and not negative
	knownState                   // the state is one of the four
	withinTotal                  // held + sold <= total; recovering more orders than that breaks it too
	numInvariants
)

func (i invariant) String() string { return [...]string{"keys", "numbers", "state", "over_total"}[i] }

// violations are the invariants that are broken.
type violations uint8

func (f *violations) add(i invariant, broken bool) {
	if broken {
		*f |= 1 << i
	}
}

func (f violations) has(i invariant) bool { return f&(1<<i) != 0 }

func (f violations) names() (all []string) {
	for i := range numInvariants {
		if f.has(i) {
			all = append(all, i.String())
		}
	}
	return all
}

// broken judges what was found. Nothing at all breaks nothing.
func (p *Inspection) broken() (f violations) {
	if p.Wrong || p.unnumbered() {
		f.add(typedKeys, !p.none())
		return f
	}
	var n [6]int64
	for i, text := range []string{p.Total, p.Held, p.Sold, p.Epoch, p.Limit, p.Ver} {
		v, err := Digits(text)
		n[i] = v
		f.add(readable, err != nil)
	}
	f.add(knownState, checkState(State(p.State)) != nil)
	f.add(withinTotal, !f.has(readable) && n[1]+n[2] > n[0])
	return f
}
