package main

import (
	"errors"
	"strings"
	"testing"

	"sluice/internal/cli"
	"sluice/internal/testkit"
)

func TestCommands_AreCompleteAndGrouped(t *testing.T) { testkit.Commands(t, newRoot(), 14) }

func TestMan_WritesAPageForEachCommand(t *testing.T) { testkit.Man(t, newRoot()) }

func TestPages_CommandsOnPagesAreThere(t *testing.T) { testkit.Pages(t, newRoot(), 20) }

func TestUsage_ErrorsNameThePlaceAndTheWayOut(t *testing.T) {
	for line, want := range map[string]string{
		"":                    `sluice-settle: which command? archive, `,
		"settle run":          `sluice-settle: unknown command "settle": it is none of archive, `,
		"verfy":               `sluice-settle: unknown command "verfy", did you mean "verify"?`,
		"retry x":             `sluice-settle retry: "x" is not the number of a conflict`,
		"move 1001":           `sluice-settle move: --to: name the home to which the SKU moves`,
		"report --json --csv": `sluice-settle report: --json and --csv: name one of them`,
		"demo --shoppers 0":   `sluice-settle demo: --shoppers 0: it takes 1 or more`,
	} {
		var wrong *cli.UsageError
		if _, err := command(t, strings.Fields(line)...); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", line, err)
		} else if got := wrong.Command + ": " + wrong.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q:\n%s\nwant\n%s", line, got, want)
		}
	}
}

func TestCommands_SayWhatToDoWithoutRedis(t *testing.T) {
	file := settleConfig(t, testkit.FreeAddress(t))
	if out, err := command(t, "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	for _, line := range []string{"verify", "rebuild 1001"} {
		_, err := command(t, append(strings.Fields(line), "-c", file)...)
		if err == nil || !strings.HasSuffix(err.Error(), "; start Redis, or correct stock.redis.addresses") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
