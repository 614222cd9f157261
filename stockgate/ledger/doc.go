// Package ledger reserves units of stock before an order is forwarded, and settles what became of each reservation.
//
// It promises that no reservation makes units held and sold exceed the total, or a user get more than the limit, that a
// serial is reserved at most once whatever is sent twice, and that a unit whose order may exist is never sold again.
//
// It does not decide what is unknown: a reservation without an outcome stays until the upstream's answer at status_url,
// POST /settle of another proxy, or an operator confirms or releases it.
//
// # The way of an order
//
//	Cached ──► sold-out cache ──► answer at once, in the event loop
//	   │ units may be free, or the order can be looked up
//	Reserve ──► skuQueue ──► batch ──► Store.Reserve (one script call) ──► answer
//	   │ sold out by the cache
//	   └──────► lookups ──► Store.FindAll (one pipeline) ──► answer
//	Settle ───► pending ──► Store.Finish (one script call)
//	Unknown ──► unresolved ──► resolver ──► AskOrder, then as Settle
//
// Each SKU has a queue of at most MaxQueue orders (sku_queue.go) and a batch (batch.go). One call is under way at a
// time. Orders that come meanwhile join the next batch, of at most MaxBatch. A second call is under way only when
// its batch is full. There is no timer: a call leaves as soon as the goroutines that are ready have run. A batch
// never asks for more units than the newest version of the stock left, so Redis sees the stock and not the crowd.
//
// A call that is not answered is sent again with the same serials and the same deadline. The deadline tells the
// reservations of this batch from all others, so a reservation whose answer was lost is recognised. What cannot be
// found out is Unsure: it is not forwarded, and given back by the resolver.
//
// # Sold out
//
// The sold-out cache (soldout.go) has one entry for each SKU: the state, the version, and when it was read. It
// answers orders for which too few units are free. When it is older than SoldOutMemory, one order goes to the store and
// refreshes it; all others are answered meanwhile. Notifications of the store tell of units that come back before that.
//
// While too few units are free but enough of them are held, the answer is Undecided: some may come back. SoldOut is
// final, unless it is Unverified, or the upstream's own word (MarkSoldOut), which holds for SoldOutMemory although
// units are free.
//
// An order with a key, or with a user, may repeat one that has won. It is looked up (lookup.go): one call at a
// time, at most 200 a second, of at most 16 orders of any SKUs, 2 of them of users without a key. Past that the
// answer is SoldOut with Unverified, unless this instance itself has seen the order win (order_cache.go). A client
// that has lost the response of its order asks State.
//
// # Settling and resolving
//
// Settlements of a SKU wait in order and leave in batches of one operation (finish.go). A reservation that is
// overdue, an order that was forwarded without a response, and a call that was not answered are unresolved
// (unresolved.go). The resolver (resolve.go) looks each of them up, asks the upstream where the order may exist,
// and settles it.
//
// Four words for what is not decided:
//
//	Undecided   too few units are free, but enough of them are held: the answer to a further order
//	Unsure      a call had no answer: the order may hold a unit, and was not forwarded
//	unknown     the order was forwarded, and no response tells whether it exists
//	unresolved  what the resolver has to find out: those that are Unsure or unknown, and overdue reservations
//
// # The parts of a reserver
//
//	Reserver          answers an order: from memory, by a batch, or by a look-up (reserver.go)
//	batcher           queues, calls and answers of each SKU; learns what replies say (batch.go, sku_queue.go)
//	lookups           finds orders by serial, many in a call; states of orders (lookup.go)
//	finisher          confirms, releases and refunds (finish.go)
//	resolver          finds out what became of unresolved orders (resolve.go)
//	reconciler        tells frozen ledgers the orders that they have lost (reconciler.go)
//	auditor           judges the numbers of ledgers that were swept (auditor.go)
//	maintenance       sweeps overdue reservations, removes queues of SKUs without a ledger, watches backlogs and mirrors,
//	                  and runs reconciler, resolver and auditor (maintain.go)
//	mirrorWriter      shows what is free in the upstream's own keys (mirror.go)
//	core              what all of them share: store, SKUs, known orders, metrics (core.go); when an entry of the
//	                  sold-out cache is too old (soldout.go); serials whose outcome is unknown (unresolved.go)
//
// The queue of a SKU (skuQueue) has the state of all parts for that SKU, and one mutex.
//
// # The store and its recovery
//
// A Store keeps ledgers in Redis by the Lua scripts in lua/ (store.go). A change is done whole or not at all, and a call
// is sent again by those alone who can tell from the answer whether it has run before. A missing or unreadable key is
// never 0, and a Redis that may evict keys is rejected. protocol.go has the values of its calls.
//
// A ledger that lost what it had said sells nothing until it is recovered (recovery.go): seen.go has what an instance
// has seen of each ledger, operation_log.go the orders that it tells again, state_dir.go their journal on a disk.
package ledger
