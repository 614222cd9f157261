package room

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// drawnRecord is what is published of a draw by the committed seed, in which half of 100 people are called.
func drawnRecord() Record {
	seed := strings.Repeat("07", SeedSize)
	raw := []byte(strings.Repeat("\x07", SeedSize))
	return Record{Room: "r", Order: Draw, Early: 100,
		Draw: Lottery{Commit: Commit(raw), Seed: seed, DrawnBy: ByShop},
		Steps: []Step{{At: 1000, Threshold: ScoreEnd / 4, Called: 25},
			{At: 2000, Threshold: ScoreEnd / 2, Called: 50}}}
}

// The page computes the score of each user as the gate does, and finds another seed and a threshold that fell.
func TestVerifyPage_ComputesWhatTheGateDoes(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	_, script, _ := strings.Cut(verifyHTML, "// begin\n")
	script, _, found := strings.Cut(script, "// end\n")
	if !found || strings.Count(script, "\n") > 30 {
		t.Fatalf("the algorithm has %d lines", strings.Count(script, "\n"))
	}
	record := drawnRecord()
	var users []string
	for i := range 50 {
		users = append(users, fmt.Sprintf("user-%d-用户", i))
	}
	in, _ := json.Marshal(map[string]any{"record": record, "users": users})
	out, err := exec.CommandContext(t.Context(), node, "-e", script+`
(async () => {
  const { record, users } = `+string(in)+`, all = [];
  for (const u of users) all.push(await verify(record, u));
  const fails = async change => {
    const r = structuredClone(record); change(r);
    try { await verify(r, 'x'); return false; } catch (err) { return true; }
  };
  console.log(JSON.stringify({ all, found: [await fails(r => { r.draw.seed = '08' + r.draw.seed.slice(2); }),
    await fails(r => { r.steps[1].threshold = 5; })] }));
})();`).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		All []struct {
			Score  int64
			Place  int64
			Called string `json:"called_at"`
		}
		Found []bool
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, u := range users {
		want, err := record.Verify(u)
		if err != nil {
			t.Fatal(err)
		}
		g := got.All[i]
		if g.Score != want.Score || (g.Called == "not yet") != (want.CalledAt == 0) || max(g.Place-want.Place,
			want.Place-g.Place) > 1 {
			t.Errorf("%s: the page has %+v, the gate %+v", u, g, want)
		}
	}
	if len(got.Found) != 2 || !got.Found[0] || !got.Found[1] {
		t.Errorf("what was manipulated is found: %v", got.Found)
	}
}
