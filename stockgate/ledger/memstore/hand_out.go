package memstore

import "sluice/stockgate/ledger/protocol"

// suspect has an order asked about once every attempt has ended that may have been lost. It has a lease
// number that no lost attempt has: what is said of those changes nothing any more.
func (b *memoryStock) suspect(q *queued, c *protocol.HandOutCall) {
	q.lease += 1000
	q.epoch, q.where, q.due = b.Epoch, protocol.Asking, c.Now+c.Longest()
}

// looked is how many orders are looked at where none are to be handed out, or some of those that are cannot be.
const looked = 16

// ready are those of some orders that may be handed out now, about as many as are wanted.
func (b *memoryStock) ready(serials []string, want int, c *protocol.HandOutCall, t *protocol.HandedOut) (
	list []string,
) {
	for _, page := range []int{want, looked} {
		n := min(page, len(serials))
		for _, serial := range serials[:n] {
			q, held := b.queue.orders[serial], b.records[serial].Deadline
			switch over := q.until <= c.Now || held <= c.Now; {
			case q.epoch != b.Epoch:
				b.suspect(q, c)
			case over && q.open:
				q.where, q.due = protocol.Asking, c.Now
			case over:
				t.Expired = append(t.Expired, b.leased(serial, q, ""))
			default:
				list = append(list, serial)
			}
		}
		if serials = serials[n:]; len(list) >= want || n < page {
			return list
		}
	}
	return list
}

func (b *memoryStock) takeWaiting(c *protocol.HandOutCall, t *protocol.HandedOut) {
	room := max(min(c.Orders, c.Limit-len(b.at(protocol.Delivering))), 0)
	var first, late []string
	for _, serial := range b.at(protocol.Queued) {
		switch number := b.queue.orders[serial].number; {
		case number < later:
			first = append(first, serial)
		case number-later <= c.Now:
			late = append(late, serial)
		}
	}
	page := room + 1
	if c.Orders == 0 {
		page = looked
	}
	first, late = b.ready(first, page, c, t), b.ready(late, page, c, t)
	for k := range room {
		switch {
		case len(late) > 0 && ((b.queue.delivered+int64(k)+1)%2 == 0 || len(first) == 0):
			b.lease(late[0], c, t)
			late = late[1:]
		case len(first) > 0:
			b.lease(first[0], c, t)
			first = first[1:]
		}
	}
	for _, left := range [][]string{first, late} {
		if len(left) > 0 && (t.Oldest == 0 || b.queue.orders[left[0]].until < t.Oldest) {
			t.Oldest = b.queue.orders[left[0]].until
		}
	}
}

// lease begins an attempt. It ends before the reservation does.
func (b *memoryStock) lease(serial string, c *protocol.HandOutCall, t *protocol.HandedOut) {
	q := b.queue.orders[serial]
	q.attempt++
	q.lease++
	q.deadline = min(c.Now+c.Doubled(q.attempt), b.records[serial].Deadline)
	q.where, q.due = protocol.Delivering, q.deadline+c.Grace
	t.Orders = append(t.Orders, b.leased(serial, q, q.request))
}

func (b *memoryStock) takeUnknown(c *protocol.HandOutCall, t *protocol.HandedOut) {
	for _, where := range []protocol.Where{protocol.Delivering, protocol.Asking} {
		for _, serial := range b.at(where) {
			q := b.queue.orders[serial]
			switch {
			case q.due > c.Now || len(t.Ask) >= c.Ask:
			case q.epoch != b.Epoch:
				b.suspect(q, c)
			default:
				q.where, q.due = protocol.Asking, c.Now+c.AskFor
				t.Ask = append(t.Ask, b.leased(serial, q, ""))
			}
		}
	}
}
