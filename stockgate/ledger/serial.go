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

// maxGenerations bounds how many serials of a user who sends no keys one call tries. The next call goes on from there.
const maxGenerations = 64

// derivedBytes is how much of the code a derived serial keeps: 160 bits, more than the half that RFC 2104 asks for.
// Redis takes a name of up to 44 bytes in one piece, so that every byte saved is saved in the ledger and in its
// scripts.
const derivedBytes = 20

// derivedLength is how many bytes a derived serial has.
const derivedLength = derivedBytes * 8 / 5

// derivedDigits are the digits of derived serials.
const derivedDigits = "abcdefghijklmnopqrstuvwxyz234567"

// LooksDerived reports a serial of the form that derive gives: a client that shows it as its key may have read it in an
// answer to another one.
func LooksDerived(serial string) bool {
	return len(serial) == derivedLength && strings.Trim(serial, derivedDigits) == ""
}

// deriver makes the serials of users who send no key. The code's key is made ready once for many of them: that is
// half of what a code costs.
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
	v := &deriver{text: base32.NewEncoding(derivedDigits)}
	v.ready.New = func() any { return &code{Hash: hmac.New(sha256.New, secret)} }
	return v
}

// derive returns the serial of a user's order: HMAC-SHA256 (RFC 2104), cut off, over SKU, user, generation and, but in
// the first sale of the SKU, the sale, each with its length, in base32 (RFC 4648), in lower case. Every instance with
// the secret finds the same.
func (v *deriver) derive(sku, user []byte, sale int64, generation int) string {
	var numbers [2][8]byte
	binary.BigEndian.PutUint64(numbers[0][:], uint64(generation))
	if sale == 0 {
		return v.sum(sku, user, numbers[0][:])
	}
	binary.BigEndian.PutUint64(numbers[1][:], uint64(sale))
	return v.sum(sku, user, numbers[0][:], numbers[1][:])
}

// Proof is what shows that its bearer was told of an order: 160 bits that cannot be guessed without the secret. It
// is no serial: the last part of a derived one has bytes that no serial has.
func (v *deriver) Proof(sku, serial string) string {
	return v.sum([]byte("proof of an order"), []byte(sku), []byte(serial))
}

// sum is the code of parts, each with its length before it.
func (v *deriver) sum(parts ...[]byte) string {
	c := v.ready.Get().(*code)
	defer v.ready.Put(c)
	c.Reset()
	c.room = c.room[:0]
	for _, part := range parts {
		c.room = append(binary.BigEndian.AppendUint64(c.room, uint64(len(part))), part...)
	}
	c.Write(c.room)
	c.room = c.Sum(c.room[:0])
	var text [derivedLength]byte
	v.text.Encode(text[:], c.room[:derivedBytes])
	return string(text[:])
}

// unique returns the serial of an order that nothing identifies.
func unique() string { return strings.ToLower(rand.Text()) }

// answerUser asks for an order of a user who sends no key. Nothing is kept for it but the ledger: the user's
// generations are tried one after the other. One that is reserved is this very order, under way. One that was
// released came to nothing, and one that is confirmed is over, so that the next one is tried, while the user may have
// more. If that gains nothing, the answer is what is confirmed already: the order may be a repetition of it.
//
// A released serial must therefore be remembered for longer than a sale (Keep): a generation that is forgotten would be
// found free again.
//
// The cache of known orders tells where to begin, and what was bought before that. If that gains nothing, and something
// was bought, all are counted anew: some may have been refunded since, or this may be a repetition of one of them.
//
// All serials are of the latest sale that was seen. If the ledger is in another one, nothing is reserved, and the
// answer is StaleEpoch.
func (r *Reserver) answerUser(now int64, o Order, try orderAttempt) Outcome {
	walk := generations{Reserver: r, order: o, try: try}
	q := r.skus.Find(o.SKU)
	if q == nil {
		return walk.from(0, 0)
	}
	walk.sale = q.sale.Load()
	last := r.users.find(now, q, o.User)
	if last == nil || last.sale != walk.sale {
		return walk.from(0, 0)
	}
	out := walk.from(last.generation, last.bought)
	if walk.final || last.bought == 0 {
		return out
	}
	again := walk.from(0, 0)
	if again.Code == Overloaded && walk.confirmed.Code == ReplaySold {
		return walk.confirmed
	}
	return again
}

// generations are those of one user in one sale of a SKU.
type generations struct {
	*Reserver
	order Order
	try   orderAttempt
	sale  int64

	confirmed Outcome // the last one that was found to be confirmed
	final     bool    // what became of those before the first one cannot matter to the answer
}

// from tries one generation after the other, of which the first is given, with what was bought before it. After
// maxGenerations that came to nothing or are over the answer is Overloaded, and the next call goes on there.
func (g *generations) from(generation int, bought int64) Outcome {
	var k *knownOrder
	confirmed := false
	for range maxGenerations {
		k = &knownOrder{
			Item:    Item{Serial: g.derive(g.order.SKU, g.order.User, g.sale, generation)},
			derived: true, sale: g.sale, generation: generation, bought: bought,
		}
		generation++
		out, quantity := g.try(g.Reserver, g.o.Now(), g.order, k), g.order.Quantity
		if out.Code == OtherOrder {
			out, quantity = g.sameGeneration(g.order, k.Serial)
		}
		switch {
		case out.Code == Released, out.Code == Refunded:
		case out.Code == ReplaySold && out.Serial == k.Serial:
			g.confirmed, confirmed = out, true
			bought += quantity
			if bought+g.order.Quantity > g.live.Load().perUser {
				return out
			}
		case out.Code == Held,
			out.Code == ReplayHeld,
			out.Code == Unsure,
			out.Code == passOn,
			out.Code == StaleEpoch,
			out.Code == ReplaySold:
			g.final = true
			return out
		case confirmed:
			g.final = true
			return g.confirmed
		default:
			return out
		}
	}
	if g.final = true; !k.sold.Load() { // else it is kept
		g.keepOver(g.o.Now(), k)
	}
	return Outcome{Code: Overloaded}
}

// sameGeneration is the answer to an order whose derived serial the ledger has for another quantity or cart, and the
// quantity that it has.
func (r *Reserver) sameGeneration(o Order, serial string) (Outcome, int64) {
	q := r.skus.Find(o.SKU)
	if q == nil {
		return Outcome{Code: Unsure}, 0
	}
	rec, ok, err := r.find(r.ctx, q, serial)
	switch {
	case err != nil, !ok:
		return Outcome{Code: Overloaded}, 0
	case rec.Status == StatusHeld:
		return Outcome{Code: ReplayHeld, Serial: serial}, rec.Quantity
	case rec.Status == StatusSold:
		return Outcome{Code: ReplaySold, Serial: serial}, rec.Quantity
	}
	return Outcome{Code: Released, Serial: serial}, rec.Quantity
}
