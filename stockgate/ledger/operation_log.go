package ledger

import (
	"slices"
	"sync"
	"time"
)

// OperationLog is what this instance knows of the orders that it took or settled last: what it could tell a ledger
// that has lost them. It has one entry for each serial, and drops the oldest when it is full. What an entry says is
// what this instance was told to do, whether or not the ledger could be reached. It is safe for concurrent use, and
// rejected orders never come here. Keep has it survive the process.
type OperationLog struct {
	mu      sync.Mutex
	most    int
	ring    [][]entry                 // in pieces: to copy a ring that grows would hold up every order
	used    int                       // places of the ring
	next    int                       // of the ring, when it is full
	places  map[string]map[string]int // by SKU and serial: where in ring
	changes int64
	dropped int64 // Unix ms when the newest entry that was dropped was made; 0 = none was

	journal *StateDir // nil = this log is in memory alone
	lost    func(err, rejecting error)
}

// entry is one order.
type entry struct {
	sku      string
	item     Item
	status   Status
	bare     bool    // another instance has it: its user and quantity are not known
	adopted  bool    // an operator says so, by the shop's books: it outweighs what the ledger says
	unknown  bool    // forwarded, and its outcome is unknown
	deadline int64   // Unix ms, of a hold
	epoch    int64   // of the ledger that it was made in
	done     version // by which the ledger has what was done to it last; ver is MaxNumber while it has not said so
	made     int64   // Unix ms
	change   int64   // rises with each change of the log
	changed  int64   // Unix ms, when this instance did something to it last
}

// defaultLogSize is how many orders a log keeps: a minute and more of 2,000 a second, some 250 bytes each.
const defaultLogSize = 1 << 17

// pieceSize is how many entries of the ring are made at a time.
const pieceSize = 256

// newOperationLog returns a log of at most so many orders.
func newOperationLog(most int) *OperationLog {
	return &OperationLog{most: most, places: make(map[string]map[string]int)}
}

// Reserved notes the orders that are held now. A replay is noted as well where nothing is known of it: it may be a hold
// of this instance, whose reply was lost. After an error they must not be forwarded.
func (j *OperationLog) Reserved(
	sku string, a Answer, deadline int64, items []Item, codes []Code,
) error {
	if !slices.Contains(codes, Held) && !slices.Contains(codes, ReplayHeld) {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c := newChange(changeReserved, sku, a)
	c.Deadline, c.Items = deadline, make([]item, 0, len(items))
	for i, it := range items {
		if codes[i] == Held || codes[i] == ReplayHeld && j.find(sku, it.Serial) == nil {
			c.Items = append(c.Items, itemOf(it))
		}
	}
	if len(c.Items) == 0 {
		return nil
	}
	return j.record(&c)
}

// Intends notes what is to be done to orders, before anybody knows whether the ledger does it.
func (j *OperationLog) Intends(sku string, epoch int64, op Op, items []Item) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := newChange(changeIntends, sku, Answer{Epoch: epoch})
	c.Op, c.Items = op, make([]item, 0, len(items))
	for _, it := range items {
		c.Items = append(c.Items, itemOf(it))
	}
	_ = j.record(&c) // an order that is in the journal as held is not lost
}

// Corrects notes what the ledger says of what was intended. A ledger that is still to be told what this instance knows
// may have lost that an order was given back. If it takes a confirmation then, the two are merged: what was refunded
// stays so, and what was released is sold, as in the ledger.
func (j *OperationLog) Corrects(sku string, a Answer, untold bool, op Op, items []Item,
	done []Done) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := newChange(changeCorrects, sku, a)
	c.Op, c.Items = op, make([]item, 0, len(items))
	for i, it := range items {
		said := done[i]
		if untold && said == NotFound {
			continue // it may be lost
		}
		if e := j.find(sku, it.Serial); untold && e != nil && op == Confirm &&
			(said == Changed || said == Already) {
			switch e.status {
			case StatusRefunded:
				continue
			case StatusReleased:
				said = WasSold
			}
		}
		c.Items = append(c.Items, item{Serial: anyBytes(it.Serial), Answer: int8(said)})
	}
	_ = j.record(&c)
}

