package sim

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"sluice/internal/testkit"
)

var planted = flag.String("planted", "", "the planted bug to play with, of planted_test.go; it ends with the first seed that finds it")

// bugs are what the simulation must find: by name, what stands in a script, and what is read in its place, in turn. Those
// without a text are planted in the model of the gateway or of the database.
var bugs = map[string][]string{
	"a serial is not looked for":             {"	if record then\n		code = replay", "	if false then\n		code = replay"},
	"a hold is not counted":                  {"free - quantity, stock.held + quantity", "free - quantity, stock.held"},
	"the units of a person are not counted":  {"elseif stock.limit > 0 and user", "elseif false and user"},
	"a second confirmation sells again":      {"H = 'C', C = ALREADY, X = WAS_RELEASED, R = WAS_RELEASED", "H = 'C', C = 'C', X = WAS_RELEASED, R = WAS_RELEASED"},
	"a release returns no unit":              {"'R' then\n		if from == 'H' then stock.held = stock.held - quantity end", "'R' then"},
	"a second refund frees a second unit":    {"X = WAS_RELEASED, R = ALREADY},\n	adopt", "X = WAS_RELEASED, R = 'R'},\n	adopt", "if from == 'C' then stock.sold = stock.sold - quantity end\n		if from ~= 'none'", "if from ~= 'H' then stock.sold = stock.sold - quantity end\n		if from ~= 'none'"},
	"a second release frees a second unit":   {"C = WAS_SOLD, X = ALREADY", "C = WAS_SOLD, X = 'X'", "'R' then\n		if from == 'H' then stock", "'R' then\n		if from == 'H' or from == 'X' then stock"},
	"a confirmed order stays held":           {"if from == 'H' then stock.held = stock.held - quantity else units", "if from ~= 'H' then units"},
	"an overdue hold is forgotten":           {"	if state == 'H' then\n		if #leases", "	if state == '?' then\n		if #leases", "elseif state == 'X' or state == 'R' then\n		gone", "elseif true then\n		gone"},
	"answers are in another order":           {"reply[HINT + i] = code", "reply[HINT + n + 1 - i] = code"},
	"an older stock is taken for the newest": {"local why = seen(stock, reached)", "local why"},
	"another server is trusted at once":      {"if silent(not run) == 0 then", "if true then"},
	"a stock that freezes keeps its epoch":   {"stock.epoch = stock.epoch + 1\n	end\n	stock.state", "end\n	stock.state"},
	"what is newest wins a merge":            {"	if there == 'H' then return said == 'A'", "	if there == 'R' and said == 'C' then return said end\n	if there == 'H' then return said == 'A'"},
	"a recovery takes no final states":       {"	local to = merge(from", "	if said == 'R' or said == 'X' then return 0 end\n	local to = merge(from"},
	"a recovery waits for one member less":   {"	return waits, fields", "	table.remove(waits)\n	return waits, fields"},
	"a recovery forgets what is sold":        {"	count(to, quantity, user)\n", ""},
	"a hold ends by the clock of Redis":      {"after, place, f = '|' .. deadline", "after, place, f = '|' .. digits(clock() + 1500)"},
	"a hold is released when time is out":    nil,
	"an order is sent again":                 nil,
	"a settler turns a refund back":          nil,
	"a settler passes over records":          nil,
}

func has(bug string) bool { return *planted == bug }

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
