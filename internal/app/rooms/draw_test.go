package rooms

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/room"
	"sluice/room/beacon"
	"sluice/room/roomgate"
	"sluice/room/roomstore"
	"sluice/stockgate/redisconn"
)

// Round 1000 of quicknet, as drand publishes it.
const published = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125" +
	"e342b73a8dd2bacbe47e4b6b63ed5e39"

// drawing is an instance of a room with a draw whose file names a round.
func drawing(t *testing.T, addr string, round int64, sale room.Sale) *roomgate.Room {
	t.Helper()
	link, err := redisconn.New(redisconn.Options{Addresses: []string{addr}, PoolSize: 2, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: redisconn.Unbroken, BreakerPause: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	one, err := roomgate.New(roomgate.Options{
		Rules: room.Rules{Name: "r", Draw: true, BeaconRound: round, BeaconKey: beacon.Quicknet, Opens: time.Minute,
			Pass: time.Minute, ClaimWithin: time.Minute, Overshoot: 1, PollFloor: time.Second, PollCeiling: 20 * time.Second},
		MaxParked: 10, Few: 5, Store: roomstore.New(link, "r"),
		Stock: func() *roomstore.Stock { return &roomstore.Stock{} },
		Sale:  func() room.Sale { return sale },
		Now:   func() int64 { return time.Now().UnixMilli() }, Log: slog.New(slog.DiscardHandler),
	}, [][]byte{[]byte("0123456789abcdef-key")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Close)
	return one
}

// The signature of a draw is that of the round that stands in Redis since the start, whichever round the file of the
// instance names meanwhile.
func TestDraw_ChecksTheRoundThatStands(t *testing.T) {
	server := redistest.Start(t)
	began := time.Now().Add(-time.Minute).UnixMilli()
	sale := room.Sale{Starts: began, Ends: began + 3_600_000}
	standing := func(one *roomgate.Room) func() bool {
		return func() bool {
			s, _, _, _ := one.Status()
			return s != nil && s.Draw && s.Lottery.BeaconRound == 1000
		}
	}
	first := drawing(t, server.Addr, 1000, sale)
	testkit.Eventually(t, "round 1000 stands", standing(first))
	later := drawing(t, server.Addr, 1001, sale)
	testkit.Eventually(t, "it stands for a later instance, too", standing(later))
	if err := draw(t.Context(), later, published, 1001); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("the file's round: %v", err)
	}
	if err := draw(t.Context(), later, "a"+published[1:], 1000); !errors.Is(err, admin.ErrInvalid) {
		t.Errorf("another signature: %v", err)
	}
	if err := draw(t.Context(), later, published, 1000); err != nil {
		t.Errorf("the signature of the round that stands: %v", err)
	}
}
