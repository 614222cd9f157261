package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/stockgate/layout"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// tryStock tries the Redis of c, and the stock of what is on sale.
func tryStock(ctx context.Context, o *Report, c *config.Config) error {
	if c.Stock.Source != "redis" {
		o.OK("stock", "stock.source is %q: nothing of it is outside of the gateway", c.Stock.Source)
		return nil
	}
	c = stores.WaitLonger(c)
	r, err := stores.OpenShopStock(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer r.Close()
	way, err := redisconn.New(quietly(stores.RedisOptions(c)))
	if err != nil {
		return err
	}
	defer way.Close()
	switch err := r.Ping(ctx); {
	case errors.Is(err, layout.ErrApart):
		o.Fail("layout", "%v", err)
		return nil
	case errors.Is(err, redisconn.ErrClaimed):
		o.Fail("name", "%v", err)
		return nil
	case err != nil:
		o.Fail("redis", "%v; %s", err, redisconn.Remedy(err))
		return nil
	case c.Name != "":
		o.OK("name", "%q is claimed by no other secret", c.Name)
	}
	if !c.UsesLedger() {
		o.OK("redis", "%s answers", strings.Join(c.Stock.Redis.Addresses, " "))
	}
	o.checkServers(ctx, c, way)
	o.tryServer(ctx, c, way)
	if len(c.Stock.Redis.Replicas) > 0 {
		o.tryReplicas(ctx, c, r)
	}
	named := append(slices.Clone(o.SKUs), c.SKUsOnSale()...)
	slices.Sort(named)
	named = slices.Compact(named)
	if c.HasGate("check") || c.Stock.Reserve.WriteBack {
		o.tryLayout(ctx, c, r, way, named)
	}
	if c.UsesLedger() {
		return o.tryLedgers(ctx, c, named)
	}
	return nil
}

// tryLedgers wants a Redis that never throws a ledger away, and a ledger for each SKU.
func (o *Report) tryLedgers(ctx context.Context, c *config.Config, skus []string) error {
	r, err := stores.OpenLedger(c, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer r.Close()
	err = r.Check(ctx)
	if err == nil {
		o.OK("redis", "%s answers, and evicts nothing", strings.Join(c.Stock.Redis.Addresses, " "))
	} else if cure := evictionRemedy(err); cure != "" {
		o.Fail("redis", "%v; %s", err, cure)
	} else {
		o.Fail("redis", "%v; %s", err, redisconn.Remedy(err))
		return nil
	}
	l := stores.NewLedgers(c, r, nil)
	if len(skus) == 0 {
		o.TryAnyLedger(ctx, c, l)
	}
	for _, sku := range skus {
		o.TryLedger(ctx, c, l, sku)
	}
	return nil
}

// evictionRemedy says how an unfit Redis is made fit.
func evictionRemedy(err error) string {
	if errors.Is(err, ledger.ErrUnfit) {
		return "write maxmemory-policy noeviction into its redis.conf, and for now: redis-cli CONFIG SET maxmemory-policy " +
			"noeviction"
	}
	return ""
}

// TryAnyLedger is for a configuration that names no SKU: then at least one must have a ledger, and some are looked at.
func (o *Report) TryAnyLedger(ctx context.Context, c *config.Config, l *stores.Ledgers) {
	const shown = 20
	skus, err := l.SKUs(ctx, shown)
	lost, err2 := l.Lost(ctx, shown)
	for _, sku := range lost {
		o.TryLedger(ctx, c, l, sku)
	}
	switch err := errors.Join(err, err2); {
	case err != nil:
		o.Fail("ledger", "%v; %s", err, redisconn.Remedy(err))
	case len(skus) == 0 && len(lost) > 0: // said
	case len(skus) == 0:
		o.Fail("ledger", "no SKU has one: every order would be rejected as unknown_sku; if it was ever sold: %s; else: %s",
			ledger.RecoverLost("SKU")+o.ofFile(), o.setCommand(c, "SKU"))
	default:
		for _, sku := range skus {
			o.TryLedger(ctx, c, l, sku)
		}
		if len(skus) == shown {
			o.OK("ledger", "these are the first %d; name others with --sku", shown)
		}
	}
}

// TryLedger tells how the ledger of sku stands, or how it is made.
func (o *Report) TryLedger(ctx context.Context, c *config.Config, l *stores.Ledgers, sku string) {
	if err := admin.CheckSKU(sku); err != nil {
		o.Fail("ledger", "%v", err)
		return
	}
	s, err := l.Stock(ctx, sku)
	switch {
	case errors.Is(err, admin.ErrNoSKU) && madeByASale(c, sku):
		o.OK("ledger", "%s has none yet: its sale makes it before the start, once sluice run is started", sku)
	case errors.Is(err, admin.ErrNoSKU):
		o.Fail("ledger", "%s has none: its orders would be rejected as unknown_sku; make it: %s; if it was ever sold: %s",
			sku, o.setCommand(c, sku), ledger.RecoverLost(sku)+o.ofFile())
	case errors.Is(err, ledger.ErrLost):
		o.Fail("ledger", "%s: its ledger is gone; the orders of before must be back before it sells again: %s", sku,
			ledger.RecoverLost(sku)+o.ofFile())
	case err != nil:
		o.Fail("ledger", "%v; %s", err, redisconn.Remedy(err))
	case s.Ledger.State == "frozen":
		o.Fail("ledger", "%s; give it the orders that only the shop knows: sluice stock recover %s --from FILE --apply%s",
			sentence(s), Quoted(sku), o.ofFile())
	case s.Ledger.Total == 0:
		o.Fail("ledger", "%s has no units: all its orders would be rejected as sold_out; %s", sku, o.setCommand(c, sku))
	default:
		o.OK("ledger", "%s", sentence(s))
	}
}

// madeByASale reports whether a sale that has not begun writes the stock of a SKU.
func madeByASale(c *config.Config, sku string) bool {
	return slices.ContainsFunc(c.Sales, func(s config.Sale) bool {
		_, stocked := s.Stock[sku]
		return stocked && time.Now().Before(s.Starts)
	})
}

// sentence is the stock in one sentence.
func sentence(s admin.Stock) string { return strings.ReplaceAll(stores.DescribeStock(s), "\t", " ") }

// setCommand is the command that makes the ledger of sku.
func (o *Report) setCommand(c *config.Config, sku string) string {
	units := "UNITS"
	for _, s := range c.Sales {
		if n, ok := s.Stock[sku]; ok {
			units = strconv.Itoa(n)
		}
	}
	kind := ""
	if c.HasGate("check") {
		kind = " --kind ledger"
	}
	return fmt.Sprintf("sluice stock set %s %s --limit %d%s", Quoted(sku), units, c.Stock.Reserve.MaxPerUser, kind) +
		o.ofFile()
}

// ofFile is the flag that has a command read the configuration of the report.
func (o *Report) ofFile() string { return " --config " + Quoted(o.File) }

// Quoted is text as a shell takes it for one word.
func Quoted(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("-_./:@%+=,", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
