package ledger

import (
	"context"
	"strconv"
)

// News are changes after which somebody who was refused may buy, or nobody may any more: units that came back while
// fewer than scarce were free, other hours, and another state. Reservations and confirmations are none: who needs to know of them
// hears of them in a reply.
//
// They go to one channel for all SKUs of a database, so that an instance has one subscription, however many SKUs there are. In a
// cluster a classic PUBLISH reaches every node, from whichever node the ledger is on. A sharded one would need a
// subscription for each SKU, to save what give-backs cost the cluster's bus: a batch of them is one message.
//
// News may be lost, and nothing but time hangs on them: after SoldOutMemory a closed SKU is looked at anyway.
const newsChannel = "sluice:news"

// channelOf is the channel of a database's news. PUBLISH itself reaches all of them, where other ledgers may lie.
func channelOf(db int) string {
	if db == 0 {
		return newsChannel
	}
	return newsChannel + ":" + strconv.Itoa(db)
}

// scarce is how many free units are so many that a unit which comes back opens nothing: nobody was refused but who
// wants more than that at once. The same number as in stock.lua.
const scarce = 256

// newsAfter reports whether h, which followed before, is news.
func (h Hint) newsAfter(before Hint) bool {
	return h.State != before.State || h.Opens != before.Opens || h.Closes != before.Closes || h.Free > before.Free && before.Free < scarce
}

// teller is a store that tells news: a Redis or a Memory.
type teller interface {
	Listen(ctx context.Context, hear func(sku string, h Hint), missed func())
}

// missed lets the next buyer of each closed SKU look again, since news of it may have been lost. What was asked before, and is
// heard later, is old as well. What nobody asks for costs nothing.
func (d *Desk) missed() {
	now := d.o.Now()
	d.deaf.Store(now)
	for _, l := range d.lines.each() {
		l.mu.Lock()
		if v := l.view.Load(); v != nil {
			if _, closed := v.closes(now, 1); closed {
				old := *v
				d.age(now, &old)
				l.see(now, &old)
			}
		}
		l.mu.Unlock()
	}
}

// age makes v, which nobody reads yet, so old that somebody is to look.
func (d *Desk) age(now int64, v *view) { v.at = now - d.memory - 1 }
