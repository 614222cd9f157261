package ledger

// Shut notes that the shop says of itself that sku is sold out, although units of the ledger are free: for SoldOutMemory
// nobody is sent there but, in at most Looks orders a second, those who may come again, and hear then what they have.
func (d *Desk) Shut(now int64, sku []byte) {
	if l := d.lines.find(sku); l != nil {
		l.shut.Store(now + d.memory)
	}
}

// refused answers from memory an order for units that are free, where the shop says that there are none. Who may have
// won is not told "sold out": the ledger is asked, and past Looks everybody hears that it is not the time.
func (d *Desk) refused(now int64, l *line, o *Order) (Outcome, bool) {
	switch {
	case now >= l.shut.Load():
		return Outcome{}, false
	case len(o.Key)+len(o.User) == 0:
		return Outcome{Code: SoldOut}, true
	case d.recall(now, l, o) != nil, l.looks.take(now):
		return Outcome{}, false
	}
	return Outcome{Code: Overloaded}, true
}
