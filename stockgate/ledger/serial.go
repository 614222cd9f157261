package ledger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"strings"
	"sync"
)

// mostGenerations bounds the search for a serial of a user who sends no keys: who wants more orders of one SKU than
// this, failed ones included, must send them.
const mostGenerations = 64

// derivedBytes is how much of the code a derived serial keeps: 160 bits, more than the half that RFC 2104 asks for. Redis
// takes a name of up to 44 bytes in one piece, so that every byte saved is saved in the ledger and in its scripts.
const derivedBytes = 20

// derivedLength is how many bytes a derived serial has.
const derivedLength = derivedBytes * 8 / 5

// deriver makes the serials of users who send no key. The code's key is made ready once for many of them: that is half of
// what a code costs.
type deriver struct {
	ready sync.Pool // of *code
	text  *base32.Encoding
}

// code is one that is not in use, and room for what goes into it and what comes out.
type code struct {
	hash.Hash
	room []byte
}

func newDeriver(secret []byte) *deriver {
	v := &deriver{text: base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567")}
	v.ready.New = func() any { return &code{Hash: hmac.New(sha256.New, secret)} }
	return v
}

// derive returns the serial of a user's order: HMAC-SHA256 (RFC 2104), cut off, over SKU, user and generation, each with
// its length, in base32 (RFC 4648), in lower case. Every instance with the secret finds the same.
func (v *deriver) derive(sku, user []byte, generation int) string {
	c := v.ready.Get().(*code)
	defer v.ready.Put(c)
	c.Reset()
	c.room = mix(c.room[:0], sku)
	c.room = mix(c.room, user)
	c.room = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(c.room, 8), uint64(generation))
	c.Write(c.room)
	c.room = c.Sum(c.room[:0])
	var serial [derivedLength]byte
	v.text.Encode(serial[:], c.room[:derivedBytes])
	return string(serial[:])
}

// mix adds a part with its length before it.
func mix(all, part []byte) []byte {
	return append(binary.BigEndian.AppendUint64(all, uint64(len(part))), part...)
}

// unique returns the serial of an order that nothing identifies.
func unique() string { return strings.ToLower(rand.Text()) }

// inTurn asks for an order of a user who sends no key. Nothing is kept for it but the ledger: the user's
// generations are tried one after the other. One that is held is this very order, under way. One that was released
// came to nothing, and one that is sold is over, so that the next one is tried, while the user may have more. If that
// gains nothing, the answer is what is sold already: the order may be a repetition of it.
//
// A released serial must therefore be remembered for longer than a sale (Keep): a generation that is forgotten
// would be found free again.
//
// The desk's memory tells where to begin, and what was bought before that. Some of it may have been refunded since, so who
// has too much by that alone is counted anew.
func (d *Desk) inTurn(now int64, o Order) Outcome {
	if l := d.lines.find(o.SKU); l != nil {
		if last := d.users.find(now, l, o.User); last != nil {
			out, full := d.turns(o, last.generation, last.bought)
			if !full || last.bought == 0 {
				return out
			}
		}
	}
	out, _ := d.turns(o, 0, 0)
	return out
}

// turns tries one generation after the other, of which the first is given, with what was bought before it. It reports
// whether that and what was bought since is all that the user may have.
func (d *Desk) turns(o Order, generation int, bought int64) (out Outcome, full bool) {
	sold, last := Outcome{}, Outcome{}
	for ; generation < mostGenerations; generation++ {
		k := &known{derived: true, serial: d.derive(o.SKU, o.User, generation), generation: generation, bought: bought}
		out := d.try(d.o.Now(), o, k)
		quantity := o.Quantity
		if out.Code == OtherOrder {
			out, quantity = d.sameTurn(o, k.serial)
		}
		switch {
		case out.Code == Released:
			last = out
		case out.Code == ReplaySold && out.Serial == k.serial:
			sold = out
			bought += quantity
			if d.o.PerUser > 0 && bought+o.Quantity > d.o.PerUser {
				return sold, true
			}
		case out.Code == Held, out.Code == ReplayHeld, out.Code == Unsure, out.Code == ReplaySold, sold.Code != ReplaySold:
			return out, false
		default:
			return sold, false
		}
	}
	if sold.Code == ReplaySold {
		return sold, false
	}
	return last, false // who has bought nothing must not hear that it was too much
}

// sameTurn is the answer to an order whose derived serial the ledger has for another quantity, and that quantity.
func (d *Desk) sameTurn(o Order, serial string) (Outcome, int64) {
	l := d.lines.find(o.SKU)
	if l == nil {
		return Outcome{Code: Unsure}, 0
	}
	r, ok, err := d.find(d.ctx, l, serial)
	switch {
	case err != nil, !ok:
		return Outcome{Code: Overloaded}, 0
	case r.Status == 'H':
		return Outcome{Code: ReplayHeld, Serial: serial}, r.Quantity
	case r.Status == 'C':
		return Outcome{Code: ReplaySold, Serial: serial}, r.Quantity
	}
	return Outcome{Code: Released, Serial: serial}, r.Quantity
}
