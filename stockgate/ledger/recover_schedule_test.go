package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// relapse plays a ledger that forgets its tail before three instances, and knows what became of every order. Its law:
// when the SKU opens again, the ledger says of each order what was said before, to the unit.
type relapse struct {
	*rand.Rand
	t      *testing.T
	server *redistest.Server
	stores []*Store
	sku    string
	orders map[string]string // status by serial
	kept   snapshot
}

func (p *relapse) any() *Store { return p.stores[p.IntN(len(p.stores))] }

// buy, settle and adopt are what instances do, by whichever of them.
func (p *relapse) buy() error {
	serial, codes := fmt.Sprint("s", len(p.orders)), make([]Code, 1)
	_, err := p.any().Reserve(
		context.Background(),
		p.sku,
		0,
		1,
		9_000_000_000_000,
		[]Item{{Serial: serial, User: "ann", Quantity: 1}},
		codes,
	)
	if codes[0] == Held {
		p.orders[serial] = "H"
	}
	return err
}

func (p *relapse) settle(op Op) error {
	if len(p.orders) == 0 {
		return nil
	}
	serials := slices.Sorted(maps.Keys(p.orders))
	serial, done := serials[p.IntN(len(serials))], make([]Done, 1)
	_, err := p.any().Finish(
		context.Background(),
		p.sku,
		1,
		9_000_000_000_000,
		op,
		[]Item{{Serial: serial, User: "ann", Quantity: 1}},
		done,
	)
	status := map[Op]string{Confirm: "C", Release: "X", Refund: "R",
		Adopt: "C"}[op]
	if done[0] == Changed || done[0] == Oversold {
		p.orders[serial] = status
	}
	return err
}

func (p *relapse) act() error {
	switch p.IntN(8) {
	case 0:
		return p.settle(Release)
	case 1:
		return p.settle(Refund)
	case 2, 3:
		return p.settle(Confirm)
	case 4:
		if p.IntN(4) == 0 {
			return p.settle(Adopt)
		}
	}
	return p.buy()
}

// reconcile lets all notice and tell, in any order, until the SKU is on again.
func (p *relapse) reconcile() error {
	ctx := context.Background()
	for _, twice := range []int{0, 1} { // as in settleFor: each has called once since it froze, whoever noticed
		for _, i := range p.Perm(len(p.stores)) {
			_, err := p.stores[i].Sweep(ctx, p.sku, 1, 2, 1)
			for tries := 0; errors.Is(err, io.EOF) && tries < 3; tries++ { // a connection that was cut, as the next sweep
				_, err = p.stores[i].Sweep(ctx, p.sku, 1, 2, 1)
			}
			if err != nil {
				return fmt.Errorf("sweep %d: %w", twice, err)
			}
		}
	}
	for range 20 {
		for _, i := range p.Perm(len(p.stores)) {
			if _, err := p.stores[i].Sweep(ctx, p.sku, 1, 2, 1); err != nil {
				return err
			}
			for slices.Contains(p.stores[i].Pending(), p.sku) {
				s, err := p.stores[i].Recover(ctx, p.sku, 1, 9_000_000_000_000)
				if err != nil {
					return err
				}
				if s.State == Frozen {
					break
				}
			}
		}
		s, _, err := p.stores[0].ReadStock(ctx, p.sku)
		if err != nil {
			return err
		}
		if s.State == On {
			return p.balances(s)
		}
	}
	return fmt.Errorf("it does not open: %v", p.server.Client.HGetAll(ctx, keys(p.sku)[0]).Val())
}

func (p *relapse) balances(s Stock) error {
	found, held, sold := map[string]string{}, int64(0), int64(0)
	for serial, record := range p.server.Client.HGetAll(context.Background(), keys(p.sku)[1]).Val() {
		found[serial] = strings.Replace(record[:1], "R", "X", 1) // to everybody else they are the same
	}
	said := map[string]string{}
	for serial, status := range p.orders {
		said[serial] = strings.Replace(status, "R", "X", 1)
		if status == "H" {
			held++
		}
		if status == "C" {
			sold++
		}
	}
	if err := differ("orders", found, said); err != nil {
		return err
	}
	if s.Held != held || s.Sold != sold {
		return fmt.Errorf("%d held and %d sold, and not %d and %d", s.Held, s.Sold, held, sold)
	}
	return nil
}

func (p *relapse) play() error {
	if _, err := p.stores[0].SetTotal(context.Background(), p.sku, 40, 0); err != nil {
		return err
	}
	for range 3 {
		for range p.IntN(12) {
			if err := p.act(); err != nil {
				return err
			}
		}
		p.keep()
		for range 1 + p.IntN(12) {
			if err := p.act(); err != nil {
				return err
			}
		}
		p.kept.restore(p.t, p.server)
		if err := p.reconcile(); err != nil {
			return err
		}
	}
	return nil
}

func (p *relapse) keep() { p.kept = snapshotOf(p.t, p.server, p.sku) }

func TestRecoverSchedule_WhatOpensAgainSaysOfEachOrderWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var stores []*Store
	for range 3 {
		r := testkit.Must[*Store](t)(NewStore(optionsFor(server, 1))) // one call comes after the other
		t.Cleanup(func() { r.Close() })
		r.Settle = 0
		stores = append(stores, r)
	}
	for seed := range rounds(200) {
		p := relapse{
			t:      t,
			Rand:   rand.New(rand.NewPCG(seed, 7)),
			server: server,
			stores: stores,
			sku:    fmt.Sprint("sku ", seed),
			orders: map[string]string{},
		}
		if err := p.play(); err != nil {
			t.Fatalf("schedule %d: %v", seed, err)
		}
	}
}
