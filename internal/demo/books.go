package demo

import (
	"fmt"
	"sync"
)

// ShopTotals is what the shop wrote down: the truth about a sale, whatever the stock, the gate or the crowd say.
type ShopTotals struct {
	Units    int64 // for sale in all
	Orders   int64 // written; each is one unit sold
	Oversold int64 // orders beyond Units
	Twice    int64 // users with more than one order
	Again    int64 // requests with a serial that had come before; only where the gate sends serials
	Remade   int64 // of these, whose order was there already: a shop that looks at no serial makes another one

	Received        int64 // requests for an order that came to the shop
	InFlight        int64 // of these, inside the shop now
	HighestInFlight int64
}

// ledger is the shop's own account of its orders. Who is buying (so that no user buys twice) and what was written are
// kept apart: the second checks the first.
type ledger struct {
	mu      sync.Mutex
	units   int64
	buying  map[string]bool // users who have an order, or are about to
	buyers  []string        // one entry an order, in the order in which they were written
	serials serials
	asked   int64
	inside  int64
	highest int64
}

// beginRequest counts a request, and returns how many are in the shop.
func (b *ledger) beginRequest() (inside int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	b.inside++
	b.highest = max(b.highest, b.inside)
	return b.inside
}

func (b *ledger) endRequest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside--
}

// begin reports whether the user may buy: a user who has bought, or is buying, may not.
func (b *ledger) begin(user string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buying[user] {
		return false
	}
	b.buying[user] = true
	return true
}

// abandon ends what begin began, without an order.
func (b *ledger) abandon(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.buying, user)
}

// write ends what begin began with an order, and gives its number.
func (b *ledger) write(user string) (id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(user)
}

// add writes the next order. mu is held.
func (b *ledger) add(user string) (id string) {
	b.buyers = append(b.buyers, user)
	return orderID(len(b.buyers))
}

func orderID(number int) string { return fmt.Sprintf("D%06d", number) }

func (b *ledger) read() ShopTotals {
	b.mu.Lock()
	defer b.mu.Unlock()
	orders := int64(len(b.buyers))
	return ShopTotals{
		Units: b.units, Orders: orders, Oversold: max(0, orders-b.units), Twice: repeated(b.buyers), Again: b.serials.again,
		Remade:   b.serials.remade,
		Received: b.asked, InFlight: b.inside, HighestInFlight: b.highest,
	}
}

// repeated counts the users that are named more than once.
func repeated(users []string) (n int64) {
	times := make(map[string]int, len(users))
	for _, user := range users {
		times[user]++
		if times[user] == 2 {
			n++
		}
	}
	return n
}
