package proxy

// "Your order was not placed and you were not charged" is what a refused shopper wants to hear first, and must not hear
// unless it is so. A buyer who had no answer asks again, by the same Idempotency-Key or for the order's state: to that
// buyer a limit, or a ledger that cannot be reached, says something of this request alone.

// mayRepeat reports whether an earlier request of this client may have placed the order that this one is about, and
// nobody has looked.
func (r *request) mayRepeat(reason Reason) bool {
	if r.asking {
		return true
	}
	if r.route.Gate != Reserve {
		return false
	}
	switch reason {
	case ConnRate, Rate, Window, Concurrency, QueueTimeout, StockError:
		return true
	}
	return false
}
