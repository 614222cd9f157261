package room

import (
	"errors"
	"strings"
	"testing"
)

// Round 1000 of quicknet, as drand publishes it.
const published = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125" +
	"e342b73a8dd2bacbe47e4b6b63ed5e39"

func TestKey_AcceptsAPublishedRoundOfQuicknetAlone(t *testing.T) {
	k, err := ParseBeaconKey(Quicknet)
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
	key, sign := ownBeacon(t)
	k, err := ParseBeaconKey(key)
	if err != nil {
		t.Fatal(err)
	}
	signature := sign(7)
	if err := k.Verify(7, signature); err != nil {
		t.Error(err)
	}
	quicknet, _ := ParseBeaconKey(Quicknet)
	if err := quicknet.Verify(7, signature); !errors.Is(err, errSignature) {
		t.Errorf("by another key: %v", err)
	}
	for _, text := range []string{"", "00", strings.Repeat("0", 192), published} {
		if _, err := ParseBeaconKey(text); err == nil {
			t.Errorf("%q is a key", text)
		}
	}
}

func TestBeaconSchedule_RoundAfterATime(t *testing.T) {
	s := BeaconSchedule{Genesis: 10_000, Period: 3000}
	for at, want := range map[int64][2]int64{
		0: {1, 10_000}, 9_999: {1, 10_000}, 10_000: {2, 13_000}, 12_999: {2, 13_000}, 13_000: {3, 16_000},
	} {
		round, due := s.After(at)
		if round != want[0] || due != want[1] || s.Due(round) != due {
			t.Errorf("after %d: round %d at %d, want %v", at, round, due, want)
		}
	}
	// Round 1000 of quicknet was published 999 rounds after its first.
	if due := QuicknetSchedule().Due(1000); due != (1692803367+999*3)*1000 {
		t.Errorf("round 1000 of quicknet at %d", due)
	}
}
