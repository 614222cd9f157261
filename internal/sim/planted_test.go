package sim

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

var planted = flag.String("planted", "", "a bug of planted_test.go to play with, until a seed finds it")

// bugs are what the simulation must find: by name, what stands in a script, and what is read in its place, in turn.
// Those without a text are planted in the model of the gateway or of the database.
var bugs = map[string][]string{
	"a serial is not looked for": {
		"\tif record then\n\t\tcode = replay",
		"\tif false then\n\t\tcode = replay",
	},
	"a hold is not counted": {
		"free - quantity, stock.held + quantity",
		"free - quantity, stock.held",
	},
	"the units of a person are not counted": {
		"elseif stock.limit > 0 and user",
		"elseif false and user",
	},
	"a second confirmation sells again": {
		"H = 'C', C = ALREADY, X = WAS_RELEASED, R = WAS_REFUNDED",
		"H = 'C', C = 'C', X = WAS_RELEASED, R = WAS_REFUNDED",
	},
	"a release returns no unit": {
		"'R' then\n\t\tif from == 'H' then stock.held = stock.held - quantity end",
		"'R' then",
	},
	"a second refund frees a second unit": {
		"X = WAS_RELEASED, R = ALREADY},\n\tadopt",
		"X = WAS_RELEASED, R = 'R'},\n\tadopt",
		"if from == 'C' then stock.sold = stock.sold - quantity end\n\t\tif from ~= 'none'",
		"if from ~= 'H' then stock.sold = stock.sold - quantity end\n\t\tif from ~= 'none'",
	},
	"a second release frees a second unit": {
		"C = WAS_SOLD, X = ALREADY",
		"C = WAS_SOLD, X = 'X'",
		"'R' then\n\t\tif from == 'H' then stock",
		"'R' then\n\t\tif from == 'H' or from == 'X' then stock",
	},
	"a confirmed order stays held": {
		"if from == 'H' then stock.held = stock.held - quantity else units",
		"if from ~= 'H' then units",
	},
	"an overdue hold is forgotten": {
		"\tif state == 'H' then\n\t\tif #leases",
		"\tif state == '?' then\n\t\tif #leases",
		"elseif state == 'X' or state == 'R' then\n\t\tover",
		"elseif state ~= 'C' then\n\t\tover",
		"if state == 'X' then gone",
		"if state ~= 'R' then gone",
	},
	"an older stock is taken for the newest": {
		"local why = seen(stock, reached, run)",
		"local why",
	},
	"another server is trusted at once": {
		"if silent() == 0 then",
		"if true then",
	},
	"a server that is master again is trusted": {
		"if another then arrive(stock, now) end",
		"if another and string.match(stock.doubt or '', '^(.*)|%d+$') ~= RUN then\n" +
			"\t\tnote(stock, 'doubt', RUN .. '|' .. digits(now))\n\t\tstock.doubt = RUN .. '|' .. digits(now)\n\tend",
	},
	"a mark of before a fail-over counts when its server is back": {
		"(mark.run, '^%-%d+$') or NONE .. digits(stock.ver)",
		"(mark.run, '^%-%d+$') or mark.run",
	},
	"one who called a little before the others is not waited for": {
		"mark.run == before) and mark.last < newest - FRESH",
		"mark.run == before) and mark.last < newest",
	},
	"a stock that freezes keeps its epoch": {
		"stock.epoch = stock.epoch + 1\n\tend\n\tstock.state",
		"end\n\tstock.state",
	},
	"what is newest wins a merge": {
		"\tif there == 'H' then return said == 'A'",
		"\tif there == 'R' and said == 'C' then return said end\n\tif there == 'H' then return said == 'A'",
	},
	"a recovery takes no final states": {
		"\tlocal to = merge(from",
		"\tif said == 'R' or said == 'X' then return 0 end\n\tlocal to = merge(from",
	},
	"a recovery waits for one member less": {
		"\treturn waits, fields",
		"\ttable.remove(waits)\n\treturn waits, fields",
	},
	"a recovery forgets what is sold": {
		"\tcount(to, quantity, user)\n",
		"",
	},
	"a hold ends by the clock of Redis": {
		"after, place, f = '|' .. deadline",
		"after, place, f = '|' .. digits(clock() + 1500)",
	},
	"what waits is sent after a loss, and not asked about": {
		"if e.epoch ~= stock.epoch then\n\t\t\t\tsuspect(e)\n\t\t\t\tseen",
		"if false then\n\t\t\t\tsuspect(e)\n\t\t\t\tseen",
	},
	"an attempt is asked about before it has ended": {
		"take_unknown(LEASED, now - grace)",
		"take_unknown(LEASED, now + 10000)",
	},
	"a hold is released when time is out": nil,
	"an order is sent again":              nil,
	"a settler turns a refund back":       nil,
	"a settler passes over records":       nil,
}

func has(bug string) bool { return *planted == bug }

// TestPlantedBugs_StandInAScript fails where a script has changed, and a bug can no longer be planted.
func TestPlantedBugs_StandInAScript(t *testing.T) {
	files := testkit.Must[[]string](t)(filepath.Glob("../../stockgate/ledger/lua/*.lua"))
	var scripts strings.Builder
	for _, file := range files {
		scripts.Write(testkit.Must[[]byte](t)(os.ReadFile(file)))
	}
	for bug, texts := range bugs {
		for i := 0; i < len(texts); i += 2 {
			if !strings.Contains(scripts.String(), texts[i]) {
				t.Errorf("%s: no script has %q", bug, texts[i])
			}
		}
	}
}

// TestPlantedBugs_AreFound plays seeds with each bug, in a process of its own, until one shows it.
func TestPlantedBugs_AreFound(t *testing.T) {
	testkit.Nightly(t, "some bugs take thousands of seeds")
	found := regexp.MustCompile(`seed (\d+):.*\n`)
	for _, bug := range slices.Sorted(maps.Keys(bugs)) {
		t.Run(bug, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestSchedules_KeepThePromises$", "-test.timeout", "2h",
				"-seeds", "10000", "-planted", bug)
			out, err := cmd.CombinedOutput()
			seed := found.FindSubmatch(out)
			if err == nil || seed == nil {
				t.Fatalf("it is not found in 10,000 seeds: %s", out)
			}
			t.Logf("found by seed %s", seed[1])
		})
	}
}
