package room

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

const (
	// ScoreEnd is above every score. A score has 52 bits, so that JavaScript, JSON and Lua have it exactly.
	ScoreEnd = int64(1) << 52

	// SeedSize is the length of a seed in bytes.
	SeedSize = 32

	maxUser = 256 // bytes of a user for which a score takes no memory
)

// Final is what decides a draw.
type Final [sha256.Size]byte

// newFinal is HMAC-SHA256 of the beacon by the seed. Without a beacon the seed alone decides.
func newFinal(seed, beacon []byte) (f Final) {
	h := hmac.New(sha256.New, seed)
	h.Write(beacon)
	h.Sum(f[:0])
	return f
}

// Score is the user's place in the draw: the first 52 bits of SHA-256(final, user). The lowest is called first.
func (f *Final) Score(user []byte) int64 {
	var room [sha256.Size + maxUser]byte
	text := append(append(room[:0], f[:]...), user...)
	sum := sha256.Sum256(text)
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 12)
}

// Commit is what is published of a seed before the start: its SHA-256 in hexadecimal digits.
func Commit(seed []byte) string {
	sum := sha256.Sum256(seed)
	return hex.EncodeToString(sum[:])
}

// Lottery is what is published of a draw. With it, and the user's name, a score can be computed again.
type Lottery struct {
	Commit      string `json:"commit"`                 // SHA-256 of the seed, before the start
	BeaconRound int64  `json:"beacon_round,omitempty"` // the first one after the start; 0 = there is no beacon
	BeaconAt    int64  `json:"beacon_at_ms,omitempty"` // when this round is published; Unix ms
	BeaconKey   string `json:"beacon_key,omitempty"`   // of the beacon, in hexadecimal digits
	Beacon      string `json:"beacon,omitempty"`       // the signature of the round by this key, in hexadecimal digits
	Seed        string `json:"seed,omitempty"`         // in hexadecimal digits; from the draw on
	DrawnBy     string `json:"drawn_by,omitempty"`     // "beacon", or "shop": the commitment alone stands
	Redrawn     int64  `json:"redrawn,omitempty"`      // draws of this room that had begun when their start was moved
}

// Who draws.
const (
	ByBeacon = "beacon"
	ByShop   = "shop"
)

// Drawn reports that the draw has been made.
func (l *Lottery) Drawn() bool { return l.Seed != "" }

// Final computes what decides the draw, and checks that the seed is the one that was committed to.
func (l *Lottery) Final() (f Final, err error) {
	seed, err := hex.DecodeString(l.Seed)
	if err != nil || len(seed) != SeedSize {
		return f, fmt.Errorf("seed %.70q: it has not %d bytes in hexadecimal digits", l.Seed, SeedSize)
	}
	if got := Commit(seed); got != l.Commit {
		return f, fmt.Errorf("the seed's SHA-256 is %s, but %s was committed to", got, l.Commit)
	}
	switch {
	case l.DrawnBy == ByBeacon:
		signature, err := hex.DecodeString(l.Beacon)
		if err != nil || len(signature) == 0 {
			return f, fmt.Errorf("beacon %.70q: is not in hexadecimal digits", l.Beacon)
		}
		return newFinal(seed, signature), nil
	case l.DrawnBy != ByShop || l.Beacon != "":
		return f, errors.New("it is not said who has drawn")
	}
	return newFinal(seed, nil), nil
}

// CheckBeacon checks that signature, in hexadecimal digits, is that of the round by the key.
func (l *Lottery) CheckBeacon(signature string) error {
	key, err := ParseBeaconKey(l.BeaconKey)
	if err != nil {
		return err
	}
	return key.Verify(l.BeaconRound, signature)
}

// Check computes what decides the draw, and checks all that is published of it: the seed is the committed one, and the
// beacon is the signature of its round.
func (l *Lottery) Check() (f Final, err error) {
	if f, err = l.Final(); err != nil || l.DrawnBy != ByBeacon {
		return f, err
	}
	if err := l.CheckBeacon(l.Beacon); err != nil {
		return f, fmt.Errorf("beacon of round %d: %w", l.BeaconRound, err)
	}
	return f, nil
}

// checkRound checks that the beacon was not known before the start (Unix ms): its round was published later. When that
// was is known of quicknet; of another beacon the record says it.
func (l *Lottery) checkRound(starts int64) error {
	due := l.BeaconAt
	if l.BeaconKey == Quicknet {
		due = QuicknetSchedule().Due(l.BeaconRound)
	}
	if due <= starts {
		return fmt.Errorf("beacon of round %d: it was published at %s, before the start at %s: it was known while people "+
			"could still join the draw", l.BeaconRound, clock(due), clock(starts))
	}
	return nil
}

func clock(unixMS int64) string { return time.UnixMilli(unixMS).UTC().Format(time.RFC3339) }
