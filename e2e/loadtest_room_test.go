package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Before a route with a waiting room the crowd joins that, waits, claims and orders. The real room is not touched, and
// nothing is left in Redis.
func TestLoadTest_GoesThroughTheWaitingRoom(t *testing.T) {
	testkit.Nightly(t, "it plays a sale in real time")
	t.Parallel()
	redis := redistest.Start(t)
	keys := filepath.Join(t.TempDir(), "room.key")
	if err := os.WriteFile(keys, []byte(oldRoomKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+"\nauth.room_key_file = \""+keys+
		"\"\n[[room]]\nname = \"rush\"\nsale = \"rush\"\norder = \"draw\"\npoll_ceiling = \"2s\"\n"+
		saleOf(time.Now().Add(24*time.Hour), tenUnits)+"\n"+
		strings.Replace(reserveRoutes, "user = \"$cookie_uid\"", "user = \"$cookie_uid\"\nroom = \"rush\"", 1))
	r := runLoadTest(t, path, "--buyers", "300", "--stock", "20", "--over", "100ms", "--shop-latency", "5ms")
	if r.code != 0 || r.Room == nil {
		t.Fatalf("exit code %d, %+v\n%s", r.code, r.Room, r.complaint)
	}
	if m := r.Room; m.Joined != 300 || m.Passes < 20 || m.Passes > 60 || m.Polls < 300 || m.Ended < 240 {
		t.Errorf("the room: %+v", m)
	}
	if r.Buyer.Bought != 20 || r.Buyer.SoldOut != 280 || r.Shop.Orders != 20 || r.Rejected["room"] != 0 {
		t.Errorf("%+v, %+v, %v", r.Buyer, r.Shop, r.Rejected)
	}
	if !slices.ContainsFunc(r.NotTested, func(s string) bool { return strings.HasPrefix(s, "the draw of the waiting") }) {
		t.Errorf("not tested: %v", r.NotTested)
	}
	if left := redis.Client.Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	wants(t, ok(t, "loadtest", "--config", path, "--buyers", "50", "--stock", "5", "--over", "100ms"),
		"waiting room    50 joined")
}
