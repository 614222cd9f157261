package room

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func seedOf(r *rand.Rand) []byte {
	seed := make([]byte, SeedSize)
	for i := range seed {
		seed[i] = byte(r.Uint32())
	}
	return seed
}

// The chance of being called must not depend on when a user joined, however users are named. With 10 groups there are 9
// degrees of freedom: chi-square above 21.67 would have a probability below 0.01.
func TestDraw_EarlyAndLateHaveTheSameChance(t *testing.T) {
	const users, called, draws, groups = 1000, 100, 200, 10
	random := rand.New(rand.NewPCG(1, 2))
	var won [groups]float64
	total := 0.0
	for range draws {
		final := newFinal(seedOf(random), seedOf(random))
		s := State{Early: users, Issued: users, Serving: users, Phase: Open, Draw: true, Lottery: Lottery{Seed: "drawn"}}
		rules := Rules{Overshoot: 1}
		s.Threshold = rules.Move(&s, called).Threshold
		for i := range users { // in the order in which they joined
			if final.Score([]byte(fmt.Sprintf("u%d", i))) < s.Threshold {
				won[i*groups/users]++
				total++
			}
		}
	}
	if share := total / draws; share < 95 || share > 105 {
		t.Errorf("%v of %d were called on average, want about %d", share, users, called)
	}
	chi, want := 0.0, total/groups
	for _, n := range won {
		chi += (n - want) * (n - want) / want
	}
	if chi > 21.67 {
		t.Errorf("chi-square %.1f of %v", chi, won)
	}
}

// round1000 is the signature of round 1000 of quicknet, as drand publishes it.
const round1000 = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125" +
	"e342b73a8dd2bacbe47e4b6b63ed5e39"

func lottery(seed, beacon string) Lottery {
	l := Lottery{Commit: Commit([]byte(seed)), Seed: hex.EncodeToString([]byte(seed)), DrawnBy: ByShop}
	if beacon != "" {
		l.DrawnBy, l.Beacon, l.BeaconRound, l.BeaconKey = ByBeacon, beacon, 1000, Quicknet
	}
	return l
}

func TestVerify_RecomputesWhoWasCalled(t *testing.T) {
	seed, beacon := strings.Repeat("s", SeedSize), round1000
	signature, _ := hex.DecodeString(beacon)
	rules := Rules{Name: "r", BeaconKey: Quicknet, ClaimWithin: time.Minute}
	s := State{Draw: true, Early: 100, Issued: 100, Lottery: lottery(seed, beacon), Count: 2,
		Steps: []Step{{At: 1000, Threshold: ScoreEnd / 4}, {At: 2000, Threshold: ScoreEnd / 2}}, Threshold: ScoreEnd / 2,
		At: 3000}
	rec, final := rules.Record(&s), newFinal([]byte(seed), signature)
	times := map[int64]int{}
	for i := range 20 { // each verifies a signature
		user := fmt.Sprintf("u%d", i)
		v, err := rec.Verify(user)
		if err != nil {
			t.Fatal(err)
		}
		got := rules.Position(&s, &final, Place{Number: 1, Joined: 1, Flags: Early}, []byte(user))
		if v.Score != got.Score || v.CalledAt != got.CalledAt || (v.CalledAt == 0) != (v.Score >= ScoreEnd/2) {
			t.Errorf("%s: verified %+v, the gate says %+v", user, v, got)
		}
		times[v.CalledAt]++
	}
	if len(times) != 3 {
		t.Errorf("called at %v", times)
	}
}

func TestVerify_FindsWhatWasChanged(t *testing.T) {
	seed, beacon := strings.Repeat("s", SeedSize), round1000
	for name, change := range map[string]func(*Record){
		"SHA-256":    func(r *Record) { r.Draw.Seed = hex.EncodeToString([]byte(strings.Repeat("x", SeedSize))) },
		"bytes in":   func(r *Record) { r.Draw.Beacon = "00" },
		"not the":    func(r *Record) { r.Draw.Beacon = "a" + r.Draw.Beacon[1:] },
		"round 1001": func(r *Record) { r.Draw.BeaconRound++ },
		"public key": func(r *Record) { r.Draw.BeaconKey = "00" },
		"who has":    func(r *Record) { r.Draw.DrawnBy = ByShop },
		"may only":   func(r *Record) { r.Steps[1].Threshold = 1 },
		"published":  func(r *Record) { r.StartsAt = 1692803367_000 + 999*3000 }, // at the very start it was known
		"no draw":    func(r *Record) { r.Order = FIFO },
		"not been":   func(r *Record) { r.Draw.Seed = "" },
		"SHA-256 is": func(r *Record) { r.Draw.Commit = Commit([]byte("other")) },
	} {
		rec := Record{Order: Draw, Early: 5, Draw: lottery(seed, beacon),
			Steps: []Step{{At: 1, Threshold: 5}, {At: 2, Threshold: 6}}}
		if _, err := rec.Verify("u"); err != nil {
			t.Fatal(err)
		}
		change(&rec)
		if _, err := rec.Verify("u"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScore_AllocatesNothing(t *testing.T) {
	final := newFinal([]byte("seed"), nil)
	user := []byte(strings.Repeat("u", maxUser))
	if n := testing.AllocsPerRun(100, func() { _ = final.Score(user) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Who came behind a draw whose start was moved takes part in the next one, with the same ticket.
func TestPosition_ATicketFromBehindADrawIsInTheNextOne(t *testing.T) {
	late, rules := Place{Number: 12, Joined: 1}, Rules{Name: "r", ClaimWithin: time.Minute}
	final := newFinal([]byte("seed"), nil)
	s := State{Draw: true, Early: 10, Issued: 12, Starts: 1000, At: 2000, Phase: Open, Lottery: Lottery{Seed: "drawn"}}
	if pos := rules.Position(&s, &final, late, []byte("u")); pos.Score >= 0 {
		t.Errorf("behind the draw: %+v", pos)
	}
	s = State{Draw: true, Issued: 12, Starts: 9000, At: 2000, Phase: PreQueue}
	if pos := rules.Position(&s, nil, late, []byte("u")); pos.State != IsWaiting || pos.Ahead >= 0 {
		t.Errorf("before the next start: %+v", pos)
	}
	s = State{Draw: true, Early: 12, Issued: 13, Starts: 9000, At: 10_000, Phase: Open, Lottery: Lottery{Seed: "drawn"}}
	if pos := rules.Position(&s, &final, late, []byte("u")); pos.Score != final.Score([]byte("u")) {
		t.Errorf("in the next draw: %+v", pos)
	}
	if pos := rules.Position(&s, &final, Place{Number: 13, Joined: 1}, []byte("u")); pos.Score >= 0 {
		t.Errorf("behind the next draw: %+v", pos)
	}
}
