package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"sluice/admin"
)

// oldAfter is from how many seconds on a summary, of which there is one each second, is not of now.
const oldAfter = 3

// Fleet draws all instances of a fleet, a line for each. good is false where one is not ready or says nothing, and
// where they differ.
func Fleet(all *admin.Fleet) (text string, good bool) {
	var out strings.Builder
	rows := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(rows, "INSTANCE\tVERSION\tCONFIG\tMODE\tSTATE\tIN\tADMITTED\tREJECTED\tIN FLIGHT\tOVERRIDES")
	good = len(all.Differ) == 0 && len(all.Instances) > 0
	var notes []string
	for i := range all.Instances {
		one := &all.Instances[i]
		state, well := stateOf(one)
		good = good && well
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\t%.0f/s\t%.0f/s\t%s\t%d\t%d\n", one.ID, one.Version, one.Config, one.Mode,
			state, one.Requests, one.Admitted, rejectedOf(one), one.InFlight, one.Overrides)
		if len(one.Unfit) > 0 {
			notes = append(notes, fmt.Sprintf("%s has no room for the override of %s: its file differs", one.ID,
				strings.Join(one.Unfit, ", ")))
			good = false
		}
	}
	_ = rows.Flush() // into memory
	if len(all.Differ) > 0 {
		notes = append(notes, "the instances differ in "+strings.Join(all.Differ, ", ")+
			": requests are treated differently; give all the same")
	}
	for _, note := range notes {
		fmt.Fprintln(&out, "WARN  "+note)
	}
	return out.String(), good
}

func stateOf(one *admin.Instance) (state string, well bool) {
	switch {
	case one.Age > oldAfter:
		return fmt.Sprintf("SILENT for %.0f s", one.Age), false
	case one.Phase == "draining":
		return "draining", true
	case !one.Ready:
		return "NOT READY", false
	case one.Degraded:
		return "degraded", true
	}
	return "ready", true
}

func rejectedOf(one *admin.Instance) string {
	text := fmt.Sprintf("%.0f/s", one.Rejected)
	if one.Mostly != "" {
		text += " " + one.Mostly
	}
	return text
}
