package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/cloudflare/circl/sign/bls"

	"sluice/room"
)

// publicBeacon publishes a round of randomness each second since 1970.
type publicBeacon struct {
	private *bls.PrivateKey[bls.KeyG2SigG1]
	key     string
}

func startBeacon(t *testing.T) *publicBeacon {
	t.Helper()
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
	return &publicBeacon{private, hex.EncodeToString(raw)}
}

// settings are those of a room whose draw waits for the beacon.
func (b *publicBeacon) settings() string {
	return fmt.Sprintf("beacon = true\nbeacon_chain = \"%s 1 1s\"", b.key)
}

// round is the signature of a round.
func (b *publicBeacon) round(n int64) string {
	message := room.BeaconMessage(n)
	return hex.EncodeToString(bls.Sign(b.private, message[:]))
}

// draws makes the draw of the room "rush" by the round that it has published, and only by that.
func (b *publicBeacon) draws(t *testing.T, g *running) (signature string) {
	t.Helper()
	d, _ := g.room(t)
	n := d.Draw.Round
	enter := func(round int64, signature string) []string {
		return []string{"room", "beacon", "rush", "--admin", g.admin, "--round", fmt.Sprint(round), "--signature", signature}
	}
	for _, wrong := range [][]string{enter(n+1, b.round(n+1)), enter(n, b.round(n-1)), enter(n, startBeacon(t).round(n)),
		{"room", "beacon", "rush", "--admin", g.admin}, {"room", "beacon", "rush", "--admin", g.admin, "--none"}} {
		if s := run(t, "", wrong...); s.code == 0 {
			t.Errorf("%v: %s", wrong, s.out)
		}
	}
	body := fmt.Sprintf(`{"beacon": "", "round": %d}`, n)
	if status := g.told("POST", "/rooms/rush", body, new(map[string]any)); status != 400 {
		t.Errorf("an empty beacon: %d", status)
	}
	signature = b.round(n)
	ok(t, enter(n, signature)...)
	return signature
}
