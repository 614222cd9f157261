// Command bench puts Sluice beside nginx with Lua, HAProxy and bare fasthttp: it starts each of them in front of the
// same shop and the same Redis, drives them in turn with the same load, and says what a request costs each. "bench
// scale" says how that cost grows.
//
// It ends every process that it started, also when it is interrupted, and writes nothing outside a temporary folder but
// the results that it was asked for. It does not judge one run against another: only what ran side by side is compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run does what the arguments ask for: a bare server for the benchmark's own use, or the benchmark.
func run(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "serve" {
		return serve(ctx, args[1], args[2], args[3])
	}
	p, err := readPlan(args)
	if err != nil {
		return err
	}
	if missing := missing(); missing != "" {
		fmt.Printf("bench: left out: %s\n", missing)
		return nil
	}
	f, err := newField(p)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.prepare(ctx); err != nil {
		return err
	}
	groups := f.groups()
	r, failed := f.measure(ctx, groups)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return errors.Join(p.report(groups, r), failed)
}

// plan is what one run measures, and where its results go.
type plan struct {
	scale       bool // how cost grows, rather than beside peers
	quick       bool
	rounds      int
	span        time.Duration // of each measurement
	connections []int         // of wrk
	only        []string      // scenarios, or what grows
	gates       []string
	binary      string // a built sluice; "" = build one
	out         string // the folder for the page and its plots; "" = none
	command     string // as it was typed
}

// readPlan reads the command line. An error names the flag.
func readPlan(args []string) (p plan, err error) {
	p.command = strings.TrimSpace("cd bench && go run . " + strings.Join(args, " "))
	all, span := names(scenarios()), 2*time.Second
	if p.scale = len(args) > 0 && args[0] == "scale"; p.scale {
		all, span, args = names(axes(false)), 850*time.Millisecond, args[1:]
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&p.quick, "quick", false, "one short round, to see that it works")
	flags.IntVar(&p.rounds, "rounds", 5, "rounds; each measures everything once")
	flags.DurationVar(&p.span, "span", span, "how long one measurement lasts; wrk takes whole seconds")
	connections := flags.String("connections", "64,512", "connections of wrk")
	only := flags.String("only", "all", "what is measured: "+strings.Join(all, ","))
	gates := flags.String("gates", "all", "gates: "+strings.Join(names(gateKinds()), ","))
	flags.StringVar(&p.binary, "binary", "", "a built sluice, rather than one built now")
	flags.StringVar(&p.out, "out", "", "folder for the page and its plots")
	if err := flags.Parse(args); err != nil {
		return plan{}, err
	}
	if p.quick {
		p.rounds, p.span, *connections = 1, time.Second, "64"
		if p.scale {
			p.span = 100 * time.Millisecond
		}
	}
	if p.rounds < 1 || p.span <= 0 {
		return plan{}, errors.New("read the flags: -rounds is at least 1, -span above 0")
	}
	for text := range strings.SplitSeq(*connections, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return plan{}, fmt.Errorf("read -connections %q: no number of connections", text)
		}
		p.connections = append(p.connections, n)
	}
	if p.only, err = pick("only", *only, all); err == nil {
		p.gates, err = pick("gates", *gates, names(gateKinds()))
	}
	return p, err
}

// pick reads a list of names, each of which must be one of all.
func pick(option, text string, all []string) ([]string, error) {
	if text == "all" {
		return all, nil
	}
	some := strings.Split(text, ",")
	for _, name := range some {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("read -%s %q: there are %s", option, name, strings.Join(all, ", "))
		}
	}
	return some, nil
}

// names are those of the rows of a table.
func names[T interface{ label() string }](rows []T) (all []string) {
	for _, r := range rows {
		all = append(all, r.label())
	}
	return all
}

// missing names what the benchmark cannot do without and does not find; "" = nothing.
func missing() string {
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
