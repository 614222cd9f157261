package ledger

import (
	"cmp"
	"slices"
)

// book is the ledger of one SKU in memory: the same five keys, but for the stream.
type book struct {
	Stock
	records map[string]Record // by serial; a refunded one is refunded here and released outside
	units   map[string]int64  // by user, held + sold
	due     map[string]int64  // by serial, Unix ms: when Sweep looks at a hold or forgets a tombstone
	added   []addition        // of the last ids, the newest last
	before  Hint              // as of the last change
	tell    func(Hint)        // takes news
}

func newBook(tell func(Hint)) *book {
	return &book{
		Stock:   Stock{Hint: Hint{Epoch: 1, State: On, Taken: 1}},
		records: make(map[string]Record),
		units:   make(map[string]int64),
		due:     make(map[string]int64),
		tell:    tell,
	}
}

// commit ends a call, and makes it the next version when it changed something.
func (b *book) commit(changed bool) Hint {
	if b == nil {
		return Hint{}
	}
	if changed {
		b.Ver++
		b.Free = b.Total - b.Held - b.Sold
		if b.Hint.newsAfter(b.before) {
			b.tell(b.Hint)
		}
		b.before = b.Hint
	}
	return b.Hint
}

// reserve is one item of Reserve. The serial is looked up first: a retry of a winner must never hear "sold out".
func (b *book) reserve(i Item, now, deadline int64) Code {
	if r, ok := b.records[i.Serial]; ok {
		return replay(r, i)
	}
	units := b.units[i.User]
	switch {
	case b.At(now) != On:
		return NotOnSale
	case i.Quantity > b.Total-b.Held-b.Sold:
		return SoldOut
	case b.Limit > 0 && i.User != "" && units+i.Quantity > b.Limit:
		return UserLimit
	}
	b.Held += i.Quantity
	b.units[i.User] = units + i.Quantity
	b.records[i.Serial] = Record{i.Serial, i.User, i.Quantity, held, deadline}
	b.due[i.Serial] = deadline
	return Held
}

// replay answers for a serial that was used before.
func replay(r Record, i Item) Code {
	switch {
	case r.Status == released || r.Status == refunded:
		return Released
	case r.User != i.User || r.Quantity != i.Quantity:
		return OtherOrder
	case r.Status == sold:
		return ReplaySold
	}
	return ReplayHeld
}

// finish is one item of Finish.
func (b *book) finish(op Op, i Item, keep int64) Done {
	r := b.records[i.Serial] // its status is none when there is none
	to, answer := turn(op, r.Status)
	if to == none {
		return answer
	}
	b.give(r)
	r.Serial = i.Serial
	if op == Adopt && r.Status != held {
		r.User, r.Quantity = i.User, i.Quantity
	}
	r.Status, r.Deadline = to, keep
	if to == sold {
		r.Deadline = 0
		b.Sold += r.Quantity
		b.units[r.User] += r.Quantity
		delete(b.due, r.Serial)
	} else {
		b.due[r.Serial] = keep
	}
	b.records[r.Serial] = r
	if op == Adopt && b.Held+b.Sold > b.Total {
		return OverTotal
	}
	return answer
}

// give takes a record's units out of the books, where it has any.
func (b *book) give(r Record) {
	switch r.Status {
	case held:
		b.Held -= r.Quantity
	case sold:
		b.Sold -= r.Quantity
	default:
		return
	}
	if b.units[r.User] -= r.Quantity; b.units[r.User] == 0 {
		delete(b.units, r.User)
	}
}

// sweep looks at what is due, the oldest first.
func (b *book) sweep(now, lease int64, limit int) []Record {
	var serials []string
	for serial, at := range b.due {
		if at <= now {
			serials = append(serials, serial)
		}
	}
	slices.SortFunc(serials, func(x, y string) int {
		return cmp.Or(cmp.Compare(b.due[x], b.due[y]), cmp.Compare(x, y))
	})
	var holds []Record
	for _, serial := range serials[:min(len(serials), limit+forgotten)] {
		switch r := b.records[serial]; {
		case r.Status != held:
			delete(b.records, serial)
			delete(b.due, serial)
		case len(holds) < limit:
			b.due[serial] = lease
			holds = append(holds, r)
		}
	}
	return holds
}

// outside is a record as callers see it.
func outside(r Record) Record {
	if r.Status == refunded {
		r.Status = released
	}
	return r
}
