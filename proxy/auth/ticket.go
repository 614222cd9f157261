package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// Tickets makes and checks the tokens of orders: HMAC(SKU, user, time slot). Nothing is kept of them; all instances with
// the same key know each other's. A ticket is good in the slot in which it was made and in the next: for one to two slots.
// It is safe for concurrent use.
type Tickets struct {
	mac  *mac
	slot int64 // ms
}

// ticketBytes are kept of the sum: 128 bits, which nobody guesses within two slots.
const ticketBytes = 16

// TicketLength is that of a ticket, in ASCII letters, digits, - and _.
const TicketLength = 22

// NewTickets takes a key of at least 16 bytes, which it copies, and a slot of at least a second.
func NewTickets(key []byte, slot time.Duration) (*Tickets, error) {
	m, err := newMAC(key)
	if err != nil {
		return nil, err
	}
	if slot < time.Second {
		return nil, errors.New("a slot must be at least 1s")
	}
	return &Tickets{mac: m, slot: slot.Milliseconds()}, nil
}

// Append appends the ticket of user for sku at now, in Unix ms.
func (t *Tickets) Append(dst, sku, user []byte, now int64) []byte {
	d := t.mac.take()
	sum := t.sum(d, sku, user, now/t.slot)
	dst = base64.RawURLEncoding.AppendEncode(dst, sum)
	t.mac.desks.Put(d)
	return dst
}

// Valid reports whether ticket is that of user for sku, in the slot of now (Unix ms) or the one before. How long it takes
// does not tell how much of a wrong one is right.
func (t *Tickets) Valid(ticket, sku, user []byte, now int64) bool {
	var given [ticketBytes]byte
	if len(ticket) != TicketLength {
		return false
	}
	// Strict: else the last letter could be four different ones.
	if _, err := base64.RawURLEncoding.Strict().Decode(given[:], ticket); err != nil {
		return false
	}
	d := t.mac.take()
	same := subtle.ConstantTimeCompare(given[:], t.sum(d, sku, user, now/t.slot))
	same |= subtle.ConstantTimeCompare(given[:], t.sum(d, sku, user, now/t.slot-1))
	t.mac.desks.Put(d)
	return same == 1
}

// sum tells the fields apart by their lengths: no two triples have one text. The first line keeps it from being a sum
// that the same key made for anything else.
func (t *Tickets) sum(d *desk, sku, user []byte, slot int64) []byte {
	d.text = append(d.text[:0], "order token v1\n"...)
	for _, field := range [2][]byte{sku, user} {
		d.text = binary.BigEndian.AppendUint32(d.text, uint32(len(field)))
		d.text = append(d.text, field...)
	}
	d.text = binary.BigEndian.AppendUint64(d.text, uint64(slot))
	return d.of()[:ticketBytes]
}
