package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"sluice/stockgate/ledger"
)

// listed is a store that also tells what is in it, as far as it went through here.
type listed struct {
	ledger.Store

	mu      sync.Mutex
	skus    []string
	serials map[string][]string
	added   map[string]bool
}

func listing(s ledger.Store) *listed {
	return &listed{Store: s, serials: make(map[string][]string), added: make(map[string]bool)}
}

func (l *listed) note(sku string, items ...ledger.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.skus, sku) {
		l.skus = append(l.skus, sku)
	}
	for _, i := range items {
		if !slices.Contains(l.serials[sku], i.Serial) {
			l.serials[sku] = append(l.serials[sku], i.Serial)
		}
	}
}

func (l *listed) SetTotal(ctx context.Context, sku string, total, limit int64) (ledger.Stock, error) {
	l.note(sku)
	return l.Store.SetTotal(ctx, sku, total, limit)
}

func (l *listed) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []ledger.Item, codes []ledger.Code) (ledger.Hint, error) {
	l.note(sku, items...)
	return l.Store.Reserve(ctx, sku, epoch, now, deadline, items, codes)
}

func (l *listed) Finish(ctx context.Context, sku string, now, keep int64, op ledger.Op, items []ledger.Item, done []ledger.Done) (ledger.Hint, error) {
	l.note(sku, items...)
	return l.Store.Finish(ctx, sku, now, keep, op, items, done)
}

func (l *listed) Add(ctx context.Context, sku string, delta int64, id string) (ledger.Stock, error) {
	s, ok, err := l.Look(ctx, sku)
	switch {
	case err != nil:
		return ledger.Stock{}, err
	case !ok:
		return ledger.Stock{}, ledger.ErrUnknownSKU
	case id != "" && l.added[id]:
		return s, nil
	case s.Total+delta < 0:
		return s, errors.New("less than none")
	}
	l.added[id] = true
	return l.Store.SetTotal(ctx, sku, s.Total+delta, s.Limit)
}

func (l *listed) SKUs(_ context.Context, limit int) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.skus)
	return l.skus[:min(limit, len(l.skus))], nil
}

func (l *listed) Records(ctx context.Context, sku string, see func(ledger.Record) bool) error {
	for _, serial := range l.serials[sku] {
		r, ok, err := l.Find(ctx, sku, serial)
		if err != nil {
			return err
		}
		for range 2 { // as Redis may while it rearranges a hash
			if ok && !see(r) {
				return nil
			}
		}
	}
	return nil
}
