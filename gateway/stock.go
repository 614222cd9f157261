package gateway

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/proxy"
	"sluice/stockgate"
	"sluice/stockgate/layout"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/sale"
)

// openStock makes the stock gate and what it reads.
func (g *Gateway) openStock(log *slog.Logger) error {
	c := g.Config
	var source *stockgate.Redis
	switch c.Stock.Source {
	case "off":
		return nil
	case "memory":
		var err error
		if source, err = stores.MemoryShopStock(g.memory, c, log); err != nil {
			return err
		}
		g.onClose(func() { _ = source.Close() })
	default:
		l, err := stores.ShopLayout(c)
		if err != nil {
			return err
		}
		link, err := g.link.of(c, log)
		if err != nil {
			return err
		}
		r := stockgate.NewRedisOn(link, l, log)
		g.onClose(func() { _ = r.Close() })
		if err := stores.CheckFits(c, r); err != nil {
			return err
		}
		if len(c.Stock.Redis.Replicas) > 0 {
			if err := r.ReadFrom(stores.RedisOptions(c), c.Stock.Redis.Replicas, c.Stock.Redis.MaxStaleness); err != nil {
				return c.Errorf("stock.redis.replicas", "%v", err)
			}
		}
		g.redis, source = r, r
		g.Metrics.MustRegister(r)
	}
	g.Store = stores.NewStore(source)
	o := stockOptions(c)
	o.Instances, o.Now, o.Log = g.limits.Instances, g.now, log
	if g.redis != nil {
		o.Bought = g.redis.Bought
	}
	var err error
	if g.Stock, err = stockgate.New(o, source); err != nil {
		return err
	}
	g.onClose(g.Stock.Close)
	g.Metrics.MustRegister(g.Stock)
	g.source = source
	return nil
}

// stockOptions are those that a reload changes, and the time of a round trip.
func stockOptions(of *config.Config) stockgate.Options {
	c := &of.Stock
	return stockgate.Options{
		Refresh:       c.PollInterval,
		SoldOutMemory: c.SoldOutTTL,
		PerUnit:       c.MaxInFlightPerUnit,
		AllowOnError:  c.OnError == "allow",
		Observe:       of.Mode == "observe",
		Unasked:       !of.ReadsStock(),
		AllowUnknown:  c.UnknownSKU == "allow",
		Again:         c.Layout.UsersKey == "",
		Wait:          c.Redis.Timeout + 50*time.Millisecond, // one command, and its turn
	}
}

// buildStock finds out whether the stock can be read as r says. What is known of it stays known, unless it is in other
// keys.
func (g *Gateway) buildStock(r *runtime) (err error) {
	next, useRules := r.config, func() {}
	var l *layout.Layout
	if g.running.Load() != nil && g.source != nil && !reflect.DeepEqual(g.running.Load().Stock.Layout, next.Stock.Layout) {
		if g.redis == nil {
			return next.Errorf("stock.layout", `is not used with stock.source = "memory", whose stock has keys of its own: `+
				`write the former value, or source = "redis", and restart`)
		}
		if l, err = stores.ShopLayout(next); err != nil {
			return err
		}
		if err := g.redis.Fits(context.Background(), l); errors.Is(err, layout.ErrApart) {
			return next.Errorf("stock.layout", "%v", err)
		}
	}
	if g.Stock != nil {
		if useRules, err = g.Stock.Prepare(stockOptions(next), l != nil); err != nil {
			return err
		}
	}
	r.use = append(r.use, func() {
		if l != nil {
			g.redis.UseLayout(l)
		}
		useRules()
		g.feedback.Use(next.Stock.SoldOutTTL)
		g.schedule.Use(stores.SalesOf(next), stores.ReadsClock(next))
		switch {
		case g.redis == nil:
		case g.writer.Load() == nil:
			w := sale.NewWriter(g.schedule, g.redis, g.writesBack(r), g.log)
			g.writer.Store(w)
			g.onClose(w.Close)
		default:
			g.writer.Load().Use(g.writesBack(r))
		}
	})
	return nil
}

// mirror writes what the ledgers have free into the shop's own keys; nil when that is not configured.
func (g *Gateway) mirror(c *config.Config) ledger.Mirror {
	if !c.Stock.Reserve.WriteBack || g.redis == nil {
		return nil
	}
	return func(ctx context.Context, sku string, h ledger.StockVersion) (bool, error) {
		return g.redis.Mirror(ctx, sku, h.Free, h.Epoch, h.Ver)
	}
}

// soldOutFeedback hears what the shop says of its stock.
type soldOutFeedback struct {
	*stockgate.SoldOutFeedback
	orders *orderLedger // nil = no ledger
}

// Record implements proxy.SoldOutFeedback.
func (t soldOutFeedback) Record(now int64, sku []byte, reserved bool) {
	t.RecordSoldOut(now, sku, reserved)
	if !reserved || t.orders == nil {
		return
	}
	if d := t.orders.Reserver(); d != nil {
		d.MarkSoldOut(now, sku)
	}
}

// soldOutOn is by what answer the shop says that a SKU is sold out; nil = by none.
func soldOutOn(a *config.Answer) *proxy.SoldOutAnswer {
	if a == nil {
		return nil
	}
	s := &proxy.SoldOutAnswer{Status: a.Status}
	name, value, _ := strings.Cut(a.Header, ":")
	s.Header, s.Value = strings.TrimSpace(name), strings.TrimSpace(value)
	if a.JSON != "" {
		s.JSON = inJSON(a.JSON, a.Values)
	}
	return s
}

// openSales makes what decides by time, and by what the shop has taught.
func (g *Gateway) openSales() (err error) {
	var link *redisconn.Client
	if g.Config.Stock.Source == "redis" {
		if link, err = g.link.of(g.Config, g.log); err != nil {
			return err
		}
	}
	if g.schedule, err = stores.OpenSchedule(g.Config, link,
		sale.Options{Now: g.now, Wall: wallClock(), Log: g.log}); err != nil {
		return err
	}
	g.onClose(g.schedule.Close)
	g.feedback = stockgate.NewSoldOutFeedback(g.Config.Stock.SoldOutTTL, g.log)
	g.Metrics.MustRegister(g.schedule, g.feedback)
	return nil
}

// writesBack is what the sales write into the shop's keys. Stock goes there where the shop takes the units, or where
// the ledger is shown there.
func (g *Gateway) writesBack(r *runtime) (p sale.Writes) {
	p.Status = r.config.Stock.Reserve.WriteBack
	if o := r.orders; o != nil {
		if !p.Status {
			return p
		}
		p.Ended = func(ctx context.Context, sku string) (ended, known bool) {
			if d := o.Reserver(); d != nil {
				return d.Ended(ctx, sku)
			}
			return false, false // not before Redis is known to be fit
		}
	}
	p.Stock = map[string]map[string]int{}
	for _, s := range r.config.Sales {
		p.Stock[s.Name] = s.Stock
	}
	return p
}
