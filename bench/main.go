// Command bench puts Sluice beside nginx with Lua, HAProxy and bare fasthttp: it starts each of them in front of the
// same shop and the same Redis, drives them in turn with the same load, and says what a request costs each.
//
// It ends every process that it started, also when it is interrupted, and writes nothing outside a temporary folder but
// the results that it was asked for. It does not judge one run against another: only what ran side by side is compared.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errMissed says that the benchmark ran and that Sluice fell short of a target.
var errMissed = errors.New("a target is missed by more than the noise")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run does what the arguments ask for: a bare server for the benchmark's own use, the benchmark, or a look at how cost
// grows.
func run(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "serve" {
		return serve(ctx, args[1], args[2], args[3])
	}
	if len(args) > 0 && args[0] == "scale" {
		return runScale(ctx, args[1:])
	}
	p, err := readPlan(args)
	if err != nil {
		return err
	}
	if missing := p.missing(); missing != "" {
		fmt.Printf("bench: left out: %s\n", missing)
		return nil
	}
	f, err := newField(p)
	if err != nil {
		return err
	}
	defer f.close()
	r, err := f.measure(ctx)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	return p.report(r)
}
