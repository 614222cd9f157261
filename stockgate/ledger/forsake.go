package ledger

// forsake answers those who waited while a call found out nothing: they have waited for about as long as a call may
// take, and would wait as long once more for theirs. Nothing was sent for them. mu is held.
func (d *Desk) forsake(l *line) {
	waited := append(l.looking, l.queue...)
	l.looking, l.queue = nil, nil
	for _, t := range waited {
		d.part(l, t, Outcome{Code: Unsure, Serial: t.serial})
		l.events.count(Unsure, 1+len(t.followers))
	}
}
