// Package deploy holds the tests of what is deployed beside the binary: rules, dashboard, images, units. It promises
// that they name what exists, and checks them with the tools that will read them where those are installed.
package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metrics are the names on the page of metrics, which the tests of e2e hold against gates that run; a histogram's
// three.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{"up": true}
	for _, row := range regexp.MustCompile("(?m)^\\| `(sluice_[a-z_]+)` \\| ([a-z]+) ").FindAllStringSubmatch(read(t,
		"../docs/metrics.md"), -1) {
		if all[row[1]] = true; row[2] == "histogram" {
			all[row[1]+"_bucket"], all[row[1]+"_sum"], all[row[1]+"_count"] = true, true, true
		}
	}
	if len(all) < 40 {
		t.Fatalf("docs/metrics.md has only %d metrics", len(all))
	}
	return all
}

var name = regexp.MustCompile(`\bsluice_[a-z_]+\b`)

func TestDeploy_RulesAndDashboardNameMetricsThatExist(t *testing.T) {
	known := metrics(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/sluice.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	expressions := map[string]string{"rules": read(t, "prometheus/sluice.rules.yaml"),
		"rules' tests": read(t, "prometheus/sluice.rules.test.yaml")}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expressions[p.Title] += target.Expr + "\n"
		}
	}
	shown := strings.Join(slices.Collect(maps.Values(expressions)), " ")
	for metric := range known {
		if strings.HasPrefix(metric, "sluice_room_") && !strings.Contains(shown, metric+"{instance") {
			t.Errorf("no panel shows %s", metric)
		}
	}
	if len(expressions) < 20 {
		t.Errorf("only %d panels with an expression", len(expressions))
	}
	for where, expression := range expressions {
		if !strings.Contains(where, "rules") && !name.MatchString(expression) && !strings.Contains(expression, "process_") {
			t.Errorf("panel %q asks for nothing of Sluice", where)
		}
		for _, metric := range name.FindAllString(expression, -1) {
			if !known[metric] {
				t.Errorf("%s: there is no metric %s", where, metric)
			}
		}
	}
}

func alerts(t *testing.T) (all []string) {
	for _, m := range regexp.MustCompile(`(?m)^      - alert: (\w+)$`).FindAllStringSubmatch(read(t,
		"prometheus/sluice.rules.yaml"), -1) {
		all = append(all, m[1])
	}
	if len(all) < 15 {
		t.Fatalf("only %d alerts", len(all))
	}
	return all
}

func TestDeploy_EveryAlertHasASectionInTheRunbookAndATest(t *testing.T) {
	rules, tests := read(t, "prometheus/sluice.rules.yaml"), read(t, "prometheus/sluice.rules.test.yaml")
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(read(t, "../docs/runbook.md"), -1) {
		sections = append(sections, m[1])
	}
	if all := alerts(t); !slices.Equal(all, sections) {
		t.Errorf("alerts %q\nsections of the runbook %q", all, sections)
	}
	for _, alert := range alerts(t) {
		if n := strings.Count(rules, "runbook_url: https://docs.example.com/sluice/runbook.md#"+strings.ToLower(alert)+
			"\n"); n != 1 {
			t.Errorf("%s points to its section of the runbook %d times", alert, n)
		}
		if !strings.Contains(tests, "        alertname: "+alert+"\n        exp_alerts:\n") {
			t.Errorf("no test shows that %s fires", alert)
		}
	}
}

func TestDeploy_RulesPleasePromtool(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "sluice.rules.yaml"}, {"test", "rules", "sluice.rules.test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "prometheus"
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, text)
		}
	}
}

// tool finds a command, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	if path, err = filepath.Abs(path); err != nil {
		t.Fatal(err)
	}
	return path
}
