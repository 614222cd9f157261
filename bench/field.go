package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// field is where the gates compete: the shop, the store and the load, the same for all.
type field struct {
	plan
	dir         string // everything that is written
	self        string // this program
	binary      string // the built sluice
	script      string // of wrk
	files       int    // how many a process may open
	modules     []string
	shop        *child
	shopAddress string
	redis       *store
	runs        int // of wrk, so far
}

// newField makes the folder of a run. leave gives back what it and open took.
func newField(p plan) (*field, error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	f := &field{plan: p, dir: dir, files: descriptors(), modules: luaModules(), script: filepath.Join(dir, "load.lua")}
	if f.self, err = os.Executable(); err == nil {
		err = os.WriteFile(f.script, loadScript, 0o600)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// prepare starts what stands behind the gates.
func (f *field) prepare(ctx context.Context) (err error) {
	if f.binary = f.plan.binary; f.binary == "" {
		if f.binary, err = build(ctx, f.dir); err != nil {
			return err
		}
	}
	if f.redis, err = openStore(ctx, f.dir); err != nil {
		return err
	}
	if f.shopAddress, err = freePort(); err != nil {
		return err
	}
	s := settings{Shop: f.shopAddress, Cores: runtime.NumCPU(), Files: f.files, Dir: f.dir}
	if err := render(f.dir, "peers/shop.conf", s); err != nil {
		return err
	}
	f.shop, err = spawn(ctx, f.dir, "shop", "nginx", "-p", f.dir, "-e", filepath.Join(f.dir, "shop.log"), "-c",
		filepath.Join(f.dir, "shop.conf"))
	if err != nil {
		return err
	}
	return f.shop.listens(ctx, f.shopAddress)
}

// close ends what prepare started and removes the folder.
func (f *field) close() {
	if f.shop != nil {
		f.shop.stop()
	}
	if f.redis != nil {
		f.redis.stop()
	}
	_ = os.RemoveAll(f.dir)
}

// measure runs the plan, round by round, so that what changes on the machine changes for all.
func (f *field) measure(ctx context.Context) (results, error) {
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	r, err := f.kept()
	if err != nil {
		return nil, err
	}
	for round := range f.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, f.rounds)
		for _, connections := range f.connections {
			for _, s := range scenarios() {
				if !slices.Contains(f.scenarios, s.name) {
					continue
				}
				if err := f.playScenario(ctx, r, s, connections, round); err != nil {
					return nil, err
				}
			}
		}
		if err := errors.Join(f.extra(ctx, r, round), f.writeRounds(r)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// playScenario lets each gate play a scenario once; another one begins in every round.
func (f *field) playScenario(ctx context.Context, r results, s scenario, connections, round int) error {
	kinds := f.contenders(s.gates, s.redis)
	if connections > f.connections[0] {
		kinds = slices.DeleteFunc(kinds, kind.bound) // a bound is one at any number of connections
	}
	for i := range kinds {
		k := kinds[(i+round)%len(kinds)]
		got, err := f.play(ctx, k, s, connections)
		if err != nil {
			return fmt.Errorf("%s at %d connections: %w", k.name, connections, err)
		}
		r.add(cell{s.name, k.name, connections}, got)
		fmt.Fprintf(os.Stderr, "  %-12s %4d  %-8s %s\n", s.name, connections, k.name, got)
	}
	return nil
}

// contenders are those of some gates that are asked for, installed and able.
func (f *field) contenders(some []string, lua bool) []kind {
	var able []kind
	for _, k := range gateKinds() {
		_, err := exec.LookPath(k.needs)
		missing := k.needs != "" && err != nil || k.name == "nginx" && lua && len(f.modules) == 0
		if k.name == another { // where Sluice takes part
			if f.old != "" && slices.Contains(some, "sluice") && slices.Contains(f.gates, "sluice") {
				able = append(able, k)
			}
			continue
		}
		if slices.Contains(some, k.name) && slices.Contains(f.gates, k.name) && !missing {
			able = append(able, k)
		}
	}
	return able
}

// play measures one gate in one scenario, on a fresh process and a fresh stock.
func (f *field) play(ctx context.Context, k kind, s scenario, connections int) (sample, error) {
	g, err := f.stocked(ctx, k, s)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	if f.warm > 0 && !s.mixed { // a sale is over when it has been warmed up
		if _, err := f.drive(ctx, g.front, s, connections, f.warm, f.run()); err != nil {
			return nil, err
		}
	}
	before, err := f.readCounters(ctx, g, s)
	if err != nil {
		return nil, err
	}
	b, err := f.drive(ctx, g.front, s, connections, f.seconds, f.run())
	if err == nil {
		err = b.is(s)
	}
	if err != nil {
		return nil, err
	}
	if s.redis {
		sleep(ctx, 200*time.Millisecond) // what is settled after the answer is part of the order
	}
	after, err := f.readCounters(ctx, g, s)
	if err != nil {
		return nil, err
	}
	return sampled(b, before, after, s), nil
}

// stocked is a gate with the scenario's units for sale.
func (f *field) stocked(ctx context.Context, k kind, s scenario) (*gate, error) {
	if err := f.redis.stock(ctx, s.units); err != nil {
		return nil, err
	}
	g, err := f.open(ctx, k, s.oneAPerson)
	if err == nil && (k.name == "sluice" || k.name == another) && s.redis {
		if err = f.ledgers(ctx, g.binary, g.file, s.units); err != nil {
			g.stop()
		}
	}
	return g, err
}

// run is a word that no other has.
func (f *field) run() string {
	f.runs++
	return fmt.Sprintf("r%d", f.runs)
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
