package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/stockgate/ledger"
)

// onlineWithin bounds all online checks together.
const onlineWithin = 10 * time.Second

// errOnline ends a check whose output has already said what is wrong with what runs.
var errOnline = errors.New("an online check failed")

// online tries what a file alone cannot tell, and reports each try.
type online struct {
	out    io.Writer
	file   string // of the configuration, for the commands that are proposed
	failed bool
}

func (o *online) ok(what, format string, args ...any) {
	fmt.Fprintf(o.out, "ok   %-8s %s\n", what, fmt.Sprintf(format, args...))
}

func (o *online) fail(what, format string, args ...any) {
	o.failed = true
	fmt.Fprintf(o.out, "FAIL %-8s %s\n", what, fmt.Sprintf(format, args...))
}

// try tries what c names, and the stock of skus besides those of its sales.
func (o *online) try(ctx context.Context, c *config.Config, skus []string) error {
	ctx, cancel := context.WithTimeout(ctx, onlineWithin)
	defer cancel()
	if c.Stock.Source != "redis" {
		fmt.Fprintf(o.out, "     %-8s stock.source is %q: nothing outside of the gate is tried\n", "stock", c.Stock.Source)
		return nil
	}
	if hasGate(c, "check") || !reserves(c) {
		r, err := openRedis(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer r.Close()
		if err := r.Ping(ctx); err != nil {
			o.fail("redis", "%v", err)
			return nil
		}
		if !reserves(c) {
			o.ok("redis", "%s answers", strings.Join(c.Stock.Redis.Addresses, " "))
			o.tellServers(ctx, c, r)
			return nil
		}
	}
	return o.tryLedgers(ctx, c, skus)
}

// tryLedgers wants a Redis that never throws a ledger away, and a ledger for each SKU.
func (o *online) tryLedgers(ctx context.Context, c *config.Config, skus []string) error {
	r, err := openLedger(c, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer r.Close()
	err = r.Check(ctx)
	if err == nil {
		o.ok("redis", "%s answers, and evicts nothing", strings.Join(c.Stock.Redis.Addresses, " "))
	} else if cure := evictionCure(err); cure != "" {
		o.fail("redis", "%v; %s", err, cure)
	} else {
		o.fail("redis", "%v", err)
		return nil
	}
	o.tellServers(ctx, c, r)
	l := ledgersOf(c, r, nil)
	named := append(slices.Clone(skus), onSale(c)...)
	if len(named) == 0 {
		o.tryAnyLedger(ctx, c, l)
		return nil
	}
	slices.Sort(named)
	for _, sku := range slices.Compact(named) {
		o.tryLedger(ctx, c, l, sku)
	}
	return nil
}

// evictionCure says how an unfit Redis is made fit.
func evictionCure(err error) string {
	if errors.Is(err, ledger.ErrUnfit) {
		return "write maxmemory-policy noeviction into its redis.conf, and for now: redis-cli CONFIG SET maxmemory-policy noeviction"
	}
	return ""
}

// onSale are the SKUs that the configuration names.
func onSale(c *config.Config) (skus []string) {
	for _, s := range c.Sales {
		skus = append(skus, s.SKUs...)
	}
	return skus
}

// tryAnyLedger is for a configuration that names no SKU: then at least one must be for sale.
func (o *online) tryAnyLedger(ctx context.Context, c *config.Config, l ledgers) {
	const shown = 20
	skus, err := l.SKUs(ctx, shown)
	switch {
	case err != nil:
		o.fail("ledger", "%v", err)
	case len(skus) == 0:
		o.fail("ledger", "no SKU has one: every order would be refused as unknown_sku; make one: %s", o.making(c, "SKU"))
	case len(skus) == shown:
		o.ok("ledger", "the first %d: %s", shown, strings.Join(skus, " "))
	default:
		o.ok("ledger", "all %d: %s", len(skus), strings.Join(skus, " "))
	}
}

// tryLedger tells how the ledger of sku stands, or how it is made.
func (o *online) tryLedger(ctx context.Context, c *config.Config, l ledgers, sku string) {
	if err := sellable(sku); err != nil {
		o.fail("ledger", "%v", err)
		return
	}
	s, err := l.Look(ctx, sku)
	switch {
	case errors.Is(err, admin.ErrNoSKU):
		o.fail("ledger", "%s has none: its orders would be refused as unknown_sku; make it: %s", sku, o.making(c, sku))
	case err != nil:
		o.fail("ledger", "%s: %v", sku, err)
	case s.Ledger.State == "frozen":
		o.fail("ledger", "%s; adopt the orders that only the shop knows, then: sluice stock resume %s --reconciled --config %s", phrase(s), quoted(sku), quoted(o.file))
	case s.Ledger.Total == 0:
		o.fail("ledger", "%s has no units: all its orders would be refused as sold_out; %s", sku, o.making(c, sku))
	default:
		o.ok("ledger", "%s", phrase(s))
	}
}

// phrase is the stock in one sentence.
func phrase(s admin.Stock) string { return strings.ReplaceAll(line(s), "\t", " ") }

// making is the command that makes the ledger of sku.
func (o *online) making(c *config.Config, sku string) string {
	units := "UNITS"
	for _, s := range c.Sales {
		if n, ok := s.Stock[sku]; ok {
			units = strconv.Itoa(n)
		}
	}
	kind := ""
	if hasGate(c, "check") {
		kind = " --kind ledger"
	}
	return fmt.Sprintf("sluice stock set %s %s --limit %d%s --config %s", quoted(sku), units, c.Stock.Reserve.PerUser, kind, quoted(o.file))
}

// quoted is text as a shell takes it for one word.
func quoted(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("-_./:@%+=,", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
