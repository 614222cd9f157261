package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/cli"
	"sluice/internal/testkit"
)

func TestCommands_AreCompleteAndGrouped(t *testing.T) { testkit.Commands(t, newRoot(), 30) }

func TestMan_WritesAPageForEachCommand(t *testing.T) { testkit.Man(t, newRoot()) }

func TestPages_CommandsOnPagesAreThere(t *testing.T) { testkit.Pages(t, newRoot(), 100) }

func TestUsage_ErrorsNameThePlaceAndTheWayOut(t *testing.T) {
	for line, want := range map[string]string{
		"":                          `sluice: which command? check, `,
		"chekc":                     `sluice: unknown command "chekc", did you mean "check"?`,
		"zzz":                       `sluice: unknown command "zzz": it is none of check, `,
		"help zzz":                  `sluice: unknown command "zzz": it is none of check, `,
		"help stock sett":           `sluice stock: unknown command "sett", did you mean "set"?`,
		"rehearse":                  `sluice: unknown command "rehearse": it is now "sluice loadtest"`,
		"reservation show x":        `sluice reservation: unknown command "show": it is now "sluice reservation get"`,
		"stock":                     `sluice stock: which command? add, end`,
		"stock sett 1":              `sluice stock: unknown command "sett", did you mean "set"?`,
		"stock set":                 `sluice stock set: <sku> is missing: sluice stock set <sku> <units> [flags]`,
		"stock set 1001 many":       `sluice stock set: <units>: "many" is not a whole number`,
		"stock set 1001 -3":         `sluice stock set: <units> -3: a stock is 0 or more`,
		"stock set 1001 1 2":        `sluice stock set: unexpected argument "2": sluice stock set`,
		"stock set 1001 1 --limi 3": `sluice stock set: unknown flag --limi, did you mean --limit?`,
		"stock set 1001 1 --zzzzzz": `sluice stock set: unknown flag --zzzzzz`,
		"stock set 1001 1 -z":       `sluice stock set: unknown flag -z`,
		"check -f x":                `sluice check: unknown flag -f, did you mean --config?`,
		"status --file x":           `sluice status: unknown flag --file, did you mean --config?`,
		"explain /x --data y":       `sluice explain: unknown flag --data, did you mean --body?`,
		"stock set 1 2 --data y":    `sluice stock set: unknown flag --data`,
		"status gate.toml": `sluice status: unexpected argument "gate.toml": sluice status [flags], ` +
			`did you mean --config gate.toml?`,
		"status watch": `sluice status: unexpected argument "watch": sluice status [flags], ` +
			`did you mean --watch?`,
		"limit show":                         `sluice limit show: <limit> is missing: sluice limit show <limit> <value>...`,
		"limit reset per_ip":                 `sluice limit reset: <value>... is missing: sluice limit reset <limit>`,
		"why --request-id b":                 `sluice why: unknown flag --request-id: it is now "sluice why REQUEST-ID"`,
		"stock get 1001 --kind c":            `sluice stock get: --kind: "c": it must be ledger or layout`,
		"stock get 1001 --kind":              `sluice stock get: --kind needs a value: --kind=ledger|layout`,
		"status --admin":                     `sluice status: --admin needs a value: --admin=address`,
		"stock get 1 --admin :1 -c x":        `sluice stock get: --config and --admin: name one of them`,
		"status --token-file x":              `sluice status: --token-file belongs to --admin`,
		"check --sku 1001":                   `sluice check: --sku belongs to --online`,
		"run --from :8080":                   `sluice run: --from and --to go together`,
		"override set mode observe":          `sluice override set: --for=10m or --until=TIME: name one of them`,
		"override pause 1001 --for 10m":      `sluice override: unknown command "pause": it is now "sluice stock pause"`,
		"override end 1001 --for 10m":        `sluice override: unknown command "end": it is now "sluice stock end"`,
		"stock pause 1 --for 1s --until x":   `sluice stock pause: --for=10m or --until=TIME: name one of them`,
		"stock end 1 --for 1s --kind layout": `sluice stock end: --kind layout: only a ledger is stopped for a while`,
		"reservation adopt x --user 7":       `sluice reservation: unknown command "adopt": it is now "sluice stock recover SKU`,
		"stock thaw 1001":                    `sluice stock: unknown command "thaw": it is now "sluice stock recover SKU --from none --apply"`,
		"stock adopt x.csv --sku 1":          `sluice stock: unknown command "adopt": it is now "sluice stock recover SKU --from`,
		"stock recreate 1 --total 5":         `sluice stock: unknown command "recreate": it is now "sluice stock recover SKU --total N`,
		"stock resume 1 --reconciled":        `sluice stock resume: unknown flag --reconciled: it is now "sluice stock recover SKU`,
		"reservation list --limit 99999":     `sluice reservation list: --limit 99999: it must be 1 to 10000`,
		"loadtest --buyers 0":                `sluice loadtest: --buyers 0: it takes 1 to`,
		"demo --shoppers 0":                  `sluice demo: --shoppers 0: it takes 1 or more`,
		"why":                                `sluice why: name a request ID, or --user and --sku`,
	} {
		var wrong *cli.UsageError
		if err := typed(t, line); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", line, err)
		} else if got := wrong.Command + ": " + wrong.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q:\n%s\nwant\n%s", line, got, want)
		}
	}
}

func TestCompletion_OffersValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	text := `upstream.targets = ["http://127.0.0.1:9"]
stock.source = "memory"
[[route]]
name = "order"
match = "POST /o/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
[[sale]]
name = "night"
skus = ["1005"]
starts = 2099-11-11T00:00:00+08:00
ends = 2099-11-12T00:00:00+08:00
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"over":                                   "override\t",
		"override un":                            "undo\t",
		"help stock se":                          "set\t",
		"stock set --li":                         "--limit\t",
		"stock get 1001 --kind ":                 "ledger\n",
		"demo --gate ":                           "reserve\n",
		"init --lang ":                           "zh-CN\n",
		"reservation list --state ":              "sold\n",
		"sale pause -c " + file + " ":            "night\n",
		"stock get --config " + file + " ":       "1005\n",
		"why -c " + file + " --sku ":             "1005\n",
		"explain -c " + file + " limits.window.": "limits.window.max\n",
		"override set -c " + file + " ":          "limits.window.max\n",
		"run --config ":                          "toml\n:8", // a filter by extension
	} {
		words := append([]string{"__complete"}, strings.Split(line, " ")...)
		if out, err := command(t, words...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %q, %v; want %q", line, out, err, want)
		}
	}
	if out, err := command(t, "completion", "bash"); err != nil || !strings.Contains(out, "__start_sluice") {
		t.Errorf("%v: %.200s", err, out)
	}
}

func TestVersion_IsAFlagAndACommand(t *testing.T) {
	for _, words := range []string{"version", "--version", "-v"} {
		if out, err := command(t, words); err != nil || out != "sluice "+version+"\n" {
			t.Errorf("%s: %q, %v", words, out, err)
		}
	}
}

func TestTarget_TokenIsOneWithoutAByteOrderMark(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	testkit.Check(t, os.WriteFile(file, []byte("\ufeffsecret\r\n"), 0o600))
	c, err := (&target{Admin: "127.0.0.1:1", TokenFile: file}).remote()
	testkit.Check(t, err)
	testkit.Want(t, "token", c.Token, "secret")
}
