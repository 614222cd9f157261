package ledger

// invariant is what is true of every ledger at every moment.
type invariant int

const (
	typedKeys     invariant = iota // the keys are what they should be, and none of them is alone
	readable                       // the numbers are numbers, and not negative
	knownState                     // the state is one of the four
	withinTotal                    // held + sold <= total; to adopt more than that breaks it too
	recordsRead                    // every record can be read
	heldAddsUp                     // held is the sum of the records that are held
	soldAddsUp                     // sold is the sum of those that are sold
	usersAddUp                     // held + sold is the sum of what the users have, and each of them has some
	holdsAreDue                    // a sweep looks at every hold, and at nothing that is sold or not there
	numInvariants                  // of which the first sumsFrom need the numbers alone
	sumsFrom      = recordsRead
)

func (i invariant) String() string {
	return [...]string{"keys", "numbers", "state", "over_total", "records", "held", "sold", "users", "holds"}[i]
}

// violations are the invariants that are broken.
type violations uint16

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

// brokenNumbers judges what the numbers alone show. Nothing at all breaks nothing.
func brokenNumbers(p *Page) (f violations) {
	if p.Wrong || p.Numbers == (Numbers{}) {
		f.add(typedKeys, !p.None())
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
