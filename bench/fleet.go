package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// fleet is the gates of one point, all alike, before one shop and one Redis.
type fleet []*gate

// assemble starts the gates that a load wants, on the stock that it wants.
func (f *field) assemble(ctx context.Context, l load) (gates fleet, err error) {
	defer func() {
		if err != nil {
			gates.stop()
			gates = nil
		}
	}()
	if l.Gate != "sluice" {
		g, err := f.open(ctx, gateKinds()[slices.Index(names(gateKinds()), l.Gate)], false)
		if err != nil {
			return nil, err
		}
		return fleet{g}, nil
	}
	if err := f.furnish(ctx, l); err != nil {
		return nil, err
	}
	for i := range l.Instances {
		g, err := f.member(ctx, l, i)
		if err != nil {
			return gates, err
		}
		gates = append(gates, g)
	}
	return gates, nil
}

// member starts the i-th gate of a fleet, in a folder of its own.
func (f *field) member(ctx context.Context, l load, i int) (*gate, error) {
	dir := filepath.Join(f.dir, fmt.Sprintf("gate-%d", i))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := f.fleetSettings(l)
	if err != nil {
		return nil, err
	}
	if err := render(dir, fleetFile, s); err != nil {
		return nil, err
	}
	begin, file := time.Now(), filepath.Join(dir, filepath.Base(fleetFile))
	c, err := spawn(ctx, dir, "sluice", f.binary, "run", "--config", file)
	if err != nil {
		return nil, err
	}
	took, err := c.answers(ctx, begin, "http://"+s.Ops+"/readyz")
	if err != nil {
		c.stop()
		return nil, err
	}
	return &gate{child: c, kind: l.Gate, front: s.Front, admin: s.Admin, file: file, took: took}, nil
}

const fleetFile = "sluice/scale.toml"

func (f *field) fleetSettings(l load) (s settings, err error) {
	if s, err = f.settings(false); err != nil {
		return s, err
	}
	s.Keys = l.Keys
	for i := range l.Routes {
		s.Routes = append(s.Routes, i)
	}
	for s.Admin == "" || s.Admin == s.Front || s.Admin == s.Ops {
		if s.Admin, err = freePort(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (gates fleet) stop() {
	for _, g := range gates {
		g.stop()
	}
}

func (gates fleet) family() (all []int) {
	for _, g := range gates {
		all = append(all, g.family()...)
	}
	return all
}

func (gates fleet) fronts() (all []string) {
	for _, g := range gates {
		all = append(all, g.front)
	}
	return all
}

// furnish empties the store and puts up ledgers: one is made by sluice itself, and copied for each SKU, which a
// hundred thousand commands would take too long for.
func (f *field) furnish(ctx context.Context, l load) error {
	if err := f.redis.stock(ctx, 0); err != nil {
		return err
	}
	s, err := f.fleetSettings(l)
	if err != nil {
		return err
	}
	if err := render(f.dir, fleetFile, s); err != nil {
		return err
	}
	units := l.Units
	if units == 0 {
		units = plenty
	}
	file := filepath.Join(f.dir, filepath.Base(fleetFile))
	for sku, n := range map[string]int{"gone": 0, "open": units} {
		if err := ledger(ctx, f.binary, file, sku, n); err != nil {
			return err
		}
	}
	if err := f.redis.multiply(ctx, "gone", l.Gone); err != nil {
		return err
	}
	return f.redis.multiply(ctx, "open", l.Open)
}

// multiply copies the ledger of a SKU, its counter too, for n that are named after it.
func (s *store) multiply(ctx context.Context, sku string, n int) error {
	const atOnce = 5000
	for from := 0; from < n; from += atOnce {
		pipe := s.client.Pipeline()
		for i := from; i < min(n, from+atOnce); i++ {
			name := fmt.Sprintf("%s-%d", sku, i)
			for _, part := range []string{"s", "q"} { // all that a ledger has before its first order
				pipe.Copy(ctx, "sluice:bench:{"+sku+"}:"+part, "sluice:bench:{"+name+"}:"+part, 0, true)
			}
			pipe.Copy(ctx, "stock:"+sku, "stock:"+name, 0, true)
			pipe.ZAdd(ctx, "sluice:bench:skus", redis.Z{Member: name})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("copy the ledger of %s: %w", sku, err)
		}
	}
	return nil
}
