package sale

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A sale is paused, moved behind its former hours in two steps, and resumed. Then it is moved back. Each time all
// instances restart.
func TestOverride_ResumeFollowsASaleThatIsMovedBack(t *testing.T) {
	for what, hours := range map[string][][2]time.Duration{
		"in one step":  {{60, 120}, {90, 150}, {130, 190}, {60, 120}},
		"in two steps": {{60, 120}, {90, 150}, {130, 190}, {90, 150}, {60, 120}},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := redistest.Start(t), time.Now()
			for i, at := range hours {
				b := instance(t, r, 0, from(now, at))
				switch {
				case i == 0:
					testkit.Check(t, b.Set(t.Context(), "a", Paused))
				case i == 2:
					testkit.Check(t, b.Set(t.Context(), "a", On))
				}
				if shut := b.All()[0].Shut; shut != (i < 2) {
					t.Errorf("moved %d times: paused is %v", i, shut)
				}
				b.Close()
			}
		})
	}
}

// The hours of a sale that is paused are typed wrong for a moment, far too long, and corrected. The next sale of the
// name is another one.
func TestOverride_PauseEndsWithTheSaleWhoseHoursWereTooLongForAMoment(t *testing.T) {
	r, now := redistest.Start(t), time.Now()
	for i, at := range [][2]time.Duration{{60, 120}, {60, 3000}, {60, 120}, {1440, 1500}} {
		b := instance(t, r, 0, from(now, at))
		if i == 0 {
			testkit.Check(t, b.Set(t.Context(), "a", Paused))
		}
		if shut := b.All()[0].Shut; shut != (i < 3) {
			t.Errorf("%d: paused is %v", i, shut)
		}
		b.Close()
	}
}
