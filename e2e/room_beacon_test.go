package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

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

// rejectsStartBehindItsEnd moves the end of the sale so near to its start that the draw's round would be published
// later.
func rejectsStartBehindItsEnd(t *testing.T, g *running, begins time.Time) {
	t.Helper()
	before, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	ends := func(at time.Time) string { return strings.Split(saleOf(at.Add(-time.Hour)), "\n")[4] }
	short := strings.Replace(string(before), ends(begins.Add(time.Hour)), ends(begins.Add(time.Millisecond)), 1)
	if err := os.WriteFile(g.file, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := g.client.Post("http://"+g.admin+"/api/v1/reload", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode == 200 || !strings.Contains(string(text), "is published at") {
		t.Errorf("a sale that ends before its draw: %d %s", resp.StatusCode, text)
	}
	if err := os.WriteFile(g.file, before, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Instances read their files one after the other. A draw that had begun and was postponed has one new seed and round,
// whatever those do that still have the start before.
func TestRoom_PostponedDrawHasOneNewSeedWhileInstancesReload(t *testing.T) {
	t.Parallel()
	begins, public := time.Now().Add(30*time.Minute), startBeacon(t)
	gates, _ := roomGates(t, 2, begins, "order = \"draw\"", public.settings())
	opened(t, gates)
	people := crowdJoins(t, gates, 10)
	rejectsStartBehindItsEnd(t, gates[0], begins)
	early := time.Now().Add(300 * time.Millisecond)
	beginsAt(t, gates, begins, early)
	for _, g := range gates {
		soon(t, "the draw waits for its beacon", func() bool { d, _ := g.room(t); return d.Phase == "drawing" })
	}
	first, _ := gates[0].room(t)
	if first.Draw.At <= early.UnixMilli() || first.Draw.Key != public.key {
		t.Errorf("a start at %d, and the draw %+v", early.UnixMilli(), first.Draw)
	}
	later := time.Now().Add(20 * time.Minute)
	beginsAt(t, gates[:1], early, later)
	soon(t, "there is a new draw", func() bool { d, _ := gates[0].room(t); return d.Draw.Commit != first.Draw.Commit })
	second, _ := gates[0].room(t)
	late := &person{user: "late"}
	if s, status := late.ask(t, gates[1], "POST", "/join"); status != 200 { // at the one that does not know it yet
		t.Errorf("join: %d %+v", status, s)
	}
	enter := []string{"room", "beacon", "rush", "--admin", gates[1].admin, "--round", fmt.Sprint(first.Draw.Round),
		"--signature", public.round(first.Draw.Round)}
	if s := run(t, "", enter...); s.code == 0 {
		t.Errorf("the round of the start before: %s", s.out)
	}
	beginsAt(t, gates[1:], early, later)
	for _, g := range gates {
		soon(t, "all know the new start", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
		if d, _ := g.room(t); d.Draw != second.Draw || d.Draw.At <= later.UnixMilli() || d.Early != 0 {
			t.Errorf("%+v, then %+v", second.Draw, d.Draw)
		}
	}
	begun := time.Now().Add(300 * time.Millisecond)
	beginsAt(t, gates, later, begun)
	soon(t, "the draw waits for its beacon", func() bool { d, _ := gates[0].room(t); return d.Phase == "drawing" })
	public.draws(t, gates[0])
	soon(t, "people are called", func() bool { d, _ := gates[1].room(t); return d.Threshold > 0 })
	record := "http://" + gates[1].front + "/.sluice/room/rush/draw"
	for _, p := range append(people, late) {
		wants(t, ok(t, "room", "verify", "--user", p.user, "--record", record), "when the start was moved: 1;",
			"after the start at")
	}
}
