package room

// Rounds of public randomness are checked offline, by the key of their beacon: BLS signatures on BLS12-381 with keys in
// G2 and signatures in G1, unchained, as drand's quicknet makes them each 3 s.

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cloudflare/circl/sign/bls"
)

const (
	// Quicknet is the public key of drand's quicknet in hexadecimal digits, of the chain
	// 52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971.
	Quicknet = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c" +
		"8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb" +
		"5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"

	// quicknetGenesis is when round 1 of quicknet was published, in Unix seconds.
	quicknetGenesis = 1692803367

	// quicknetPeriod is the time between two rounds of quicknet.
	quicknetPeriod = 3 * time.Second

	keySize       = 96 // bytes: a compressed point of G2
	signatureSize = 48 // likewise of G1
)

// BeaconSchedule says when the rounds of a beacon are published.
type BeaconSchedule struct {
	Genesis int64 // Unix ms of round 1
	Period  int64 // ms from one round to the next; above 0
}

// QuicknetSchedule is that of quicknet.
func QuicknetSchedule() BeaconSchedule {
	return BeaconSchedule{Genesis: quicknetGenesis * 1000, Period: quicknetPeriod.Milliseconds()}
}

// After is the first round that is published after at, and when that is; both times are Unix ms.
func (b BeaconSchedule) After(at int64) (round, due int64) {
	if at < b.Genesis {
		return 1, b.Genesis
	}
	n := (at-b.Genesis)/b.Period + 1
	return n + 1, b.Genesis + n*b.Period
}

// Due is when a round is published, in Unix ms.
func (b BeaconSchedule) Due(round int64) int64 { return b.Genesis + (round-1)*b.Period }

// BeaconKey checks the rounds of one beacon. It is safe for concurrent use.
type BeaconKey struct{ public bls.PublicKey[bls.KeyG2SigG1] }

// ParseBeaconKey reads a public key in hexadecimal digits.
func ParseBeaconKey(text string) (*BeaconKey, error) {
	raw, err := hex.DecodeString(text)
	k := new(BeaconKey)
	if err != nil || len(raw) != keySize || k.public.UnmarshalBinary(raw) != nil || !k.public.Validate() {
		return nil, fmt.Errorf("%.20q…: is no public key of %d bytes on G2 of BLS12-381 in hexadecimal digits", text, keySize)
	}
	return k, nil
}

// errSignature is that of a round whose signature is not the beacon's.
var errSignature = errors.New("it is not the signature of this round by the key of the beacon")

// Verify checks the signature of a round in hexadecimal digits.
func (b *BeaconKey) Verify(round int64, signature string) error {
	raw, err := hex.DecodeString(signature)
	if err != nil || len(raw) != signatureSize {
		return fmt.Errorf("%.100q has not %d bytes in hexadecimal digits", signature, signatureSize)
	}
	message := BeaconMessage(round)
	if !bls.Verify(&b.public, message[:], raw) {
		return errSignature
	}
	return nil
}

// BeaconMessage is what a beacon signs for a round: SHA-256 of its number in eight bytes.
func BeaconMessage(round int64) [sha256.Size]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(round)))
}
