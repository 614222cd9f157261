package ledger

import (
	"log/slog"
)

// auditRun adds up what lies in one ledger, page by page. The pages of a large one are read at different moments; they
// belong together since the version, which every change of a record, a user or a number raises, is the same in all of
// them. A sweep alone raises none: it moves times and forgets tombstones, and neither is counted. The records come
// first, so that nothing that is due later can be unknown.
type auditRun struct {
	part Part   // to be read next
	next string // its cursor; "" = from its beginning

	first   Numbers             // the numbers, of the first page
	begun   bool                // first is read
	found   violations          // as far as is known
	records map[string]Status   // status by serial; a scan may show an entry twice
	users   map[string]struct{} // a scan may show them twice as well
	due     map[string]struct{}

	held, sold, units int64
	holds             int
	entries           int64 // that there were at the last page

	done  bool // everything was counted
	large bool // it has more than maxEntries
	none  bool // there is nothing at all
}

// maxEntries bounds the memory of an audit. A larger ledger has only its numbers judged.
const maxEntries = 1 << 20

func (t *auditRun) cursor() string {
	if t.next == "" {
		return firstPage
	}
	return t.next
}

// add takes a page in. It reports whether there is another to read; there is none when the ledger has changed since
// the first, and then done is false.
func (t *auditRun) add(p *Page) (more bool) {
	if !t.begun {
		t.begin(p)
	} else if p.Numbers != t.first || p.Wrong {
		return false
	}
	if t.found.has(typedKeys) || t.none || t.large {
		t.done = !t.large
		return false
	}
	t.countPage(p)
	t.entries = p.Entries
	switch {
	case t.part == allParts && p.Next == "":
		t.part = partRecords
		return true
	case t.part != allParts && p.Next != firstPage:
		t.next = p.Next
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
	t.compare()
	return false
}

func (t *auditRun) begin(p *Page) {
	t.begun, t.first, t.found = true, p.Numbers, brokenNumbers(p)
	t.none, t.large = p.None(), p.Entries > maxEntries
	t.records, t.users, t.due = map[string]Status{}, map[string]struct{}{}, map[string]struct{}{}
}

// countPage adds up a page.
func (t *auditRun) countPage(p *Page) {
	for i := 0; i+1 < len(p.Records); i += 2 {
		t.record(p.Records[i], p.Records[i+1])
	}
	for i := 0; i+1 < len(p.Users); i += 2 {
		if _, twice := t.users[p.Users[i]]; twice {
			continue
		}
		t.users[p.Users[i]] = struct{}{}
		n, err := Digits(p.Users[i+1])
		t.units += n
		t.found.add(usersAddUp, err != nil || n == 0)
	}
	for _, serial := range p.Due {
		t.due[serial] = struct{}{}
	}
}

// record adds up one record.
func (t *auditRun) record(serial, text string) {
	if _, twice := t.records[serial]; twice {
		return
	}
	r, err := DecodeRecord(serial, text)
	t.records[serial] = r.Status
	t.found.add(recordsRead, err != nil)
	switch r.Status {
	case StatusHeld:
		t.held += r.Quantity
		t.holds++
	case StatusSold:
		t.sold += r.Quantity
	}
}

// compare compares, when everything was counted. Entries are missing where a slot of a cluster has moved: its new
// server knows nothing of the cursor.
func (t *auditRun) compare() {
	if int64(len(t.records)+len(t.users)+len(t.due)) < t.entries {
		return
	}
	t.done = true
	h, err1 := Digits(t.first.Held)
	s, err2 := Digits(t.first.Sold)
	t.found.add(heldAddsUp, err1 == nil && h != t.held)
	t.found.add(soldAddsUp, err2 == nil && s != t.sold)
	t.found.add(usersAddUp, err1 == nil && err2 == nil && t.units != h+s)
	for serial := range t.due {
		status, there := t.records[serial]
		t.found.add(holdsAreDue, !there || status == StatusSold)
	}
	for serial, status := range t.records {
		if status == StatusHeld {
			_, due := t.due[serial]
			t.found.add(holdsAreDue, !due)
		}
	}
}

// covered are the invariants that were looked at.
func (t *auditRun) covered() violations {
	if t.done {
		return 1<<numInvariants - 1
	}
	return 1<<sumsFrom - 1
}

// attrs are the numbers, for the log.
func (t *auditRun) attrs(sku string) []any {
	n := t.first
	return []any{"sku", sku, "broken", (t.found & t.covered()).names(), "total", n.Total, "held", n.Held, "sold", n.Sold,
		"state", n.State, "epoch", n.Epoch, "ver", n.Ver, slog.Group("counted", "whole", t.done, "held", t.held,
			"sold", t.sold, "users", t.units, "holds", t.holds, "due", len(t.due))}
}