// HandedOut notes that a call was answered that handed out orders. After an error they must not be sent.
func (j *OperationLog) HandedOut(sku string, a Answer) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.journal == nil {
		return nil
	}
	c := newChange(changeHandOut, sku, a)
	return j.record(&c)
}

// Broken is why nothing may be sent: the journal can neither be written nor deleted.
func (j *OperationLog) Broken() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.journal == nil {
		return nil
	}
	return j.journal.broken
}

func newChange(kind changeKind, sku string, a Answer) change {
	return change{
		Kind: kind, SKU: anyBytes(sku), Made: time.Now().UnixMilli(),
		Epoch: a.Epoch, Ver: a.Ver, Sale: a.Sale, Call: a.Call,
	}
}

// record notes a change, in the journal first. mu is held.
func (j *OperationLog) record(c *change) (err error) {
	if j.journal != nil {
		var lost error
		if lost, err = j.journal.write(c, c.Made); lost != nil {
			j.lost(lost, err)
		}
	}
	j.replay(c)
	return err
}

// replay notes a change, and returns how many orders it is about.
func (j *OperationLog) replay(c *change) (placed int) {
	sku := string(c.SKU)
	switch c.Kind {
	case changeReserved:
		for i := range c.Items {
			order := c.Items[i].order()
			e := j.openEntry(sku, order.Serial, c.Made)
			e.item, e.status, e.deadline, e.epoch = order, StatusHeld, c.Deadline, c.Epoch
		}
	case changeIntends:
		for i := range c.Items {
			j.intends(sku, c, c.Items[i].order())
		}
	case changeCorrects:
		for i := range c.Items {
			j.corrects(sku, c, &c.Items[i])
		}
		return 0
	}
	return len(c.Items)
}

func itemOf(it Item) item {
	return item{Serial: anyBytes(it.Serial), User: anyBytes(it.User), Quantity: it.Quantity, Cart: it.Cart}
}

func (i *item) order() Item {
	return Item{Serial: string(i.Serial), User: string(i.User), Quantity: i.Quantity, Cart: i.Cart}
}

// intends notes what is to be done to one order.
func (j *OperationLog) intends(sku string, c *change, it Item) {
	e := j.find(sku, it.Serial)
	if e == nil && c.Op == Adopt {
		e = j.openEntry(sku, it.Serial, c.Made)
		e.item, e.epoch = it, c.Epoch
	} else if e == nil {
		e = j.openEntry(sku, it.Serial, c.Made)
		e.bare, e.epoch = true, c.Epoch
		e.status = StatusHeld // by another instance
	}
	was := e.status
	if e.intend(c.Op, it); e.status == was && c.Op != Adopt {
		return // it stays as it was done before, and when
	}
	e.done, e.changed = version{c.Epoch, MaxNumber}, c.Made
	j.changes++
	e.change = j.changes
}

// intend does op to e as a ledger would.
func (e *entry) intend(op Op, it Item) {
	to, _ := Next(op, e.status)
	if op == Adopt {
		if e.status != StatusHeld || e.bare {
			e.item = it
		}
		e.bare, e.adopted, to = false, true, StatusSold
	}
	if to != StatusNone {
		e.status, e.unknown = to, false
		e.adopted = to == StatusSold && e.adopted
	}
}

// corrects notes what the ledger says of one order. Answers overtake each other: one of an older version than that of
// what was done last tells nothing of it.
func (j *OperationLog) corrects(sku string, c *change, i *item) {
	e, done, at := j.find(sku, string(i.Serial)), Done(i.Answer), version{c.Epoch, c.Ver}
	if e == nil || e.done.ver != MaxNumber && at.older(e.done) {
		return
	}
	was := e.status
	switch {
	case done == WasRefunded:
		e.status, e.adopted = StatusRefunded, false
	case done == WasReleased:
		e.status, e.adopted = StatusReleased, false
	case done == WasSold:
		e.status = StatusSold
	case done == NotFound && c.Op == Refund && e.bare: // nothing was given back
		e.status = StatusHeld
		return
	case done == NotFound, done == NoLedger: // it may be lost
		return
	case c.Op == Release && e.status == StatusSold: // another instance has given it back
		e.status, e.adopted = StatusReleased, false
	case c.Op == Adopt:
		e.status, e.adopted = StatusSold, true
	case c.Op == Refund: // also where another instance has adopted what this one knew as released
		e.status, e.adopted = StatusRefunded, false
	case c.Op == Confirm && e.status.Final():
		e.status, e.adopted = StatusSold, true // by another instance: to this one's knowledge it was given back
	}
	e.done = at
	if e.status != was {
		j.changes++
		e.changed, e.change = c.Made, j.changes
	}
	if e.bare || e.epoch == 0 { // this instance may not have seen the ledger before, or have seen an earlier sale
		e.epoch = max(e.epoch, c.Epoch)
	}
}

