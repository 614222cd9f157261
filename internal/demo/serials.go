package demo

// serials are the orders by the name that the gate gave them.
type serials struct {
	came      map[string]bool
	again     int64
	remade    int64
	orders    map[string]int // serial to the order's number
	cancelled map[string]bool
}

// arrive notes that a request with this serial has come. An order is sent at most once: a second one counts.
func (b *ledger) arrive(serial string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.serials.came[serial] {
		b.serials.again++
	}
	b.serials.came[serial] = true
}

// place writes the order of a serial down and gives its number; the same one when it is there already. It reports
// false when the serial was cancelled before.
func (b *ledger) place(serial, user string) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.serials.cancelled[serial] {
		return "", false
	}
	if n, ok := b.serials.orders[serial]; ok {
		b.serials.remade++
		return orderID(n), true
	}
	id = b.add(user)
	b.serials.orders[serial] = len(b.buyers)
	return id, true
}

// orderOf gives the number of a serial's order. A serial without one is cancelled by the question: a caller that heard
// that there is no order may rely on it.
func (b *ledger) orderOf(serial string) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.serials.orders[serial]
	if !ok {
		b.serials.cancelled[serial] = true
		return "", false
	}
	return orderID(n), true
}

// bySerial are the buyers of all orders that have a serial.
func (b *ledger) bySerial() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	buyers := make(map[string]string, len(b.serials.orders))
	for serial, n := range b.serials.orders {
		buyers[serial] = b.buyers[n-1]
	}
	return buyers
}
