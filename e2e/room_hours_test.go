package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// roomHours are fields of the room "rush" in Redis.
func roomHours(t *testing.T, r *redistest.Server, fields ...string) string {
	t.Helper()
	return fmt.Sprint(r.Client.HMGet(t.Context(), "sluice:shop:room:{rush}:s", fields...).Val())
}

// A sale is postponed by a rolling deployment. An instance with the former file starts meanwhile, and is then replaced.
// The one with the right file says so, and people keep their places at the former end.
func TestRoom_PostponedSaleKeepsItsPeopleAtItsFormerEnd(t *testing.T) {
	t.Parallel()
	r, begin := redistest.Start(t), time.Now()
	gate(t, open(t, nil).setting())
	ends := time.Now().Add(10*time.Second + 10*time.Since(begin))   // three instances start before, on a slow machine too
	former, later := ends.Add(-time.Hour), ends.Add(30*time.Minute) // a sale is an hour
	gates, _ := roomGatesOn(t, r, 2, former, "")
	g := gates[0]
	beginsAt(t, gates[:1], former, later)
	opened(t, gates[:1])
	p := &person{user: "u"}
	if s, status := p.ask(t, g, "POST", "/join"); status != 200 || s.State != "waiting" {
		t.Fatalf("%d %+v", status, s)
	}
	gates[1].die()
	other := start(t, gates[1].file, exec.Command(binary, "run", "--config", gates[1].file))
	hours := func(begins time.Time) string {
		return fmt.Sprintf("[%d %d]", begins.UnixMilli(), begins.Add(time.Hour).UnixMilli())
	}
	soon(t, "the room has the former hours", func() bool { return roomHours(t, r, "starts", "ends") == hours(former) })
	other.die()
	soon(t, "the instance that is left says so", func() bool {
		_, ready := g.peek("/readyz")
		return strings.Contains(ready, "another instance has told it other hours") && strings.Contains(g.log.String(),
			`the waiting room \"rush\" has a sale from `+former.UTC().Format(time.RFC3339))
	})
	inTime(t, time.Until(ends)+2*long, "it tells its hours again at the former end", func() bool {
		return time.Now().After(ends) && roomHours(t, r, "starts", "ends") == hours(later)
	})
	if s, status := p.ask(t, g, "GET", "/me"); status != 200 || s.State == "invalid" || s.Number != 1 { // called, perhaps
		t.Errorf("who had joined hears %d %+v; log: %s", status, s, g.log.String())
	}
}
