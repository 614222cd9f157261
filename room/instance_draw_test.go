package room

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/bls"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// ownBeacon is a beacon that publishes a round each second: its key, and what signs a round.
func ownBeacon(t *testing.T) (key string, sign func(round int64) string) {
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
	return hex.EncodeToString(raw), func(round int64) string {
		message := BeaconMessage(round)
		return hex.EncodeToString(bls.Sign(private, message[:]))
	}
}

// What stands in Redis as the draw is checked before people are called by it and before it is published.
func TestDraw_WrongBeaconInRedisIsNotPublishedAndMakesNoCalls(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	key, sign := ownBeacon(t)
	s := open(t, r, func(o *Options) {
		o.Rules.Draw, o.Rules.BeaconKey, o.Rules.Beacon = true, key, BeaconSchedule{Genesis: 1000, Period: 1000}
	})
	s.inPhase(t, Drawing)
	l := s.view.Load().state.Lottery
	at := "sluice:shop:room:{r}:s"
	if err := r.Client.HSet(t.Context(), at, "drawn_by", "beacon", "beacon", sign(l.BeaconRound+1)).Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is told", func() bool {
		return strings.Contains(s.log.String(),
			"has a draw that is wrong")
	})
	v := s.view.Load()
	if v.state.Phase != Drawing || v.final != nil || v.state.Lottery != l || strings.Contains(string(v.doc), "seed") {
		t.Errorf("%s %+v\n%s", v.state.Phase, v.state.Lottery, v.doc)
	}
	if err := r.Client.HSet(t.Context(), at, "beacon", sign(l.BeaconRound)).Err(); err != nil {
		t.Fatal(err)
	}
	s.inPhase(t, Open)
	record := s.o.Rules.Record(s.view.Load().state)
	if _, err := record.Verify("u"); err != nil || record.Draw.BeaconAt <= record.StartsAt {
		t.Errorf("%+v: %v", record, err)
	}
}
