package beacon

import "testing"

func TestSchedule_RoundAfterATime(t *testing.T) {
	s := Schedule{Genesis: 10_000, Period: 3000}
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
