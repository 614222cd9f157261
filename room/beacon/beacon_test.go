package beacon

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/bls"
)

// Round 1000 of quicknet, as drand publishes it.
const published = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125" +
	"e342b73a8dd2bacbe47e4b6b63ed5e39"

func TestKey_AcceptsAPublishedRoundOfQuicknetAlone(t *testing.T) {
	k, err := ParseKey(Quicknet)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Verify(1000, published); err != nil {
		t.Errorf("round 1000: %v", err)
	}
	other := "a" + published[1:]
	for text, round := range map[string]int64{published: 1001, other: 1000} {
		if err := k.Verify(round, text); !errors.Is(err, errSignature) {
			t.Errorf("round %d, %s: %v", round, text, err)
		}
	}
	for _, text := range []string{"", "xy", published[2:], published + "00"} {
		if err := k.Verify(1000, text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestKey_AcceptsRoundsOfItsOwnBeaconAlone(t *testing.T) {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	private, err := bls.KeyGen[bls.KeyG2SigG1](seed, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := private.PublicKey().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKey(hex.EncodeToString(raw))
	if err != nil {
		t.Fatal(err)
	}
	message := Message(7)
	signature := hex.EncodeToString(bls.Sign(private, message[:]))
	if err := k.Verify(7, signature); err != nil {
		t.Error(err)
	}
	quicknet, _ := ParseKey(Quicknet)
	if err := quicknet.Verify(7, signature); !errors.Is(err, errSignature) {
		t.Errorf("by another key: %v", err)
	}
	for _, text := range []string{"", "00", strings.Repeat("0", 192), published} {
		if _, err := ParseKey(text); err == nil {
			t.Errorf("%q is a key", text)
		}
	}
}
