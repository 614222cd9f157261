package gateway

import (
	"encoding/hex"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/cloudflare/circl/sign/bls"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/room"
)

// Round 1000 of quicknet, as drand publishes it.
const published = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125" +
	"e342b73a8dd2bacbe47e4b6b63ed5e39"

// drawing is an instance of a room with a draw whose file names a beacon.
func drawing(t *testing.T, addr, key string, rounds room.BeaconSchedule, sale room.Sale) *room.Room {
	t.Helper()
	link := storetest.Link(t, addr)
	one, err := room.New(room.Options{
		Rules: room.Rules{Name: "r", Draw: true, BeaconKey: key, Beacon: rounds, Opens: time.Minute, Pass: time.Minute,
			ClaimWithin: time.Minute, Overshoot: 1, PollFloor: time.Second, PollCeiling: 20 * time.Second},
		MaxParked: 10, Few: 5, Store: room.NewStore(link, "shop", "r"),
		Stock: func() *room.KnownStock { return &room.KnownStock{} },
		Sale:  func() room.Sale { return sale },
		Now:   func() int64 { return time.Now().UnixMilli() }, Log: slog.New(slog.DiscardHandler),
	}, [][]byte{[]byte("0123456789abcdef-key")})
	if err != nil {
		t.Fatal(err)
	}
	one.Start()
	t.Cleanup(one.Close)
	return one
}

// The signature of a draw is that of the round and the key that stand in Redis since the start, whichever beacon the
// file of the instance names meanwhile.
func TestDraw_ChecksTheRoundThatStands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	now := time.Now().UnixMilli()
	sale := room.Sale{Starts: now - 60_000, Ends: now + 3_600_000}
	const hour = 3_600_000
	standing := func(one *room.Room) func() bool {
		return func() bool {
			s, _, _, _ := one.Status()
			return s != nil && s.Draw && s.Lottery.BeaconRound == 1000 && s.Lottery.BeaconKey == room.Quicknet
		}
	}
	rounds := room.BeaconSchedule{Genesis: now - 998*hour - hour/2, Period: hour} // 1000 is the next one
	first := drawing(t, server.Addr, room.Quicknet, rounds, sale)
	testkit.Eventually(t, "round 1000 stands", standing(first))
	private, err := bls.KeyGen[bls.KeyG2SigG1](make([]byte, 32), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := private.PublicKey().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	later := drawing(t, server.Addr, hex.EncodeToString(raw), room.BeaconSchedule{Genesis: now, Period: hour}, sale)
	testkit.Eventually(t, "it stands for a later instance, too", standing(later))
	message := room.BeaconMessage(1000)
	if err := drawRoom(t.Context(), later, published, 1); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("the file's round: %v", err)
	}
	if err := drawRoom(t.Context(), later, hex.EncodeToString(bls.Sign(private, message[:])), 1000); !errors.Is(err,
		admin.ErrInvalid) {
		t.Errorf("by the file's key: %v", err)
	}
	if err := drawRoom(t.Context(), later, published, 1000); err != nil {
		t.Errorf("the signature of the round that stands: %v", err)
	}
}
