package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// heap is what the gate keeps after a garbage collection, in bytes.
func (g *running) heap(t *testing.T) int {
	t.Helper()
	text := g.control("GET", "/debug/pprof/heap?gc=1&debug=1", "").body
	found := regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no heap in %.200q", text)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReload_HundredReloadsDoNotGrowTheHeap(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	g := stocked(t, open(t, nil).setting(), "limits.concurrency.max_in_flight = 256")
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(from, to int) {
		for i := from; i < to; i++ {
			next := strings.Replace(string(text), "max_in_flight = 256", fmt.Sprint("max_in_flight = ", 256+i), 1)
			g.rewrite(strings.Replace(next, "[[route]]", fmt.Sprintf(`[[route]]
name = "extra %d"
match = "GET /extra/%d"
gate = "limit"

[[route]]`, i%2, i), 1), true)
		}
	}
	reload(0, 10)
	before := g.heap(t)
	reload(10, 110)
	after := g.heap(t)
	t.Logf("%d KiB, and %d KiB after 100 reloads", before>>10, after>>10)
	if after > before+5<<20 {
		t.Errorf("the heap has grown from %d KiB to %d KiB", before>>10, after>>10)
	}
}
