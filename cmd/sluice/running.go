package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sluice/admin"
	"sluice/config"
)

// runningGate says which gate a command asks.
type runningGate struct {
	Config    string `help:"Ask the gate of this configuration." default:"config.toml" placeholder:"FILE"`
	Admin     string `help:"Or ask the gate at this admin address." placeholder:"http://127.0.0.1:8090"`
	TokenFile string `help:"The token for --admin." type:"existingfile" placeholder:"FILE"`
}

// Validate is called when the line is read; its error is one of usage.
func (g *runningGate) Validate() error {
	if g.TokenFile != "" && g.Admin == "" {
		return errors.New("--token-file belongs to --admin")
	}
	return nil
}

// open is a client of the gate: where it was said to be, or where the configuration has it listen.
func (g *runningGate) open() (client, error) {
	if g.Admin != "" {
		to, _, err := (&where{Admin: g.Admin, TokenFile: g.TokenFile}).open()
		return to, err
	}
	c, err := config.Load(g.Config, os.LookupEnv)
	if err != nil {
		return client{}, fmt.Errorf("%w\nso it does not tell where the gate is; name it with --admin", err)
	}
	if c.Admin.Listen == "" {
		return client{}, c.Errorf("admin.listen", `it is "": the gate cannot be asked`)
	}
	to := client{token: string(c.Admin.Token)}
	to.base, to.http = caller(reachableFromHere(c.Admin.Listen), operateWithin)
	return to, nil
}

// ask opens the gate and calls it once.
func (g *runningGate) ask(method, path string, in, out any) error {
	to, err := g.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), operateWithin)
	defer cancel()
	return to.call(ctx, method, path, in, out)
}

type reloadCommand struct {
	DropOverrides bool        `help:"End the overrides of limits; otherwise they are kept."`
	At            runningGate `embed:""`
}

func (r *reloadCommand) Run() error {
	in := map[string]string{"overrides": "keep"}
	if r.DropOverrides {
		in["overrides"] = "drop"
	}
	var done admin.Reloaded
	if err := r.At.ask("POST", "/reload", in, &done); err != nil {
		return err
	}
	fmt.Printf("reloaded: %s runs\n", done.Config)
	for _, c := range done.Changed {
		fmt.Printf("changed   %s\n", config.Change(c))
	}
	for _, key := range done.Restart {
		fmt.Printf("restart   %s changes only with a restart, and stays as it was\n", key)
	}
	if len(done.Kept) > 0 {
		fmt.Printf("overrides kept: %s\n", strings.Join(done.Kept, ", "))
	}
	if len(done.Dropped) > 0 {
		fmt.Printf("overrides dropped: %s\n", strings.Join(done.Dropped, ", "))
	}
	return nil
}

type drainCommand struct {
	At runningGate `embed:""`
}

func (d *drainCommand) Run() error {
	var done struct{ Phase string }
	if err := d.At.ask("POST", "/drain", nil, &done); err != nil {
		return err
	}
	fmt.Println(done.Phase)
	return nil
}
