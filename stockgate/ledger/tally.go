package ledger

// tally adds up what lies in one ledger, page by page. The pages of a large one are read at different moments; they
// belong together since the version, which every change of a record, a user or a number raises, is the same in all of
// them. A sweep alone raises none: it moves times and forgets tombstones, and neither is counted. The records come
// first, so that nothing that is due later can be unknown.
type tally struct {
	part part   // to be read next
	next string // its cursor; "" = from its beginning

	first   raw                 // the numbers, of the first page
	begun   bool                // first is read
	found   findings            // as far as is known
	records map[string]byte     // status by serial; a scan may show an entry twice
	users   map[string]struct{} // a scan may show them twice as well
	due     map[string]struct{}

	held, sold, units int64
	holds             int

	done  bool // everything was counted
	large bool // it has more than mostEntries
	none  bool // there is nothing at all
}

// mostEntries bounds the memory of an audit. A larger ledger has only its numbers judged.
const mostEntries = 1 << 20

func (t *tally) cursor() string {
	if t.next == "" {
		return firstPage
	}
	return t.next
}

// turn takes a page in. It reports whether there is another to read; there is none when the ledger has changed since
// the first, and then done is false.
func (t *tally) turn(p *page) (more bool) {
	if !t.begun {
		t.begin(p)
	} else if p.raw != t.first || p.wrong {
		return false
	}
	if t.found.has(typedKeys) || t.none || t.large {
		t.done = !t.large
		return false
	}
	t.count(p)
	switch {
	case t.part == allParts && p.next == "":
		t.part = partRecords
		return true
	case t.part != allParts && p.next != firstPage:
		t.next = p.next
		return true
	}
	t.next = ""
	switch t.part {
	case partRecords:
		t.part = partUsers
		return true
	case partUsers:
		t.part = partDue
		return true
	}
	t.conclude()
	return false
}

func (t *tally) begin(p *page) {
	t.begun, t.first, t.found = true, p.raw, p.numbered()
	t.none, t.large = p.none(), p.entries > mostEntries
	t.records, t.users, t.due = map[string]byte{}, map[string]struct{}{}, map[string]struct{}{}
}

// count adds up a page.
func (t *tally) count(p *page) {
	for i := 0; i+1 < len(p.records); i += 2 {
		t.record(p.records[i], p.records[i+1])
	}
	for i := 0; i+1 < len(p.users); i += 2 {
		if _, twice := t.users[p.users[i]]; twice {
			continue
		}
		t.users[p.users[i]] = struct{}{}
		n, err := digits(p.users[i+1])
		t.units += n
		t.found.add(usersAddUp, err != nil || n == 0)
	}
	for _, serial := range p.due {
		t.due[serial] = struct{}{}
	}
}

// record adds up one record.
func (t *tally) record(serial, text string) {
	if _, twice := t.records[serial]; twice {
		return
	}
	r, err := decode(serial, text)
	t.records[serial] = r.Status
	t.found.add(recordsRead, err != nil)
	switch r.Status {
	case held:
		t.held += r.Quantity
		t.holds++
	case sold:
		t.sold += r.Quantity
	}
}

// conclude compares, when everything was counted.
func (t *tally) conclude() {
	t.done = true
	h, err1 := digits(t.first.held)
	s, err2 := digits(t.first.sold)
	t.found.add(heldAddsUp, err1 == nil && h != t.held)
	t.found.add(soldAddsUp, err2 == nil && s != t.sold)
	t.found.add(usersAddUp, err1 == nil && err2 == nil && t.units != h+s)
	for serial := range t.due {
		status, there := t.records[serial]
		t.found.add(holdsAreDue, !there || status == sold)
	}
	for serial, status := range t.records {
		if status == held {
			_, due := t.due[serial]
			t.found.add(holdsAreDue, !due)
		}
	}
}

// covered are the invariants that were looked at.
func (t *tally) covered() findings {
	if t.done {
		return 1<<numInvariants - 1
	}
	return 1<<sumsFrom - 1
}

// audit is what came out.
func (t *tally) audit() Audit {
	n := t.first
	return Audit{
		Broken: (t.found & t.covered()).names(), Whole: t.done,
		Total: n.total, Held: n.held, Sold: n.sold, State: n.state, Epoch: n.epoch, Ver: n.ver,
		HeldUnits: t.held, SoldUnits: t.sold, UserUnits: t.units, Holds: t.holds, Due: len(t.due),
	}
}
