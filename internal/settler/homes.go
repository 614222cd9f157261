package settler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sluice/config"
	"sluice/settle"
)

// fenceWithin is how long a move waits for the database that it leaves.
const fenceWithin = 5 * time.Second

// Homes are the settlements of all homes; that of the main home comes first.
type Homes []*Settlement

// OpenHomes opens the databases of all homes, and the Redis for each. It waits for none of them.
func OpenHomes(c *config.Config, log *slog.Logger) (homes Homes, err error) {
	for _, name := range c.Settle.HomeNames() {
		s, err := openHome(c, name, log)
		if err != nil {
			homes.Close()
			return nil, err
		}
		homes = append(homes, s)
	}
	return homes, nil
}

// Close ends all connections.
func (h Homes) Close() {
	for _, s := range h {
		s.Close()
	}
}

// Name is that of the settlement's home.
func (s *Settlement) Name() string { return s.home.Name }

// Named is the settlement of a home.
func (h Homes) Named(name string) (*Settlement, error) {
	names := make([]string, len(h))
	for i, s := range h {
		if names[i] = s.home.Name; names[i] == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no home %q: write one of %s, or its [[settle.home]]", name, strings.Join(names, ", "))
}

// Of is the settlement of the home in which a SKU is settled.
func (h Homes) Of(ctx context.Context, sku string) (*Settlement, error) {
	all, err := h[0].Stream.Ledgers(ctx, []string{sku})
	if err != nil {
		return nil, err
	}
	return h.Named(h[0].home.Owner(sku, all[0]))
}

// Has reports whether a SKU, whose ledger stands as l, is settled in this home.
func (s *Settlement) Has(sku string, l settle.Ledger) bool {
	return s.home.Owner(sku, l) == s.home.Name
}

// Move settles a SKU in another home from now on, and returns the name of the one before. unmarked says why the
// database of that one does not know yet; its settlers will tell it.
func (h Homes) Move(ctx context.Context, c *config.Config, sku, to string) (before string, unmarked, err error) {
	there, err := h.Named(to)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(there.Store.CheckSchema(ctx), checkJobs(ctx, c.AtHome(to))); err != nil {
		return "", nil, fmt.Errorf("move %q: nothing has changed: %s: %w", sku, to, err)
	}
	here, err := h.Of(ctx, sku)
	if err != nil { // it is in a home that is not configured any more
		here = nil
	}
	worker, err := there.Settler(c.AtHome(to), slog.New(slog.DiscardHandler))
	if err != nil {
		return "", nil, err
	}
	others := slices.DeleteFunc(slices.Clone(h), func(s *Settlement) bool { return s == there })
	unmarked, err = settle.Move(ctx, there.Stream, worker, leavers(others), sku)
	if here != nil {
		before = here.home.Name
	}
	return before, unmarked, err
}

// leavers mark the SKU in every home that it is not in: a command that was broken off may have been the last one to
// know where it was.
type leavers Homes

// Cursor implements settle.Leaver: it is that of the home that was not left yet, of several that of the last move. A
// database that is away has none.
func (l leavers) Cursor(ctx context.Context, sku string) (c settle.Cursor, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fenceWithin)
	defer cancel()
	for _, s := range l {
		one, found, err := s.Store.Cursor(ctx, sku)
		if err == nil && found && one.State != settle.Moved && (!ok || one.Moves > c.Moves) {
			c, ok = one, true
		}
	}
	return c, ok, nil
}

// Leave implements settle.Leaver.
func (l leavers) Leave(ctx context.Context, sku string) (left bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fenceWithin)
	defer cancel()
	var faults []error
	for _, s := range l {
		one, err := s.Store.Leave(ctx, sku)
		if left = left || one; err != nil {
			faults = append(faults, fmt.Errorf("home %s: %w", s.home.Name, err))
		}
	}
	return left, errors.Join(faults...)
}
