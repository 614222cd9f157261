package main

import (
	"strings"
	"testing"

	"sluice/admin"
)

func TestFleet_TellsInWhatInstancesDiffer(t *testing.T) {
	a := admin.Instance{ID: "a", Version: "v1", Config: "c1", Mode: "enforce", Phase: "serving", Ready: true, Requests: 40,
		Admitted: 10, Rejected: 30, Mostly: "rate"}
	b := a
	b.ID = "b"
	if text, good := Fleet(&admin.Fleet{Instances: []admin.Instance{a, b}}); !good || strings.Contains(text, "WARN") ||
		!strings.Contains(text, "30/s rate") {
		t.Errorf("good %v:\n%s", good, text)
	}
	b.Config, b.Unfit, b.Age = "c2", []string{"limits.rate[x].rate"}, 5.2
	text, good := Fleet(&admin.Fleet{Instances: []admin.Instance{a, b}, Differ: []string{"config"}})
	for _, want := range []string{"SILENT for 5 s", "b has no room for the override of limits.rate[x].rate",
		"differ in config"} {
		if good || !strings.Contains(text, want) {
			t.Errorf("good %v, without %q:\n%s", good, want, text)
		}
	}
}
