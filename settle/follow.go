package settle

import "strings"

// finding is what a settler sees at the place where its cursor points.
type finding int

const (
	upToDate  finding = iota
	following         // entries follow the cursor
	unread            // entries were trimmed before they were read, or there is a hole: the ledger must be read whole
	gone              // the stream ends before the cursor
	changed           // another entry has the cursor's id: Redis has lost its tail
)

// follow compares entries, read from the cursor on, with the cursor, and returns those that can be applied: versions
// without a hole, of one ledger. cursor is nil if there is none.
func follow(cursor *Cursor, entries []Entry) ([]Entry, finding) {
	switch {
	case len(entries) == 0 && cursor == nil:
		return nil, upToDate
	case len(entries) == 0:
		return nil, gone
	case cursor == nil && entries[0].Ver == 1:
		return consecutive(entries), following
	case cursor == nil:
		return nil, unread
	}
	switch first := entries[0]; {
	case first.Position == cursor.Position && first.Fingerprint() != cursor.Fingerprint:
		return nil, changed
	case first.Position == cursor.Position:
		entries = entries[1:]
	case first.Ver != 1 || first.Epoch == cursor.Epoch:
		return nil, unread
	}
	if len(entries) == 0 {
		return nil, upToDate
	}
	next := entries[0]
	if next.Ver != cursor.Ver+1 && (next.Ver != 1 || next.Epoch == cursor.Epoch) {
		return nil, unread
	}
	return consecutive(entries), following
}

// consecutive returns the entries up to the first hole, or to the first entry of another ledger.
func consecutive(entries []Entry) []Entry {
	for i := 1; i < len(entries); i++ {
		if entries[i].Ver != entries[i-1].Ver+1 || entries[i].Epoch < entries[i-1].Epoch || entries[i].Born != 0 {
			return entries[:i]
		}
	}
	return entries
}

// batchOf makes a transaction of entries, which follow the cursor. An entry that cannot be read ends the batch before
// it; as the first one it becomes a conflict with its bytes, and leaves the numbers as they were.
func batchOf(sku string, cursor *Cursor, entries []Entry) (b Batch, used int) {
	b = Batch{SKU: sku, From: cursor}
	born := entries[0].Epoch
	if cursor != nil {
		b.To = *cursor
		if entries[0].Ver != 1 {
			born = cursor.Born
		}
	}
	if entries[0].Born != 0 {
		born = entries[0].Born
	}
	used = len(entries)
	for i, e := range entries {
		if e.Fault != nil {
			used = max(i, 1)
			break
		}
	}
	last := entries[used-1]
	b.Entries, b.Records = entries[:used], fold(entries[:used])
	b.To.Born, b.To.Position, b.To.Fingerprint = born, last.Position, last.Fingerprint()
	if last.Fault == nil {
		b.To.Numbers = last.Numbers
		b.To.State = strings.Clone(last.State) // the cursor is kept
	} else {
		b.Conflicts = []Conflict{unreadable(sku, last, last.Fault)}
	}
	return b, used
}

// unreadable is the conflict of an entry that is parked, with its bytes.
func unreadable(sku string, e Entry, cause error) Conflict {
	text := quoted(e.fields.words())
	return Conflict{SKU: sku, Position: e.Position, Kind: "entry", Detail: plain(cause.Error() + ": " + text), Entry: text}
}

// Park returns the conflicts of records of b that can never be stored: for each position one, with an entry of these
// records alone.
func (b *Batch) Park(records []Record, cause error) []Conflict {
	byPosition := make(map[Position]int)
	var all []Entry
	var fields [][]string
	for _, r := range records {
		i, ok := byPosition[r.Position]
		if !ok {
			i = len(all)
			byPosition[r.Position], all = i, append(all, Entry{Position: r.Position})
			fields = append(fields, numbersOf(b.To.Numbers, r.At))
		}
		fields[i] = append(fields[i], "r:"+r.Serial, r.text())
	}
	conflicts := make([]Conflict, len(all))
	for i, e := range all {
		e.fields = replyOf(fields[i])
		conflicts[i] = unreadable(b.SKU, e, cause)
	}
	return conflicts
}