// endUnknown notes that the outcome of every order that is held is unknown: their process has ended.
func (j *OperationLog) endUnknown() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.used {
		e := j.at(i)
		e.unknown = e.status == StatusHeld && !e.bare
	}
}

// Keep has every change from now on written to a journal. lost is told once when that fails, and whether orders must be
// rejected since the journal cannot be deleted either.
func (j *OperationLog) Keep(journal *StateDir, lost func(err, rejecting error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.journal, j.lost = journal, lost
}

// NoteUnknown notes that the outcome of a forwarded order is unknown.
func (j *OperationLog) NoteUnknown(sku, serial string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.find(sku, serial); e != nil && e.status == StatusHeld {
		e.unknown = true
	}
}

// at is the entry in a place of the ring. mu is held.
func (j *OperationLog) at(i int) *entry { return &j.ring[i/pieceSize][i%pieceSize] }

// find returns the entry of a serial, or nil. mu is held.
func (j *OperationLog) find(sku, serial string) *entry {
	if i, ok := j.places[sku][serial]; ok {
		return j.at(i)
	}
	return nil
}

// openEntry returns an entry that is made now (Unix ms), new or in place of the one that is there, with no status. mu
// is held.
func (j *OperationLog) openEntry(sku, serial string, now int64) *entry {
	e := j.find(sku, serial)
	if e == nil {
		e = j.place(sku, serial)
	}
	j.changes++
	*e = entry{sku: sku, item: Item{Serial: serial}, made: now, changed: now, change: j.changes}
	return e
}

// place makes a place for a serial, and drops the oldest entry when there is none. mu is held.
func (j *OperationLog) place(sku, serial string) *entry {
	i := j.used
	if i < j.most {
		if i == len(j.ring)*pieceSize {
			j.ring = append(j.ring, make([]entry, pieceSize))
		}
		j.used++
	} else {
		i = j.next
		j.next = (j.next + 1) % j.most
		j.drop(j.at(i))
	}
	book := j.places[sku]
	if book == nil {
		book = make(map[string]int)
		j.places[sku] = book
	}
	book[serial] = i
	return j.at(i)
}

// drop forgets an entry whose place is needed. mu is held.
func (j *OperationLog) drop(e *entry) {
	j.dropped = max(j.dropped, e.made)
	delete(j.places[e.sku], e.item.Serial)
	if len(j.places[e.sku]) == 0 {
		delete(j.places, e.sku)
	}
}

// entriesOf returns the entries of sku that choose wants, and how many changes there were by then.
func (j *OperationLog) entriesOf(sku string, choose func(*entry) bool) (all []entry, changes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range j.places[sku] {
		if e := j.at(i); choose(e) {
			all = append(all, *e)
		}
	}
	return all, j.changes
}

// reachesBack reports whether every order that was made after at (Unix ms by Redis' clock, which may differ by
// clocksDiffer) is still there.
func (j *OperationLog) reachesBack(at int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped == 0 || j.dropped < at-clocksDiffer
}

// clocksDiffer is by how many ms the clocks of Redis and of this machine may differ.
const clocksDiffer = 10_000

// word is the state of e as recover.lua reads it.
func (e *entry) word() string {
	w := e.status
	switch {
	case e.adopted && e.bare:
		w = 'a'
	case e.adopted:
		w = 'A'
	case e.bare:
		w += 'a' - 'A'
	}
	return string(rune(w))
}
