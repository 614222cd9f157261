package main

import (
	"context"
	"encoding/json"
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
	"sluice/stockgate/layout"
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

	together bool // nothing is shown before tellJSON
	found    []finding
}

// finding is what one try came to.
type finding struct {
	Result string `json:"result"` // "ok" "warning" "fail"
	About  string `json:"about"`
	Says   string `json:"says"` // with the way out
}

func (o *online) ok(what, format string, args ...any) { o.note("ok", "ok  ", what, format, args) }

func (o *online) warn(what, format string, args ...any) {
	o.note("warning", "warn", what, format, args)
}

func (o *online) fail(what, format string, args ...any) {
	o.failed = true
	o.note("fail", "FAIL", what, format, args)
}

func (o *online) note(result, mark, what, format string, args []any) {
	f := finding{result, what, fmt.Sprintf(format, args...)}
	o.found = append(o.found, f)
	if !o.together {
		fmt.Fprintf(o.out, "%s %-8s %s\n", mark, f.About, f.Says)
	}
}

// tellJSON shows all that was found.
func (o *online) tellJSON() error {
	e := json.NewEncoder(o.out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}{!o.failed, o.found})
}

// try tries what c names, and the stock of skus besides those of its sales.
func (o *online) try(ctx context.Context, c *config.Config, skus []string) error {
	ctx, cancel := context.WithTimeout(ctx, onlineWithin)
	defer cancel()
	o.tryTargets(ctx, c)
	if c.Stock.Source != "redis" {
		o.ok("stock", "stock.source is %q: nothing of it is outside of the gate", c.Stock.Source)
		return nil
	}
	c = patient(c)
	r, err := openRedis(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.Ping(ctx); errors.Is(err, layout.ErrApart) {
		o.fail("layout", "%v", err)
		return nil
	} else if err != nil {
		o.fail("redis", "%v; start it, or correct [stock.redis]", err)
		return nil
	}
	if !reserves(c) {
		o.ok("redis", "%s answers", strings.Join(c.Stock.Redis.Addresses, " "))
		o.tellServers(ctx, c, r)
	}
	o.tryServer(ctx, c)
	if drives(c) {
		o.tryDriver(ctx, c)
	}
	if hasGate(c, "check") || c.Stock.Reserve.Mirror || drives(c) {
		named := append(slices.Clone(skus), onSale(c)...)
		slices.Sort(named)
		o.tryLayout(ctx, c, r, slices.Compact(named))
	}
	if reserves(c) {
		return o.tryLedgers(ctx, c, skus)
	}
	return nil
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

// tryAnyLedger is for a configuration that names no SKU: then at least one must have a ledger, and some are looked at.
func (o *online) tryAnyLedger(ctx context.Context, c *config.Config, l ledgers) {
	const shown = 20
	skus, err := l.SKUs(ctx, shown)
	switch {
	case err != nil:
		o.fail("ledger", "%v", err)
	case len(skus) == 0:
		o.fail("ledger", "no SKU has one: every order would be refused as unknown_sku; make one: %s", o.making(c, "SKU"))
	default:
		for _, sku := range skus {
			o.tryLedger(ctx, c, l, sku)
		}
		if len(skus) == shown {
			o.ok("ledger", "these are the first %d; name others with --sku", shown)
		}
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
		o.fail("ledger", "%s; adopt the orders that only the shop knows, then: sluice stock thaw %s --config %s", phrase(s), quoted(sku), quoted(o.file))
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
