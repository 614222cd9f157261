package room

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"sluice/proxy/auth"
)

// Place is what a ticket says: who came when, and as which one. It is bound to a room and a user by the ticket's
// signature.
type Place struct {
	Number int64 // from 1; 0 to 2^53-1.
	Joined int64 // Unix seconds
	Flags  Flags
}

// Flags of a place.
type Flags uint8

// The flags.
const (
	Early Flags = 1 << iota // joined before the start: it takes part in the draw

	knownFlags = Early
)

const (
	// signedLength is the length of a ticket in bytes: ASCII letters, digits, "-" and "_".
	signedLength = 38

	placeSize  = 12 // bytes: flags, seven of the number, four of the time
	ticketSize = placeSize + auth.SumSize
	maxNumber  = 1<<53 - 1 // clients compute with doubles
	maxSecond  = 1<<32 - 1
)

// Keys make and check the tickets of all rooms. All instances with the same first key make the same tickets, and each
// accepts those by any of its keys. It is safe for concurrent use and does not allocate.
type Keys struct{ sums *auth.Sums }

// newKeys takes keys of at least 16 bytes, which it copies.
func newKeys(keys [][]byte) (*Keys, error) {
	sums, err := auth.NewSums("room ticket v1\n", keys)
	if err != nil {
		return nil, err
	}
	return &Keys{sums}, nil
}

// Append appends the ticket for a place in the room of a name, for user.
func (k *Keys) Append(dst, name, user []byte, p Place) []byte {
	var raw [ticketSize]byte
	p.put(&raw)
	k.sums.Append(raw[:placeSize], 0, raw[:placeSize], name, user)
	return base64.RawURLEncoding.AppendEncode(dst, raw[:])
}

// errTicket is the only thing that is said of a wrong ticket.
var errTicket = errors.New("no ticket of this room and user")

// Read checks a ticket, and returns what it says.
func (k *Keys) Read(ticket, name, user []byte) (Place, error) {
	var raw [ticketSize]byte
	if len(ticket) != signedLength {
		return Place{}, errTicket
	}
	// Strict, or else several last letters would decode to the same bytes.
	if _, err := base64.RawURLEncoding.Strict().Decode(raw[:], ticket); err != nil {
		return Place{}, errTicket
	}
	if !k.sums.Valid(raw[placeSize:], 0, raw[:placeSize], name, user) {
		return Place{}, errTicket
	}
	p := placeOf(&raw)
	if p.Flags&^knownFlags != 0 || p.Number > maxNumber {
		return Place{}, errTicket
	}
	return p, nil
}

// put writes p. A number or time that has no room is cut to the largest one.
func (p Place) put(raw *[ticketSize]byte) {
	binary.BigEndian.PutUint64(raw[:8], uint64(min(max(p.Number, 0), maxNumber)))
	raw[0] = byte(p.Flags)
	binary.BigEndian.PutUint32(raw[8:placeSize], uint32(min(max(p.Joined, 0), maxSecond)))
}

func placeOf(raw *[ticketSize]byte) Place {
	number := binary.BigEndian.Uint64(raw[:8]) &^ (0xff << 56)
	return Place{Number: int64(number), Joined: int64(binary.BigEndian.Uint32(raw[8:placeSize])), Flags: Flags(raw[0])}
}
