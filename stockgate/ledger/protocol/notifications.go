package protocol

// Notifications are changes after which a client that was rejected may buy, or no client may any more: units that came
// back while fewer than scarce were free, other hours, and another state. Reservations and confirmations are none: an
// instance that needs to know of them hears of them in a reply.
//
// They go to one channel for all SKUs of a name and a database, so that an instance has one subscription, however many
// SKUs there are. In a cluster a classic PUBLISH reaches every node, from whichever node the ledger is on. A sharded one
// would need a subscription for each SKU, to save what give-backs cost the cluster's bus: a batch of them is one
// message.
//
// Notifications may be lost, and nothing but time hangs on them: after SoldOutMemory a sold-out SKU is refreshed
// anyway.

// scarce is how many free units are so many that a unit which comes back changes nothing: no client was rejected but
// one that wants more than that at once. The same number as in stock.lua.
const scarce = 256

// Notable reports whether h, which followed before, is worth a notification.
func (h StockVersion) Notable(before StockVersion) bool {
	return h.State != before.State || h.Opens != before.Opens || h.Closes != before.Closes ||
		h.Free > before.Free && before.Free < scarce
}
