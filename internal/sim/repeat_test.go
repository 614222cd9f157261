package sim

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSeed_Repeats plays some seeds in two processes, and compares every command that Redis got, and when. The plan of
// a seed, its faults and its random words are always the same. What is not: Go iterates over maps and chooses among
// channels at random, and go-redis has goroutines of one instant race for its connections after a fail-over.
func TestSeed_Repeats(t *testing.T) {
	const played = 40
	var runs [2]map[string]string
	for i := range runs {
		file := filepath.Join(t.TempDir(), "calls")
		cmd := exec.Command(os.Args[0], "-test.run", "^TestSchedules_KeepThePromises$", "-seeds", strconv.Itoa(played),
			"-calls", file)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		runs[i] = callsBySeed(t, file)
	}
	equal := 0
	for seed, calls := range runs[0] {
		if calls == runs[1][seed] {
			equal++
		}
	}
	t.Logf("%d of %d seeds repeat exactly", equal, played)
	if len(runs[0]) != played || equal < played/2 {
		t.Errorf("%d of %d seeds repeat exactly, want at least half of %d", equal, len(runs[0]), played)
	}
}

// callsBySeed are the lines of a file by their first word.
func callsBySeed(t *testing.T, name string) map[string]string {
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, lines := make(map[string]string), bufio.NewScanner(file)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		seed, call, _ := strings.Cut(lines.Text(), " ")
		all[seed] += call + "\n"
	}
	return all
}
