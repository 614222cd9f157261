package main

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// plan is what one run measures, and where its results go.
type plan struct {
	rounds      int
	seconds     int   // of each measurement, at least 1; wrk knows no fractions
	warm        int   // seconds before each; 0 = none
	connections []int // of wrk
	scenarios   []string
	gates       []string
	extras      []string // of extraNames
	rate        int      // requests a second of the latency at a constant rate
	idle        int      // connections that wait
	million     int      // requests of the sale whose Redis calls are counted
	binary      string   // a built sluice; "" = build one
	old         string   // another build of sluice, which takes part as well; "" = none
	oldConfig   string   // its configuration, a template as sluice/sluice.toml; "" = that one
	rounded     string   // the file that keeps rounds; "" = none
	out         string   // the folder for RESULTS.md and its plots; "" = none
	targets     string   // the file; "" = nothing is judged
	command     string   // as it was typed
	profiles    string   // the folder for profiles of Sluice, where scale shall write some; "" = none
}

// extraNames are the measurements beside the scenarios.
func extraNames() []string {
	return []string{"latency", "idle", "million", "start", "silent", "logged", "traced"}
}

// readPlan reads the command line. An error names the flag.
func readPlan(args []string) (plan, error) {
	p := plan{command: "cd bench && go run . " + strings.Join(args, " ")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "one short round of everything, to see that it works; nothing is judged")
	flags.IntVar(&p.rounds, "rounds", 5, "rounds; each measures every gate once")
	flags.IntVar(&p.seconds, "seconds", 2, "seconds of one measurement")
	connections := flags.String("connections", "64,512", "connections of the closed loop")
	scenarios := flags.String("scenarios", "all", "scenarios, by name, or none")
	gates := flags.String("gates", "all", "gates, by name")
	extras := flags.String("extras", "all", "what else: "+strings.Join(extraNames(), ",")+", or none")
	flags.IntVar(&p.warm, "warm", 1, "seconds of the same load before each measurement")
	flags.StringVar(&p.rounded, "rounded", "",
		"file that keeps the rounds: those of earlier runs are read from it, these are added")
	flags.IntVar(&p.rate, "rate", 8000, "requests a second of the latency at a constant rate")
	flags.IntVar(&p.idle, "idle", 10_000, "connections that wait while memory is read")
	flags.IntVar(&p.million, "million", 1_000_000, "requests of the sale whose Redis calls are counted")
	flags.StringVar(&p.binary, "binary", "", "a built sluice, rather than one built now")
	flags.StringVar(&p.old, "old", "", "another build of sluice, to be measured beside this one")
	flags.StringVar(&p.oldConfig, "old-config", "", "template of its configuration, where keys had other names")
	flags.StringVar(&p.out, "out", "", "folder for RESULTS.md and its plots")
	flags.StringVar(&p.targets, "targets", "", "file of what must be reached; exit code 1 when it is not")
	if err := flags.Parse(args); err != nil {
		return plan{}, err
	}
	if *quick {
		p.rounds, p.seconds, p.warm, p.idle, p.million, p.targets = 1, 1, 0, 200, 20_000, ""
		*connections = "64"
	}
	if p.rounds < 0 || p.seconds < 1 || p.rate < 1 || p.idle < 1 {
		return plan{}, errors.New("read the flags: -seconds, -rate and -idle are at least 1, -rounds at least 0")
	}
	return p, p.choose(*connections, *scenarios, *gates, *extras)
}

// choose reads the lists.
func (p *plan) choose(connections, some, gates, extras string) (err error) {
	for text := range strings.SplitSeq(connections, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("read -connections %q: no number of connections", text)
		}
		p.connections = append(p.connections, n)
	}
	if p.scenarios, err = pick("scenarios", some, names(scenarios())); err != nil {
		return err
	}
	if p.gates, err = pick("gates", gates, names(gateKinds())); err != nil {
		return err
	}
	p.extras, err = pick("extras", extras, extraNames())
	return err
}

// pick reads a list of names, each of which must be one of all.
func pick(option, text string, all []string) ([]string, error) {
	switch text {
	case "all":
		return all, nil
	case "none", "":
		return nil, nil
	}
	some := strings.Split(text, ",")
	for _, name := range some {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("read -%s %q: there are %s", option, name, strings.Join(all, ", "))
		}
	}
	return some, nil
}

// named is what a table's rows have in common.
type named interface{ label() string }

func names[T named](rows []T) []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.label())
	}
	return all
}

// missing names what the benchmark cannot do without and does not find; "" = nothing.
func (p *plan) missing() string {
	if runtime.GOOS != "linux" {
		return "processes are measured by /proc, which is Linux"
	}
	for _, need := range []string{"wrk", "nginx", "redis-server"} {
		if _, err := exec.LookPath(need); err != nil {
			return "no " + need + " (make bench installs what is missing)"
		}
	}
	return ""
}
